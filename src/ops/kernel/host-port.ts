/** What operations need of the hosts: scripts that run to an end. Whoever wires the program provides it. */
import type { RunOutcome } from '../run/outcome.ts'

export type ScriptOptions = {
  /** What the script reads; empty unless given. Delivered whole before the script begins, or the script does not run. */
  readonly stdin?: Uint8Array
  /**
   * Until then the script waits at its stdin, which has one empty line from then on; with no `stdin` of its own. If the caller
   * goes away before, the script is ended.
   */
  readonly turn?: Promise<void>
  /** As root: directly where the login is root, else through sudo, whose password is asked once for all hosts. */
  readonly asRoot?: boolean
  /** From the script's beginning or its turn; infinite for what goes on until it is stopped. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** It changes nothing and ends by itself before long: where the link is lost without a word it may go on until then. */
  readonly isBrief?: boolean
  /** Where the link is lost it ends on the host after everything else of this caller that runs there. */
  readonly endsLast?: boolean
  /** Output as it comes, beside the result; UTF-8 cut between characters, not printable yet. */
  onOutput?(stream: 'stdout' | 'stderr', text: string): void
}

export type ScriptResult = {
  readonly outcome: RunOutcome
  /** Cut after 1 MB; stderr after 64 KB. */
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  readonly durationMs: number
}

/** What is in a directory of a host (undefined: of this machine, where it may be one file), for a directory of another one. */
export type FileDelivery = {
  readonly from: string | undefined
  /** Absolute, or `~/…`. */
  readonly path: string
  /** As `path`; it is made (mode 0700) where it is missing. */
  readonly to: string
}

export type DeliverOptions = Pick<ScriptOptions, 'signal' | 'onOutput'> & {
  /** How many hosts, at most, are to be brought the same about now: large files go from host to host then. */
  readonly together: number
}

export interface OpsHosts {
  /**
   * Runs a script of POSIX sh on a host; other users of the host can see it (secrets go to stdin). When the caller is gone
   * the script's processes are ended. Never rejects: what goes wrong is the outcome.
   */
  exec(host: string, script: string, options: ScriptOptions): Promise<ScriptResult>
  /**
   * Brings files to a host through this machine: what is there already and the same is not sent again, what is new appears
   * whole. Never rejects. Undefined: files cannot be brought this way.
   */
  deliver?(host: string, delivery: FileDelivery, options: DeliverOptions): Promise<ScriptResult>
}

/** The reason of an end that is no success, for people: what was said on stderr, or how it ended. */
export function reasonOfResult(
  { outcome, stderr, stdout }: ScriptResult,
  format: (outcome: RunOutcome) => string,
): string {
  if (outcome.kind !== 'exit') return format(outcome)
  const said = lastLines(stderr) || lastLines(stdout)
  return said === '' ? format(outcome) : `${said} (${format(outcome)})`
}

const SHOWN_LINES = 3
const SHOWN_CHARACTERS = 300

function lastLines(bytes: Uint8Array): string {
  const lines = Buffer.from(bytes)
    .toString()
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return endOf(lines.slice(-SHOWN_LINES).join(' · '))
}

/** Cut between two words. */
function endOf(text: string): string {
  if (text.length <= SHOWN_CHARACTERS) return text
  const end = text.slice(-SHOWN_CHARACTERS)
  const words = end.slice(end.indexOf(' ') + 1)
  return `… ${words}`
}
