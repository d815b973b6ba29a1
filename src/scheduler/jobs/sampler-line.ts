/**
 * The scheduler's end of a sampler of Optuna, which runs as a program on a host. It is asked for as many suggestions as are wanted
 * at once, since each would otherwise wait for the one before. The program knows nothing that is not in the rows of the study, so it may be lost at any time, is opened again when the next
 * suggestion is needed, and is then told everything. Its lines are bounded, and it is believed nothing but a suggestion.
 */
import { type Clock, hasPassed } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { LineReader } from '../../base/line-reader.ts'
import { printable } from '../../base/printable.ts'
import { samplerOf, samplerStart, samplerTrial, samplerValues } from '../study/optuna.ts'
import type { SamplerPlace, Study, Trial, TrialEnd } from '../study/study.ts'
import type { JobShell, JobShellHandlers } from './host-line.ts'

/** Opens a shell on the host of `place` and starts the program; calls back asynchronously. */
export interface SamplerPort {
  open(place: SamplerPlace, handlers: JobShellHandlers): JobShell
}

export type SamplerLineOptions = {
  readonly study: Pick<Study, 'spec'>
  /** All trials, when the program begins. */
  history(): readonly Trial[]
  /** `poll` has something new. */
  onAnswer(): void
  readonly port: SamplerPort
  readonly clock: Clock
}

export type SamplerAnswer =
  | { readonly kind: 'raw'; readonly values: Readonly<Record<string, string>>; readonly repeats: number }
  | { readonly kind: 'wait' }
  | { readonly kind: 'trouble'; readonly reason: string }

/** The program says more often that it is alive. */
const SILENT_MS = 60_000
/** Of what it works at for so long, the rest takes too long as well. */
const MOST_WORK_MS = 600_000
const FIRST_PAUSE_MS = 1_000
const LAST_PAUSE_MS = 60_000
const MOST_LINE = 64 * 1024
/** What it may print, and what each question adds to that. */
const MOST_CHARACTERS = 1024 * 1024
const ANSWER_CHARACTERS = MOST_LINE
const SAID_LINES = 3
const MOST_SAID = 300
const MOST_MESSAGE = 1_000
const MOST_NAMES = 64
const MOST_ASKED = 64
const MOST_VALUE = 200

type Opened = {
  readonly shell: JobShell
  state: 'begun' | 'told' | 'ready'
  /** One more than a line may have, so that a longer one is noticed. */
  readonly held: LineReader
  /** The last lines that do not come from the program: why a shell failed. */
  said: readonly string[]
  leftCharacters: number
  /** While it works at something. */
  silence?: Disposable
  limit?: Disposable
}

type Suggestion = {
  /** Of its question. */
  readonly id: number
  readonly values: Readonly<Record<string, string>>
  readonly repeats: number
}

type Message = Readonly<Record<string, unknown>>

export class SamplerLine implements Disposable {
  readonly #options: SamplerLineOptions
  #opened: Opened | undefined
  #id = 0
  /** How many suggestions are wanted, with those that are here already. */
  #wanted = 0
  /** How often the suggestion of each question under way was repeated, by its number. */
  readonly #asked = new Map<number, number>()
  #answers: readonly Suggestion[] = []
  /** Of a suggestion that was lost with the program. */
  #lostRepeats = 0
  #trouble: { readonly reason: string; readonly sinceMs: number; readonly pauseMs: number } | undefined
  #failures = 0
  #pause: Disposable | undefined

  constructor(options: SamplerLineOptions) {
    this.#options = options
  }

