/**
 * The examination of one host over a connection that stands: does its shell start, how is its clock, what are its facts,
 * do large answers arrive. Steps come one after the other, as a server may allow one channel at a time; each has its own
 * limit, and a shell that runs no command ends the examination. It changes nothing on the host.
 */

import { endMark } from '../kernel/probe-script.ts'
import { CLOCK_QUESTIONS, type ClockOffset, clockOffset, clockScript } from './clock-offset.ts'
import { factScript, type MachineFacts, parseFacts } from './fact-script.ts'
import type { CommandResult, DoctorEnd, DoctorHost } from './host-port.ts'

/** What the start-up files of the login shell do to a command that prints nothing. */
export type Startup = {
  readonly end: DoctorEnd
  readonly durationMs: number
  /** What they printed, cut. */
  readonly stdout: string
  readonly stderr: string
}

export type LargeAnswer = {
  readonly wantedBytes: number
  readonly arrivedBytes: number
  readonly end: DoctorEnd
  readonly durationMs: number
}

export type Examination = {
  readonly startup: Startup
  readonly clock?: ClockOffset
  readonly facts?: MachineFacts
  /** Why there are no facts although the shell starts. */
  readonly factsEnd?: DoctorEnd
  readonly largeAnswer?: LargeAnswer
}

export type ExamineOptions = {
  readonly signal: AbortSignal
  /** Letters and digits that nothing else on the host prints. */
  readonly mark: string
  /** How many times the limits below; 1 unless given. */
  readonly limitFactor?: number
}

const STARTUP_LIMIT_MS = 5_000
const CLOCK_LIMIT_MS = 4_000
const FACTS_LIMIT_MS = 6_000
const LARGE_LIMIT_MS = 10_000
const SILENCE_LIMIT_MS = 4_000
const LARGE_BYTES = 256 * 1024
const SHOWN_CHARACTERS = 200

const LARGE_SCRIPT = `{ dd if=/dev/urandom bs=4096 count=${LARGE_BYTES / 4096} 2> /dev/null; exit 0; }\n`
/** No quoting: any login shell understands it, and the script comes by stdin. */
const SHELL = 'exec /bin/sh -s'

/** Never rejects. */
export async function examineHost(host: DoctorHost, options: ExamineOptions): Promise<Examination> {
  const { signal, mark, limitFactor = 1 } = options
  const limited = (timeoutMs: number) => ({ signal, timeoutMs: timeoutMs * limitFactor })

  const started = await host.exec('true', limited(STARTUP_LIMIT_MS))
  const { end, durationMs } = started
  const startup = { end, durationMs, stdout: shown(started.stdout), stderr: shown(started.stderr) }
  if (end.kind !== 'exit' || end.code !== 0) return { startup }

  const exchanges = await host.converse(SHELL, CLOCK_QUESTIONS, {
    ...limited(CLOCK_LIMIT_MS),
    stdin: clockScript(mark),
    ready: `${mark} `,
  })
  const clock = clockOffset(exchanges)

  const stdin = factScript(mark, limitFactor)
  const told = await host.exec(SHELL, { ...limited(FACTS_LIMIT_MS), stdin, until: endMark(mark) })
  const answer = Buffer.from(told.stdout).toString()
  const isTold = answer.includes(`\n${mark} `)

  // A host that is slow to start a shell is slow to start this one.
  const silenceMs = (SILENCE_LIMIT_MS + 2 * durationMs) * limitFactor
  const large = await host.exec(SHELL, { ...limited(LARGE_LIMIT_MS), silenceMs, stdin: LARGE_SCRIPT })
  return {
    startup,
    ...(clock === undefined ? {} : { clock }),
    ...(isTold ? { facts: parseFacts(answer, mark) } : { factsEnd: told.end }),
    largeAnswer: asLargeAnswer(large),
  }
}

function asLargeAnswer({ stdout, end, durationMs }: CommandResult): LargeAnswer {
  return { wantedBytes: LARGE_BYTES, arrivedBytes: stdout.length, end, durationMs }
}

function shown(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString().trim().slice(0, SHOWN_CHARACTERS)
}
