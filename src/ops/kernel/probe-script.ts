/**
 * The parts of a POSIX script that asks many things at once: each by itself in the background, so that one that hangs costs
 * the others nothing, and each answer behind a line that nothing else on the host prints. It writes no file.
 */

/** A single program that hangs is killed after this long, where `timeout` or perl can do that. */
export const PROGRAM_LIMIT_S = 3
/** What `timeout` (coreutils 124 and 137, busybox 143) and perl's alarm (142) leave as exit status. */
export const STATUSES_OF_LIMIT: readonly number[] = [124, 137, 142, 143]

/** `limited COMMAND` runs a program under the time limit, times the factor; `overdue STATUS` tells that it was ended by it. */
export function limitedFunctions(limitFactor = 1): string {
  return `${trial(limitFactor)}\n${OVERDUE}`
}

/** The same for a script that may not need it: what the host has for it is tried at the first use, not before. */
export function lazyLimitedFunctions(limitFactor = 1): string {
  return `limited() {\n${trial(limitFactor)}\nlimited "$@"\n}\n${OVERDUE}`
}

function trial(limitFactor: number): string {
  const limitS = Math.ceil(PROGRAM_LIMIT_S * limitFactor)
  return `if timeout -s KILL 1 true; then limited() { timeout -s KILL ${limitS} "$@"; }
elif timeout -t 1 true; then limited() { timeout -t ${limitS} "$@"; }
elif perl -e 1; then limited() { perl -e 'alarm ${limitS}; exec @ARGV' "$@"; }
else limited() { "$@"; }
fi`
}

const OVERDUE = `overdue() { case $1 in ${STATUSES_OF_LIMIT.join(' | ')}) ;; *) return 1 ;; esac; }`

/**
 * `flatten` makes one line of `$said`, for answers that are written side by side: bash writes what it prints line by line, so
 * that only single lines stay whole. Line breaks become 0x1f and empty lines vanish; to be called in a subshell.
 */
export const FLATTEN = `us='\x1f'; nl='
'
flatten() { set -f; IFS=$nl; set -- $said; IFS=$us; said=$*; }`

/**
 * `tell FILE PREFIX` prints a file with something before each line. What is short takes no process: to start one is slow on some
 * hosts. It is read to the end by a program where it is long, as a shell reads byte by byte.
 */
export const TELL = `tell() {
  {
    lines=0
    while IFS= read -r line; do
      printf '%s%s\\n' "$2" "$line"
      lines=$((lines + 1)); [ $lines -lt 40 ] || { sed "s/^/$2/"; return; }
    done
    [ -z "$line" ] || printf '%s%s' "$2" "$line"
  } < "$1"
}`

const UNIT_SEPARATOR = '\x1f'

export type AnswerSection = { readonly status: number; readonly text: string }

/** The last words of an answer. */
export function endMark(mark: string): string {
  return `\n${mark} end 0\n`
}

/** The sections of an answer, whole or cut off: `NAME STATUS` and the text on the lines below, or in the same line flattened. */
export function sectionsOf(answer: string, mark: string): ReadonlyMap<string, AnswerSection> {
  const sections = new Map<string, AnswerSection>()
  for (const section of answer.split(`\n${mark} `).slice(1)) {
    const match = /^([a-z0-9-]+) (\d+)(?:\x1f([^\n]*)|\n([\s\S]*)$)/.exec(section)
    if (match === null) continue
    const [, name = '', status, flat, text = ''] = match
    sections.set(name, { status: Number(status), text: flat?.replaceAll(UNIT_SEPARATOR, '\n') ?? text })
  }
  return sections
}
