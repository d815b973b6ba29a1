/** The queue for the tabs Packing and Jobs, read once a second while one of them is shown, and the end of a job's output. */
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { shownLine } from '../../base/drawn-line.ts'
import { messageOf, sentenceOf } from '../../base/errors.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { lettersOf } from '../../scheduler/jobs/packing.ts'
import type { PageContext } from '../state/console-state.ts'
import { startScript, type WorkPort } from '../work-views/work-port.ts'
import {
  type EngineLog,
  type HostLog,
  hasOpenPage,
  type JobsPort,
  LOG_BYTES,
  LOG_IS_CUT,
  LOG_IS_GONE,
  LOG_IS_OTHER,
  type LogView,
  type QueueStatus,
  type QueueView,
} from './queue-view.ts'

const READ_EVERY_MS = 1000
/** They come as other objects only when they have changed, and may be large. */
const ALWAYS_NEW: ReadonlySet<keyof QueueView> = new Set(['status', 'seen', 'studied'])

export class QueueWatch implements Disposable {
  readonly #context: PageContext
  readonly #jobs: JobsPort
  readonly #listeners: (() => void)[] = []
  #timer: Disposable | undefined
  #isReading = false
  #isDisposed = false

  constructor(context: PageContext, jobs: JobsPort) {
    this.#context = context
    this.#jobs = jobs
  }

  /** After each reading, also when the queue has not changed, and when neither tab is shown any more. */
  onRead(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Starts reading; it ends by itself when neither tab is shown. */
  open(): void {
    if (this.#timer === undefined) void this.read()
  }

  async read(): Promise<void> {
    if (this.#isReading || this.#isDisposed) return
    this.#isReading = true
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    try {
      const { queue } = this.#context.state
      const status = await this.#jobs.read(hasOpenPage(queue) ? queue.spec : undefined)
      const readMs = this.#context.clock.now()
      const known = this.#context.state.queue.letters
      this.set(
        status === undefined
          ? { trouble: undefined }
          : { status, letters: lettersOf(lettered(status), known), readMs, trouble: undefined },
      )
    } catch (error) {
      this.set({ trouble: sentenceOf(error) })
    }
    this.#isReading = false
    if (this.#isDisposed) return
    this.#tell()
    if (!this.#isShown) return
    this.#timer = this.#context.clock.after(READ_EVERY_MS, () => {
      this.#timer = undefined
      if (this.#isShown) void this.read()
      else this.#tell()
    })
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Changes the state of both tabs; values equal to the present ones change nothing. */
  set(patch: Partial<QueueView>): void {
    const { queue } = this.#context.state
    const keys = Object.keys(patch) as (keyof QueueView)[]
    const isNew = keys.some(
      (key) => patch[key] !== queue[key] && (ALWAYS_NEW.has(key) || !isDeepStrictEqual(patch[key], queue[key])),
    )
    if (isNew && !this.#isDisposed) this.#context.change(() => ({ queue: { ...queue, ...patch } }))
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
  }

  get #isShown(): boolean {
    const { tab } = this.#context.state
    return tab === 'packing' || tab === 'jobs'
  }
}

/** Jobs that the Packing tab shows: the longer they have been there, the sooner they get their letters. */
const lettered = ({ active, waiting }: QueueStatus): readonly number[] => [
  ...active.map(({ id }) => id),
  ...waiting.map(({ job }) => job.id),
]

const MOST_BYTES = 64 * 1024
const READ_MS = 10_000

type ReadEngineLog = JobsPort['readLog']
const TROUBLES: Readonly<Record<number, string>> = {
  [LOG_IS_GONE]: 'its files were deleted',
  [LOG_IS_OTHER]: 'its output is no longer a plain file',
}

type FinishLog = (trouble?: string, isCut?: boolean) => void

export class LogTail implements Disposable {
  readonly #work: WorkPort
  readonly #clock: Clock
  readonly #onRead: (log: LogView | undefined) => void
  readonly #readEngineLog: ReadEngineLog | undefined
  #key = ''
  #last: LogView | undefined
  #stop: (() => void) | undefined

  constructor(work: WorkPort, clock: Clock, onRead: (log: LogView | undefined) => void, readEngineLog?: ReadEngineLog) {
    this.#work = work
    this.#clock = clock
    this.#onRead = onRead
    this.#readEngineLog = readEngineLog
  }

  /** Reads it again; of another log than before, what was read is dropped first. */
  read(log: HostLog | EngineLog | undefined): void {
    const key = log === undefined ? '' : JSON.stringify(log)
    if (key !== this.#key) {
      this.#key = key
      this.#last = undefined
      this.#stop?.()
      this.#onRead(undefined)
    }
    if (log === undefined || this.#stop !== undefined) return
    let text = ''
    let hasEnded = false
    const finish = (trouble?: string, isCut = false) => {
      if (hasEnded) return
      hasEnded = true
      timer[Symbol.dispose]()
      this.#stop = undefined
      if (key !== this.#key) return
      const lines = text.split('\n')
      if (lines.at(-1) === '') lines.pop()
      const read = { lines: lines.map(shownLine), trouble, isCut: isCut || text.length >= MOST_BYTES }
      const isSilent = trouble !== undefined && lines.length === 0 && !Object.values(TROUBLES).includes(trouble)
      // What a host printed before it fell silent is what matters now.
      this.#last =
        isSilent && this.#last !== undefined ? { ...this.#last, trouble: `${trouble}; this was read before` } : read
      this.#onRead(this.#last)
    }
    const take = (more: string) => {
      if (text.length < MOST_BYTES) text += more
    }
    const timer = this.#clock.after(READ_MS, () => {
      abandon()
      finish('no answer in time')
    })
    this.#stop = () => {
      abandon()
      finish(undefined)
    }
    const abandon = 'host' in log ? this.#startScript(log, take, finish) : this.#startReading(log, take, finish)
  }

  #startScript({ host, program }: HostLog, take: (more: string) => void, finish: FinishLog) {
    const running = startScript(this.#work, host, program, take, (end) =>
      end.kind === 'exit' ? finish(TROUBLES[end.code], end.code === LOG_IS_CUT) : finish(formatOutcome(end)),
    )
    return () => running.abandon()
  }

  #startReading(log: EngineLog, take: (more: string) => void, finish: FinishLog) {
    const life = new AbortController()
    const takeAll = (answer: Uint8Array | string | undefined) => {
      if (typeof answer === 'string') return finish(answer)
      take(new TextDecoder().decode(answer))
      finish(undefined, (answer?.length ?? 0) >= LOG_BYTES)
    }
    void this.#readEngineLog?.(log, life.signal).then(takeAll, (error) => finish(messageOf(error)))
    return () => life.abort()
  }

  [Symbol.dispose](): void {
    this.read(undefined)
  }
}
