/**
 * A study that runs elsewhere, as it is read there: its trials, and the space that their parameters come from. Nothing of it is
 * believed: names become names of Muster's, values become texts, and both are bounded. Pure.
 */
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import type { Metric } from '../jobs/metric.ts'
import { canonicalPoint, canonicalText, type Point, parseParameter } from './space.ts'
import type { StudySource, StudySpec, Trial, TrialStep } from './study.ts'

/** What is known already, so that little is read again. */
export type SourceKnown = {
  /** Numbers of trials that are over: from, to. */
  readonly done: readonly (readonly [number, number])[]
  /** By number, of trials that were not: the last step that is known. */
  readonly steps: Readonly<Record<string, number>>
}

export type SourceTrial = Pick<Trial, 'number' | 'point' | 'end' | 'member' | 'parent' | 'parentStep'> & {
  /** New ones alone, of a trial that is not over. */
  readonly steps: readonly TrialStep[]
}

export type SourceProblem =
  | 'no-file'
  | 'no-storage'
  | 'no-study'
  | 'which'
  | 'no-optuna'
  | 'no-driver'
  | 'too-large'
  | 'no-trials'
  | 'failed'

/** What is stored of a reading. */
export type SourceTrials = {
  /** With the parameters that have been seen until now. */
  readonly spec: StudySpec
  /** Those that were not known, or have changed. */
  readonly trials: readonly SourceTrial[]
  /** Trials may have other numbers than before: these are all. */
  readonly isWhole: boolean
}

export type SourceReading =
  /** Nothing has changed there. */
  | { readonly kind: 'same' }
  /** Another study has taken its place: nothing that is known counts. */
  | { readonly kind: 'other' }
  | {
      readonly kind: 'trouble'
      readonly problem: SourceProblem
      readonly message: string
      /** The studies that are there. */
      readonly names: readonly string[]
    }
  | (SourceTrials & {
      readonly kind: 'read'
      /** Its name there. */
      readonly name: string
      /** How many there are; of more than MOST_SOURCE_TRIALS only the first ones are read. */
      readonly total: number
      /** The rest was left for another reading. */
      readonly hasMore: boolean
    })

/** What the program that reads is asked. */
export type SourceRequest = SourceKnown & {
  readonly url: string
  readonly name?: string
  /** Of Ray: by their names there; none: the one it optimises. */
  readonly metrics: readonly string[]
  /** The state of its files that is known. */
  readonly since?: string
  /** Trials before this one are not wanted. */
  readonly from: number
  readonly trials: number
  /** It leaves the rest for another reading when it has printed so much. */
  readonly bytes: number
}

/** What is read at once holds up the scheduler. */
const MOST_READING_BYTES = 4 * 1024 * 1024

export const sourceRequest = (
  { url, name, metrics = [], mark }: StudySource,
  known: SourceKnown,
  from = 0,
): SourceRequest => ({
  ...known,
  url,
  metrics,
  from,
  ...defined({ name, since: mark }),
  trials: MOST_SOURCE_TRIALS,
  bytes: MOST_READING_BYTES,
})

export const MOST_SOURCE_TRIALS = 100_000
/** A number that may be any keeps all its digits. */
export const SOURCE_DIGITS = 17
const MOST_PARAMETERS = 64
const MOST_CHOICES = 1_000
const MOST_CHOICES_LENGTH = 20_000
const MOST_TEXT = 200
const MOST_NAMES = 10_000

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const METRIC = /^[A-Za-z_][A-Za-z0-9_./-]{0,39}$/
const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/
const REAL = /^-?\d{1,20}(\.\d{1,20})?(e[-+]?\d{1,3})?$/i

/** What is known of the values of a parameter. */
export type SeenValues =
  | { readonly kind: 'texts'; readonly texts: readonly string[] }
  | {
      readonly kind: 'numbers'
      readonly low: number
      readonly high: number
      readonly step?: number
      readonly isLog: boolean
    }

/** A finite number, or undefined. */
export function sourceNumber(text: unknown): number | undefined {
  const number = typeof text === 'string' && REAL.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(number) ? number : undefined
}

/** As `--param` reads it. */
export function numberText(value: number): string {
  const text = String(value)
  return REAL.test(text) ? text : value.toExponential()
}