  /** Asks for suggestions until `count` are here or on their way. The first one stays until `repeat` or `take`. */
  poll(count = 1): SamplerAnswer {
    const trouble = this.#trouble
    const isPausing = trouble !== undefined && !hasPassed(trouble.sinceMs, trouble.pauseMs, this.#options.clock.now())
    if (!isPausing) {
      this.#wanted = Math.min(MOST_ASKED, count)
      if (this.#opened !== undefined) this.#ask(this.#opened)
      else if (this.#isMissing) this.#open()
    }
    const [answer] = this.#answers
    if (answer !== undefined) return { kind: 'raw', values: answer.values, repeats: answer.repeats }
    const reason = this.#opened === undefined ? this.#trouble?.reason : undefined
    return reason === undefined ? { kind: 'wait' } : { kind: 'trouble', reason }
  }

  /** The first suggestion was tried already, with these values (undefined: it failed): asks for another one. */
  repeat(values: readonly number[] | undefined): void {
    const [answer, ...others] = this.#answers
    if (answer === undefined) return
    this.#answers = others
    const repeats = answer.repeats + 1
    if (this.#opened?.state !== 'ready') {
      this.#lostRepeats = repeats
      return
    }
    this.#asked.set(answer.id, repeats)
    this.#send({ op: 'repeat', id: answer.id, values: values === undefined ? null : samplerValues(values) })
    this.#expect(this.#opened)
  }

  /** The first suggestion, or the point of this trial in its place, is now this trial. */
  take({ number, point }: Pick<Trial, 'number' | 'point'>): void {
    const [answer, ...others] = this.#answers
    if (answer === undefined) return
    this.#answers = others
    this.#wanted = Math.max(0, this.#wanted - 1)
    this.#send({ op: 'take', id: answer.id, number, point })
  }

  get #isMissing(): boolean {
    return this.#wanted > this.#answers.length
  }

  /** Also of a trial that it did not suggest. */
  tell(trial: Trial & { readonly end: TrialEnd }): void {
    this.#send({ op: 'tell', ...samplerTrial(this.#options.study, trial) })
  }

  [Symbol.dispose](): void {
    this.#close()
    this.#pause?.[Symbol.dispose]()
  }

  #open(): void {
    const { port, study } = this.#options
    const place = study.spec.sampler
    if (place === undefined) return this.#lose('the study names no host for Optuna', LAST_PAUSE_MS)
    this.#pause?.[Symbol.dispose]()
    const isThis = () => this.#opened === opened
    let opened: Opened | undefined
    try {
      const shell = port.open(place, {
        onText: (text) => {
          if (isThis() && opened !== undefined) this.#read(opened, text)
        },
        onEnd: (reason) => {
          if (isThis() && opened !== undefined) this.#end([reason, ...saidBy(opened)].join(': '))
        },
      })
      opened = { shell, state: 'begun', held: new LineReader(MOST_LINE + 1), said: [], leftCharacters: MOST_CHARACTERS }
    } catch (error) {
      return this.#lose(this.#named(messageOf(error)))
    }
    this.#opened = opened
    this.#expect(opened)
  }

  #ask(opened: Opened): void {
    if (opened.state !== 'ready') return
    while (this.#asked.size + this.#answers.length < this.#wanted) {
      this.#asked.set(++this.#id, this.#lostRepeats)
      this.#lostRepeats = 0
      this.#send({ op: 'ask', id: this.#id })
      this.#expect(opened)
    }
  }

  /** Before it was told the history, it needs nothing else. */
  #send(message: object): void {
    if (this.#opened !== undefined && this.#opened.state !== 'begun')
      this.#opened.shell.write(`${JSON.stringify(message)}\n`)
  }

