// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are expansions of the shell
/**
 * The command line for a login shell: a POSIX sh program round a command that must not outlive its caller. It holds no secret,
 * and no character that sh, csh and fish read differently.
 *
 * The command replaces the process that sshd started, so that the server reports its exit code or signal. A watcher beside it
 * reads stdin and ends the process group and session at the end of input (the connection is gone), at the word `x`, or when
 * beats (`b`) stop coming after the first. The word `g` lets a held command continue.
 */
import { HOST_TEMPORARY } from '../../base/host-temporary.ts'
import { shellQuote } from '../../base/shell-quote.ts'
export type RemoteCommandSpec = {
  // What comes on the channel's stdin after the word, in this order.
  /** What `formatVariables` makes: values that stand in no command line, and in the environment of the command alone. */
  readonly variables?: { readonly sizeBytes: number }
  /** A program for its own `#!` line, or for the login shell: interpreter words and the arguments after the file. */
  readonly script?: {
    readonly sizeBytes: number
    readonly interpreter: readonly string[]
    readonly args: readonly string[]
  }
  readonly stdin?: { readonly sizeBytes: number }
  /** Any text without NUL, for the login shell of the account. Unused when there is a script. */
  readonly command: string
  /** The command is for /bin/sh, whatever the account has: a login shell may take long to start. */
  readonly isForSh?: boolean
  /** In the command line, where other users of the host see it. */
  readonly environment: Readonly<Record<string, string>>
  /**
   * A word of letters and digits on a line of its own: the program reads its stdin now. The first line there is another such
   * word, which no start-up file has seen (`wordsFor`).
   */
  readonly ready: string
  readonly isSudo?: boolean
  /** The command's stdin stays open and empty until the word `g`, which becomes an empty line. Without files. */
  readonly isHeld?: boolean
  /** Seconds without a beat after which the command is ended, once there was one. */
  readonly beatLimitS: number
  /** When the connection is gone it is ended after other commands had their grace; at the word to end, at once. */
  readonly endsLast?: boolean
}

/** What the caller may write to the channel's stdin once the mark was seen. */
export const BEAT = 'b\n'
export const END = 'x\n'
export const GO = 'g\n'

/** For sh; its last line tells whether it came whole. Undefined: there are none. */
export function formatVariables(variables: Readonly<Record<string, string>>): Buffer | undefined {
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
  return lines.length === 0 ? undefined : Buffer.from(`${lines.join('')}${WHOLE}`)
}

const WHOLE = '# whole'

/** With the word that it was sent: `begin` and `deliver` (files may come) are lines of stdout; `prompt` is sudo asking on stderr. */
export function wordsFor(word: string): { readonly begin: string; readonly prompt: string; readonly deliver: string } {
  return { begin: `begin${word}`, prompt: `sudo${word}`, deliver: `deliver${word}` }
}

/** Between TERM and KILL, in fifths of a second. */
const GRACE_FIFTHS = 10
export const GRACE_MS = GRACE_FIFTHS * 200

/** Linux: MAX_ARG_STRLEN is 128 KB for the whole command line, the wrapper included. What `wordsBytes` may count. */
export const MAX_COMMAND_BYTES = 96 * 1024

/** Sole restriction on the text of these programs: no apostrophe, no exclamation mark, no backslash, no line break. */
const WATCHER = (spec: RemoteCommandSpec): string =>
  [
    'trap "" HUP INT QUIT TERM PIPE USR1 USR2',
    'read -r w x </proc/self/stat',
    // Short commands get no beat, and need no timeout(1).
    'read -r k',
    `if command -v timeout; then while ${isWatched(spec)}; do k=$(timeout ${spec.beatLimitS} dd bs=2 count=1); done`,
    `else while ${isWatched(spec)} && read -r k; do :; done; fi`,
    // The command has ended by itself: what it left running on purpose stays, as with ssh.
    `if kill -0 $m; then ${waitForOthers(spec)}i=0; while [ $i -lt 25 ]; do r= o=`,
    // proc_pid_stat(5), after the name in parentheses, which may hold line breaks: state, parent, group, session.
    'for f in /proc/[0-9]*/stat; do s=; while read -r l; do s="$s$l "; done <$f; p=${s%% *}; set -- ${s##*) }; case " $1 $3 $4 " in " Z "*) ;; *" $m "*) [ $p = $w ] || r="$r $p"; [ $3 = $m ] || o="$o $p";; esac; done',
    '[ -n "$w" ] || { kill -0 $m && r=$m; }',
    '[ -n "$r" ] || break',
    // One TERM for each: some programs take the second one as an order to leave at once.
    `case $i in 0) kill -TERM -$m; kill -TERM $o; kill -CONT $r;; ${GRACE_FIFTHS}) kill -KILL $r;; esac`,
    'i=$((i+1)); sleep 0.2 || sleep 1; done',
    'fi',
    '[ -z "$d" ] || rm -rf "$d"',
    '[ -n "$w" ] || kill -KILL -$m',
  ].join('; ')