/** So that no list of choices makes the study itself large. */
function bounded(texts: readonly string[]): readonly string[] {
  let length = 0
  return texts.filter((text, index) => {
    length += text.length
    return index < MOST_CHOICES && length <= MOST_CHOICES_LENGTH
  })
}

/** Texts of choices, all different and usable in `--param`; those that are too many are missing. */
export function choiceTexts(values: readonly string[]): readonly string[] {
  const used = new Set<string>()
  const texts = values.slice(0, MOST_CHOICES).map((value) => {
    const plain = printable(value)
      .replaceAll(',', ';')
      .replace(/^(int|float|log):/, '$1;')
    const base = canonicalText(plain.slice(0, MOST_TEXT)) || '""'
    let text = base
    for (let count = 2; used.has(text); count++) text = `${base.slice(0, MOST_TEXT - 6)}~${count}`
    used.add(text)
    return text
  })
  return bounded(texts)
}

/** The parameters of a study by their names there, which may be any texts. */
export class SourceParameters {
  /** By name there. */
  readonly #names = new Map<string, string>()
  /** An object has something by these names already. */
  readonly #used = new Set(Object.getOwnPropertyNames(Object.prototype))
  readonly #values = new Map<string, SeenValues>()
  readonly #parsed = new Map<string, ReturnType<typeof parseParameter> | undefined>()

