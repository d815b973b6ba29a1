/**
 * What runs in the shell of a login: a script that runs on the same login reads it, and changes nothing. It finds the shell
 * as the process with a terminal below the same ancestor, which is the server's process for this login.
 */
import { printable } from '../../base/printable.ts'

/** Needs ps and awk; exits with 3 if it cannot find out. Terminals of containers have the same names, in other sessions. */
export const SHELL_PROGRAMS_SCRIPT = String.raw`
t=$(LC_ALL=C.UTF-8 ps -A -o pid= -o ppid= -o pgid= -o tpgid= -o tty= -o sess= -o args= 2>/dev/null) || exit 3
t=$(printf '%s\n' "$t" | awk -v me=$$ '
{ id = $1; parent[id] = $2; group[id] = $3; front[id] = $4; tty[id] = $5 "/" $6
  $1 = $2 = $3 = $4 = $5 = $6 = ""; sub(/^ +/, ""); words[id] = substr($0, 1, 200) }
END {
  # The terminal that the console itself runs on, for shells of this machine.
  for (at = me; at > 1 && (at in parent) && steps++ < 40; at = parent[at]) { own[at] = 1; mine[tty[at]] = 1 }
  for (at = parent[me]; at > 1 && (at in parent) && more++ < 40 && !found; at = parent[at])
    for (id in parent) if (parent[id] == at && tty[id] !~ /^[?-]/ && !(id in own) && !(tty[id] in mine)) { shell[id] = 1; found = 1 }
  for (id in shell) { used[tty[id]] = 1; print "shell", id, group[id], front[id], tty[id], words[id] }
  for (id in parent) if ((tty[id] in used) && !(id in shell) && rows++ < 200) print "program", id, group[id], front[id], tty[id], words[id]
}') || exit 3
printf '%s\n' "$t"
set -- $(printf '%s\n' "$t" | awk '$1 == "shell" { print "/proc/" $2 "/environ" }')
[ $# -lt 2 ] || grep -lzx "HOME=$HOME" "$@" 2>/dev/null
:
`

const ROW = /^(shell|program) (\d+) (-?\d+) (-?\d+) (\S+) (.*)$/
const OWN_HOME = /^\/proc\/(\d+)\/environ$/
const SHELL = /^-?(\S*\/)?(?!ssh\b)\w*sh(\s|$)/
const MOST_PROGRAMS = 20
const MOST_CHARACTERS = 80

/** Commands that run in the foreground, then those in the background; empty: the shell waits for a command. Undefined: unknown. */
export function parseShellPrograms(output: string): readonly string[] | undefined {
  const lines = output.split('\n')
  const rows = lines.flatMap((line) => {
    const [, kind, id, group, front, tty, words = ''] = ROW.exec(line) ?? []
    return kind === undefined ? [] : [{ kind, id, group, front, tty, words }]
  })
  // Hosts that are processes of one machine share the parent of their shells, and differ in their home.
  const homes = new Set(lines.flatMap((line) => OWN_HOME.exec(line)?.[1] ?? []))
  const shells = rows.filter(({ kind, id = '' }) => kind === 'shell' && (homes.size === 0 || homes.has(id)))
  if (shells.length === 0) return undefined
  const terminals = new Set(shells.map(({ tty }) => tty))
  const programs = rows.filter(({ kind, tty }) => kind === 'program' && terminals.has(tty))
  // `exec vim` leaves no shell.
  const replaced = shells.filter(({ words }) => !SHELL.test(words))
  const front = [...replaced, ...programs.filter(({ group, front }) => group === front)]
  const back = programs.filter(({ group, front }) => group !== front)
  // A pipeline is one group, named by its leader; so is a program with its children.
  const leaders = (of: typeof programs): string[] =>
    [...Map.groupBy(of, ({ group }) => group)].map(([group, members]) => {
      const leader = members.find(({ id }) => id === group) ?? members[0]
      const words = printable(leader?.words ?? '')
      return words.length > MOST_CHARACTERS ? `${words.slice(0, MOST_CHARACTERS - 1)}…` : words
    })
  return [...leaders(front), ...leaders(back).map((words) => `${words} &`)].slice(0, MOST_PROGRAMS)
}