  #expect(opened: Opened): void {
    this.#rest(opened)
    opened.leftCharacters = Math.min(MOST_CHARACTERS, opened.leftCharacters + ANSWER_CHARACTERS)
    this.#listen(opened)
    opened.limit = this.#options.clock.after(MOST_WORK_MS, () =>
      this.#end(`no suggestion within ${MOST_WORK_MS / 60_000} min; --method random needs no time for it`),
    )
  }

  #listen(opened: Opened): void {
    opened.silence?.[Symbol.dispose]()
    opened.silence = this.#options.clock.after(SILENT_MS, () => this.#end(`no answer within ${SILENT_MS / 1000} s`))
  }

  #rest({ silence, limit }: Opened): void {
    silence?.[Symbol.dispose]()
    limit?.[Symbol.dispose]()
  }

  #read(opened: Opened, text: string): void {
    opened.leftCharacters -= text.length
    if (opened.leftCharacters < 0)
      return this.#end(`disconnected: it printed more than ${formatBytes(MOST_CHARACTERS)}`)
    const lines = opened.held.push(text)
    if (opened.held.heldLength > MOST_LINE)
      return this.#end(`disconnected: it printed a line of more than ${formatBytes(MOST_LINE)}`)
    for (const line of lines) {
      const message = messageIn(line)
      if (message !== undefined) this.#hear(opened, message)
      else if (line.trim() !== '') opened.said = [...opened.said, line.trim().slice(0, MOST_SAID)].slice(-SAID_LINES)
      if (this.#opened !== opened) return
    }
  }

  #hear(opened: Opened, message: Message): void {
    const { study, history, onAnswer } = this.#options
    if (message.op === 'error') {
      const { reason, isLasting } = this.#complaint(message, saidBy(opened))
      this.#lose(reason, isLasting ? LAST_PAUSE_MS : undefined)
      return onAnswer()
    }
    if (message.op === 'hello' && opened.state === 'begun') {
      opened.state = 'told'
      this.#send(samplerStart(study, history()))
    } else if (message.op === 'ready' && opened.state === 'told') {
      opened.state = 'ready'
      this.#rest(opened)
      this.#ask(opened)
    } else if (message.op === 'point' && typeof message.id === 'number' && this.#asked.has(message.id)) {
      const { id } = message
      this.#answers = [...this.#answers, { id, values: valuesIn(message.point), repeats: this.#asked.get(id) ?? 0 }]
      this.#asked.delete(id)
      if (this.#asked.size === 0) this.#rest(opened)
      else this.#listen(opened)
      this.#failures = 0
      this.#trouble = undefined
      onAnswer()
    } else if (message.op === 'busy' && (opened.state !== 'ready' || this.#asked.size > 0)) this.#listen(opened)
  }

  #complaint(
    { kind, message }: Message,
    said: readonly string[],
  ): { readonly reason: string; readonly isLasting: boolean } {
    const { method = '', sampler } = this.#options.study.spec
    const name = samplerOf(method) ?? method
    const text = typeof message === 'string' ? printable(message.slice(0, MOST_MESSAGE)) : ''
    const environment =
      sampler?.environment === undefined ? 'its environment' : `the environment ${sampler.environment}`
    const lasting: Readonly<Record<string, string>> = {
      'no-python': `there is no python3 on ${this.#where()}. Name another host with --sampler-on`,
      'no-optuna': `Optuna is not installed on ${this.#where()}. Install it there, or name another host with --sampler-on; --method random works without it`,
      'no-environment': [`cannot activate ${environment} on ${sampler?.host ?? ''}`, ...said].join(': '),
      'no-sampler': `there is no sampler ${name} on ${this.#where()}: ${text}`,
      options: `${name} rejects its options: ${text}`,
    }
    const reason = typeof kind === 'string' && Object.hasOwn(lasting, kind) ? lasting[kind] : undefined
    return {
      reason: reason ?? this.#named([text, ...said].find((one) => one !== '') ?? 'it failed'),
      isLasting: reason !== undefined,
    }
  }

  #where(): string {
    const { host = '', environment } = this.#options.study.spec.sampler ?? {}
    return environment === undefined ? host : `${host} (environment ${environment})`
  }

  #named(reason: string): string {
    return `Optuna on ${this.#where()}: ${reason}`
  }

  #end(reason: string): void {
    const wasNeeded = this.#isMissing
    this.#lose(this.#named(reason))
    if (wasNeeded) this.#options.onAnswer()
  }

  /** `pauseMs`: until it is opened again. */
  #lose(reason: string, pauseMs = Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures)): void {
    this.#close()
    // It ended while nothing was asked: the next question opens it again.
    if (!this.#isMissing) return
    const { clock, onAnswer } = this.#options
    this.#wanted = 0
    this.#failures++
    this.#trouble = { reason, sinceMs: clock.now(), pauseMs }
    this.#pause?.[Symbol.dispose]()
    this.#pause = clock.after(pauseMs, onAnswer)
  }

  #close(): void {
    const opened = this.#opened
    if (opened === undefined) return
    this.#opened = undefined
    this.#lostRepeats = Math.max(this.#lostRepeats, ...this.#asked.values())
    this.#asked.clear()
    this.#rest(opened)
    opened.shell[Symbol.dispose]()
  }
}

/** In one printable line, if there is anything. */
const saidBy = ({ said }: Opened): readonly string[] => (said.length === 0 ? [] : [printable(said.join(' · '))])

function messageIn(line: string): Message | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const message: unknown = JSON.parse(line)
    return typeof message === 'object' && message !== null && 'op' in message ? (message as Message) : undefined
  } catch {
    return undefined
  }
}

/** What is no text, or too long for a value, is left out; a point without it is not in the space. */
function valuesIn(point: unknown): Readonly<Record<string, string>> {
  const entries = typeof point === 'object' && point !== null ? Object.entries(point).slice(0, MOST_NAMES) : []
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].length <= MOST_VALUE),
  )
}