/** Whether the watcher reads on after the word $k. */
function isWatched({ isHeld = false }: RemoteCommandSpec): string {
  return isHeld ? 'case "$k" in b) ;; g) echo >&6; exec 6>&-;; *) false;; esac' : '[ "$k" = b ]'
}

/** Until the others had their grace; a caller that says the word has seen to that itself. */
function waitForOthers({ endsLast = false }: RemoteCommandSpec): string {
  return endsLast ? `[ "$k" = x ] || sleep ${Math.ceil(GRACE_MS / 1000) + 1}; ` : ''
}

/** 5 and 6 are the ends of a pipe; it is opened for both at first, as each end would wait for the other. */
const HOLD =
  'h=$(temporary "${TMPDIR:-/tmp}") && mkfifo "$h/go" && exec 4<>"$h/go" 5<"$h/go" 6>"$h/go" 4<&- && rm -rf "$h" || exit 1'

function wrapper(spec: RemoteCommandSpec): string {
  // The word, and this program; no child gets the word, whatever the login exports under this name.
  const parts = ['unset b; b=$1; shift 2; m=$$; d=']
  const deliver = spec.isSudo === true ? ['echo "deliver$b"'] : []
  // %b turns the octal escapes of the arguments into bytes; the dot keeps line breaks at the end.
  parts.push('u() { v=$(printf %b. "$1"); v=${v%.}; }')
  const variablesBytes = spec.variables?.sizeBytes ?? 0
  const scriptBytes = spec.script?.sizeBytes ?? 0
  const stdinBytes = spec.stdin?.sizeBytes ?? 0
  const allBytes = variablesBytes + scriptBytes + stdinBytes
  const isDelivered = spec.script !== undefined || spec.stdin !== undefined
  if (isDelivered || spec.isHeld === true) parts.push(...HOST_TEMPORARY)
  if (isDelivered) {
    parts.push(
      'n=$(umask); umask 077; d=$(temporary "${TMPDIR:-/tmp}") || exit 1',
      // Read when it runs: the directory may have any name.
      'z() { rm -rf "$d"; exit 1; }; trap z HUP INT TERM PIPE',
      // Half a file must not run: the connection broke, or the disk is full.
      'whole() { [ -f "$d/$1" ] && [ $(wc -c <"$d/$1") -eq $2 ] || { echo "muster: the file did not arrive whole in $d" >&2; z; }; }',
      // Sudo may have read stdin before.
      ...deliver,
      `head -c ${allBytes} >"$d/all"; whole all ${allBytes}`,
    )
    if (spec.script) {
      parts.push(
        `tail -c +${variablesBytes + 1} <"$d/all" | head -c ${scriptBytes} >"$d/script"; whole script ${scriptBytes}`,
      )
    }
  }
  if (spec.variables) {
    // Whatever the login exports under this name, no child gets the values by it.
    if (isDelivered) parts.push(`unset e; e=$(head -c ${variablesBytes} <"$d/all")`)
    else parts.push(...deliver, `unset e; e=$(head -c ${variablesBytes})`)
    parts.push(`case "$e" in *"${WHOLE}") ;; *) echo "muster: the variables did not arrive whole" >&2; exit 1;; esac`)
  }
  if (spec.isHeld === true) parts.push(HOLD)
  parts.push('exec 3<&0')
  parts.push(
    spec.stdin
      ? `tail -c +${variablesBytes + scriptBytes + 1} <"$d/all" >"$d/in"; whole in ${stdinBytes}; exec <"$d/in"; rm -f "$d/all" "$d/in"`
      : isDelivered
        ? 'exec </dev/null; rm -f "$d/all"'
        : spec.isHeld === true
          ? 'exec <&5 5<&-'
          : 'exec </dev/null',
  )
  // The files of the wrapper are private; those of the command are as its user wants them.
  if (isDelivered) parts.push('trap - HUP INT TERM PIPE; umask $n')
  if (spec.stdin && !spec.script) parts.push('rmdir "$d"; d=')
  parts.push(`( ${WATCHER(spec)} ) <&3 3<&- >/dev/null 2>&1 & exec 3<&-${spec.isHeld === true ? ' 6>&-' : ''}`)
  for (let index = 0; index < Object.keys(spec.environment).length; index += 1) parts.push('u "$1"; export "$v"; shift')
  // Below this level bash takes itself for a login under sshd and reads its start-up files, a second time here.
  parts.push('SHLVL=1; export SHLVL', 'echo "begin$b"')
  // Last of all: no name of the wrapper's own is read after it.
  const setVariables = spec.variables ? 'eval "$e"; ' : ''
  if (spec.script) {
    // The words come as arguments; each is decoded and put behind the others, the file between them.
    const rotate = 'u "$1"; shift; set -- "$@" "$v"'
    const { interpreter, args } = spec.script
    parts.push(...interpreter.map(() => rotate), 'set -- "$@" "$d/script"', ...args.map(() => rotate))
    if (interpreter.length === 0) parts.push('set -- "${SHELL:-/bin/sh}" "$@"')
    parts.push(`${setVariables}exec "$@"`)
  } else {
    const isPlain = encode(spec.command) === spec.command
    const shell = spec.isForSh === true ? '/bin/sh' : '"${SHELL:-/bin/sh}"'
    parts.push(`${isPlain ? '' : 'u "$1"; set -- "$v"; '}${setVariables}exec ${shell} -c "$1"`)
  }
  return parts.join('; ')
}

