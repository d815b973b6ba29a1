/** The port for scripts on hosts, which `cli` implements. */
import type { Duplex } from 'node:stream'
import type { RunOutcome } from '../run/outcome.ts'

/** The name of this machine among the hosts of areas. */
export const THIS_MACHINE = 'this-machine'

export type ScriptOptions = {
  /** The script's stdin; empty unless given. Delivered whole before the script starts, otherwise the script does not run. */
  readonly stdin?: Uint8Array
  /**
   * Until this resolves, the script waits for its stdin, which then gets one empty line; not together with `stdin`. If the caller
   * goes away before, the script is stopped.
   */
  readonly turn?: Promise<void>
  /** Run as root: directly if the login is root, otherwise through sudo, whose password is asked once for all hosts. */
  readonly asRoot?: boolean
  /** Counts from the script's start or its turn; infinite for a script that runs until it is stopped. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** It changes nothing and ends soon by itself, so it may continue until then if the link is lost silently. */
  readonly isBrief?: boolean
  /** If the link is lost, it ends on the host after everything else of this caller. */
  readonly endsLast?: boolean
  /** Output as it comes, beside the result; UTF-8 cut between characters, not printable yet. */
  onOutput?(stream: 'stdout' | 'stderr', text: string): void
}

/** More of a script's output is not kept. */
export const MOST_STDOUT_BYTES = 1024 * 1024
export const MOST_STDERR_BYTES = 64 * 1024

export type ScriptResult = {
  readonly outcome: RunOutcome
  /** Cut after MOST_STDOUT_BYTES; stderr after MOST_STDERR_BYTES. */
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  readonly durationMs: number
}

/** A file of one host (undefined: this machine), or what is in a directory, for a directory of another one. */
export type FileDelivery = {
  readonly from: string | undefined
  /** Absolute, or `~/…`. */
  readonly path: string
  /** What `path` is. If a host sends anything else, a link included, nothing is copied. */
  readonly kind: 'directory' | 'file'
  /** Whether links in a directory of a host are copied, as links; otherwise nothing is copied if there is one. This machine's are. */
  readonly keepsLinks?: boolean
  /** As `path`; created (mode 0700) if missing. Below it, a link in place of a directory is replaced, and none is followed. */
  readonly to: string
}

export type DeliverOptions = Pick<ScriptOptions, 'signal' | 'onOutput'> & {
  /** How many hosts, at most, get the same files about now: large files then go from host to host. */
  readonly together: number
}

export interface OpsHosts {
  /**
   * Runs a script of POSIX sh on a host; other users of the host can see it (secrets go to stdin). When the caller is gone
   * the script's processes are stopped. Never rejects: a failure is an outcome.
   */
  exec(host: string, script: string, options: ScriptOptions): Promise<ScriptResult>
  /**
   * Copies files to a host through this machine: identical ones are not sent again, new ones appear
   * whole. Never rejects. Undefined: files cannot be copied this way.
   */
  deliver?(host: string, delivery: FileDelivery, options: DeliverOptions): Promise<ScriptResult>
  /** A stream to a Unix socket of a host. Rejects with a reason for people. Undefined: sockets cannot be reached this way. */
  connectSocket?(host: string, path: string, signal: AbortSignal): Promise<Duplex>
}

/** Why it failed, for people: the stderr output, or how it ended. */
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