  /** Begins with those that are known. */
  constructor({ parameters, source }: Pick<StudySpec, 'parameters' | 'source'>) {
    for (const [name, original] of Object.entries(source?.names ?? {})) this.#take(original, name)
    for (const text of parameters) {
      const parameter = parseParameter(text)
      const { name } = parameter
      if (!this.#used.has(name)) this.#take(name, name)
      if (parameter.kind === 'choice') this.#values.set(name, { kind: 'texts', texts: parameter.values })
      else if (parameter.kind === 'real')
        this.#values.set(name, { kind: 'numbers', low: parameter.low, high: parameter.high, isLog: parameter.isLog })
      else {
        const unit = 10 ** parameter.digits
        const [low, step] = [Number(parameter.first) / unit, Number(parameter.step) / unit]
        const high = Number(parameter.first + parameter.step * BigInt(parameter.count - 1)) / unit
        this.#values.set(name, { kind: 'numbers', low, high, step, isLog: false })
      }
    }
  }

  /** The name of a parameter here; undefined: there are too many. */
  nameOf(original: string): string | undefined {
    const known = this.#names.get(original)
    if (known !== undefined || this.#used.size >= MOST_NAMES) return known
    const base = (
      NAME.test(original) ? original : `_${original.replace(/[^A-Za-z0-9_]/g, '_')}`.replace(/^_(?=[A-Za-z_])/, '')
    ).slice(0, 64)
    let name = base
    for (let count = 2; this.#used.has(name); count++) name = `${base.slice(0, 58)}_${count}`
    this.#take(original, name)
    return name
  }

  /** It may have these values, too. */
  note(name: string, values: SeenValues): void {
    const before = this.#values.get(name)
    if (before === undefined && this.#values.size >= MOST_PARAMETERS) return
    const merged = before === undefined ? values : merge(before, values)
    if (merged === before) return
    this.#values.set(name, merged)
    this.#parsed.delete(name)
  }

  /** As `--param`. */
  texts(): readonly string[] {
    return [...this.#values.keys()].flatMap((name) => {
      const text = this.#textOf(name)
      return text === undefined ? [] : [text]
    })
  }

  /** Names there that are others here. */
  renamed(): Readonly<Record<string, string>> | undefined {
    const others = [...this.#names].filter(([original, name]) => original !== name && this.#values.has(name))
    return others.length === 0 ? undefined : Object.fromEntries(others.map(([original, name]) => [name, original]))
  }

  /** The canonical point of raw texts, by names here. */
  point(raw: Readonly<Record<string, string>>): Point {
    return Object.fromEntries(
      [...this.#values.keys()].flatMap((name) => {
        const text = raw[name]
        const parameter = text === undefined ? undefined : this.#parse(name)
        if (text === undefined || parameter === undefined) return []
        const canonical = canonicalPoint(
          { parameters: [parameter], significantDigits: SOURCE_DIGITS },
          { [name]: text },
        )
        return [[name, canonical?.[name] ?? canonicalText(text)]]
      }),
    )
  }

  #take(original: string, name: string): void {
    this.#names.set(original, name)
    this.#used.add(name)
  }

  #textOf(name: string): string | undefined {
    return this.#parse(name) === undefined ? undefined : `${name}=${domainText(this.#values.get(name))}`
  }

  #parse(name: string) {
    if (this.#parsed.has(name)) return this.#parsed.get(name)
    let parameter: ReturnType<typeof parseParameter> | undefined
    try {
      parameter = parseParameter(`${name}=${domainText(this.#values.get(name))}`)
    } catch {
      // A domain that cannot be written: the parameter is left out.
    }
    this.#parsed.set(name, parameter)
    return parameter
  }
}

function merge(one: SeenValues, other: SeenValues): SeenValues {
  if (one.kind === 'numbers' && other.kind === 'numbers') {
    const [low, high] = [Math.min(one.low, other.low), Math.max(one.high, other.high)]
    const step = one.step !== undefined && one.step === other.step ? one.step : undefined
    const isAligned = step !== undefined && Math.abs(((one.low - other.low) / step) % 1) < 1e-9
    const isLog = one.isLog && other.isLog
    if (low === one.low && high === one.high && isLog === one.isLog && (isAligned || one.step === undefined)) return one
    return { kind: 'numbers', low, high, isLog, ...(isAligned ? { step } : {}) }
  }
  const [first, second] = [one, other].map((values) =>
    values.kind === 'texts' ? values.texts : [values.low, values.high].map((value) => canonicalText(numberText(value))),
  )
  const texts = [...new Set([...(first ?? []), ...(second ?? [])])]
  if (one.kind === 'texts' && texts.length === one.texts.length) return one
  return { kind: 'texts', texts: bounded(texts) }
}

/** Behind `NAME=`. */
function domainText(values: SeenValues | undefined): string {
  if (values === undefined) return ''
  if (values.kind === 'texts') return values.texts.join(',')
  const { low, high, step, isLog } = values
  const [from, to] = [numberText(low), numberText(high)]
  if (low === high) return canonicalText(from)
  if (isLog && low > 0) return `log:${from}:${to}`
  if (step !== undefined && (high - low) / step < MOST_SOURCE_TRIALS) {
    const numbers = [from, to, numberText(step)]
    if (numbers.every((text) => DECIMAL.test(text)))
      return [low, step].every(Number.isInteger)
        ? `int:${from}:${to}${step === 1 ? '' : `:${step}`}`
        : `float:${numbers.join(':')}`
  }
  return `float:${from}:${to}`
}

/** `isMost`: of each, larger is better. */
export function sourceMetrics(names: readonly string[], isMost: readonly boolean[]): readonly Metric[] {
  const used = new Set<string>()
  return isMost.map((most, index) => {
    const given = names[index] ?? (isMost.length === 1 ? 'value' : `value_${index}`)
    const base = METRIC.test(given) ? given : `_${given.replace(/[^A-Za-z0-9_./-]/g, '_')}`.slice(0, 36)
    let name = base
    for (let count = 2; used.has(name); count++) name = `${base.slice(0, 36)}_${count}`
    used.add(name)
    return { name, ...(most ? { isMost: true } : {}) }
  })
}

/** Printable, and no longer than a line shows. */
export const sourceText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? printable(value.slice(0, MOST_TEXT)) : undefined

const LATEST_MS = 4e12
/** A time that may be one. */
export const sourceTime = (value: unknown): number | undefined =>
  typeof value === 'number' && value > 0 && value < LATEST_MS ? Math.floor(value) : undefined

export function sourceSteps(pairs: unknown): readonly TrialStep[] {
  const entries: readonly unknown[] = Array.isArray(pairs) ? pairs : []
  return entries.flatMap((pair): TrialStep[] => {
    const [step, text]: readonly unknown[] = Array.isArray(pair) ? pair : []
    const value =
      text === 'inf' ? Number.POSITIVE_INFINITY : text === '-inf' ? Number.NEGATIVE_INFINITY : sourceNumber(text)
    return Number.isSafeInteger(step) && value !== undefined ? [{ step: Number(step), value }] : []
  })
}

/** As they are printed; NaN and infinity are words. */
export function sourceValues(metrics: readonly Metric[], texts: unknown): Readonly<Record<string, string>> {
  const values: readonly unknown[] = Array.isArray(texts) ? texts : []
  return Object.fromEntries(
    metrics.flatMap(({ name }, index) => {
      const text = values[index]
      if (typeof text !== 'string' || !(REAL.test(text) || ['inf', '-inf', 'nan'].includes(text))) return []
      return [[name, canonicalText(text)]]
    }),
  )
}

export const isTrialNumber = (value: unknown): boolean =>
  Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) < MOST_SOURCE_TRIALS