/**
 * What the wrapper ends must be a group of its own: true under OpenSSH, made by setsid(1) elsewhere. Its arguments are the word, the
 * wrapper and the wrapper's own: `$0` is a short name, as the shell begins each of its messages with it.
 */
const LEADER =
  'kill -0 -$$ 2>/dev/null || { command -v setsid >/dev/null && exec setsid /bin/sh -c "$2" sh "$@"; }; eval "$2"'

/** Start-up files may read stdin and the command line, so nothing is sent before this, and the line holds no word. */
const HEAR = ({ ready }: RemoteCommandSpec): string => `echo ${ready}; unset b; read -r b || exit 1`

/** One line that means the same to sh, bash, dash, zsh, csh, tcsh and fish. */
export function buildRemoteCommand(spec: RemoteCommandSpec): string {
  const variables = Object.entries(spec.environment).map(([name, value]) => `${name}=${value}`)
  const words = spec.script ? [...spec.script.interpreter, ...spec.script.args] : [spec.command]
  const args = [wrapper(spec), ...[...variables, ...words].map(encode)].map((text) => `'${text}'`).join(' ')
  if (spec.isSudo !== true) return `exec /bin/sh -c '${HEAR(spec)}; set -- "$b" "$@"; ${LEADER}' sh ${args}`
  const sudo = 'exec sudo -S -p "sudo$b" -- /bin/sh -c "$w" sh "$b" "$@"'
  return `exec /bin/sh -c '${HEAR(spec)}; w=$1; shift; ${sudo}' sh '${LEADER}' ${args}`
}

/** What variables and the words of a command or script take on the command line, where some bytes become five. */
export function wordsBytes(environment: Readonly<Record<string, string>>, words: readonly string[]): number {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  return [...variables, ...words].reduce((sum, text) => sum + encode(text).length + "'' ".length, 0)
}

/** Octal escapes for printf's %b, in place of every byte that some shell reads differently within apostrophes. */
function encode(text: string): string {
  let encoded = ''
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte)
    if (/[ -~]/.test(character) && !/['!\\]/.test(character)) encoded += character
    else encoded += `\\0${byte.toString(8).padStart(3, '0')}`
  }
  return encoded
}
