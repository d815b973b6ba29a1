/**
 * Examines one host over an open connection without changing it: its shell, its clock, its facts, and whether large answers
 * arrive. The steps run one after another, because a server may allow only one channel, each with its own time limit. The
 * examination ends if the shell cannot run a command.
 */

import { endMark } from '../kernel/fact.ts'
import { CLOCK_QUESTIONS, type ClockOffset, clockOffset, clockScript } from './clock-offset.ts'
import { factScript, type MachineFacts, parseFacts } from './fact-script.ts'
import type { DoctorEnd, DoctorHost } from './host-port.ts'

/** How the login shell, with its start-up files, runs a command that prints nothing. */
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
  /** Multiplies the time limits below; 1 unless given. */
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
/** Any login shell understands this without quoting; the script comes on stdin. */
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
  const result = await host.exec(SHELL, { ...limited(FACTS_LIMIT_MS), stdin, until: endMark(mark) })
  const answer = Buffer.from(result.stdout).toString()
  const hasFacts = answer.includes(`\n${mark} `)

  // A host that starts shells slowly needs the same time again.
  const silenceMs = (SILENCE_LIMIT_MS + 2 * durationMs) * limitFactor
  const large = await host.exec(SHELL, { ...limited(LARGE_LIMIT_MS), silenceMs, stdin: LARGE_SCRIPT })
  return {
    startup,
    ...(clock === undefined ? {} : { clock }),
    ...(hasFacts ? { facts: parseFacts(answer, mark) } : { factsEnd: result.end }),
    largeAnswer: {
      wantedBytes: LARGE_BYTES,
      arrivedBytes: large.stdout.length,
      end: large.end,
      durationMs: large.durationMs,
    },
  }
}

function shown(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString().trim().slice(0, SHOWN_CHARACTERS)
}