/** `beganMs`: when its first trial began there, which does not change. */
export const isOther = ({ source }: StudySpec, beganMs: number | undefined): boolean =>
  source?.beganMs !== undefined && beganMs !== undefined && source.beganMs !== beganMs

const PROBLEMS: readonly string[] = [
  'no-file',
  'no-storage',
  'no-study',
  'which',
  'no-optuna',
  'no-driver',
  'too-large',
  'no-trials',
] satisfies readonly SourceProblem[]

/** What its line of `op` error says. */
export function sourceTrouble(line: Readonly<Record<string, unknown>>): SourceReading {
  const names: readonly unknown[] = Array.isArray(line.names) ? line.names : []
  return {
    kind: 'trouble',
    problem: PROBLEMS.includes(String(line.kind)) ? (String(line.kind) as SourceProblem) : 'failed',
    message: sourceText(line.message) ?? '',
    names: names.flatMap((name) => sourceText(name) ?? []).slice(0, 20),
  }
}

const trouble = (problem: SourceProblem, message = ''): SourceReading => ({
  kind: 'trouble',
  problem,
  message,
  names: [],
})

/** As if the program had been cut off. */
export const BROKEN_SOURCE = trouble('failed', 'its answer is incomplete')
/** There is nothing yet that a study could be made of. */
export const EMPTY_SOURCE = trouble('no-trials')

/** Without the password, if it has one. */
export const shownUrl = (url: string): string =>
  printable(
    url.replace(/^([a-z][a-z0-9+]*:\/\/[^/@]*?):[^/]*@/i, '$1:***@').replace(/([?&][^=&]*pass[^=&]*=)[^&]*/gi, '$1***'),
  )

/** Without that password. */
export const shownSpec = (spec: StudySpec): StudySpec =>
  spec.source === undefined ? spec : { ...spec, source: { ...spec.source, url: shownUrl(spec.source.url) } }

/** Why it cannot be read, and what to do about it. */
export function sourceSentence(
  { kind, url, name, host = 'this machine' }: Pick<StudySource, 'kind' | 'url' | 'name' | 'host'>,
  { problem, message, names }: Extract<SourceReading, { kind: 'trouble' }>,
): { readonly reason: string; readonly hint?: string } {
  const shown = shownUrl(url)
  const listed = names.join(', ')
  switch (problem) {
    case 'no-file':
      return { reason: `cannot read ${shown} on ${host}: it does not exist or is not readable` }
    case 'no-storage':
      return kind === 'ray'
        ? { reason: `${shown} is not a Ray Tune experiment: it has no experiment_state-*.json` }
        : { reason: `${shown} is not an Optuna storage` }
    case 'no-study':
      return {
        reason:
          name === undefined ? `there is no study in ${shown}` : `there is no study ${printable(name)} in ${shown}`,
        ...(listed === '' ? {} : { hint: `Studies there: ${listed}.` }),
      }
    case 'which':
      return { reason: `there are several studies in ${shown}`, hint: `Choose one with --study-name: ${listed}.` }
    case 'no-optuna':
      return {
        reason: `optuna is not installed on ${host}`,
        hint: 'Name an environment that has it: --from-env venv:PATH or conda:NAME.',
      }
    case 'no-driver':
      return {
        reason: `Optuna on ${host} cannot open ${shown}: ${message}`,
        hint: 'Install the driver of that database.',
      }
    case 'too-large':
      return { reason: `${shown} is too large to read` }
    case 'no-trials':
      return {
        reason: `${shown} has no trial with parameters yet`,
        hint: 'Try again when its first trial has started.',
      }
    case 'failed':
      return { reason: `cannot read ${shown} on ${host}: ${message}` }
  }
}
