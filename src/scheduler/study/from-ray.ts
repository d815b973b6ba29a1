/** An experiment of Ray Tune, from what READ_EXPERIMENT_PROGRAM printed. Pure. */
import { defined } from '../../base/defined.ts'
import { type JsonRecord, list, record } from '../../base/json-lines.ts'
import type { Metric } from '../jobs/metric.ts'
import {
  BROKEN_SOURCE,
  choiceTexts,
  EMPTY_SOURCE,
  isOther,
  isTrialNumber,
  MOST_SOURCE_TRIALS,
  SOURCE_DIGITS,
  SourceParameters,
  type SourceReading,
  type SourceTrial,
  sourceMetrics,
  sourceNumber,
  sourceSteps,
  sourceText,
  sourceTime,
  sourceTrouble,
  sourceValues,
} from './source.ts'
import { pointKey } from './space.ts'
import type { StudySpec, TrialEnd } from './study.ts'

/** By path in the configuration: the text, and 0 for an integer, 1 for another number, nothing for a text. */
type Configuration = ReadonlyMap<string, readonly [text: string, kind: number | undefined]>

/** A trial as Ray has it, or in a population what it was between two exchanges. */
type Run = {
  readonly number: number
  readonly raw: Configuration
  readonly steps: unknown
  readonly end: TrialEnd | undefined
  readonly member?: number
  readonly parent?: number
  readonly parentStep?: number
}

export function fromRay(lines: readonly unknown[], spec: StudySpec, nowMs: number): SourceReading {
  const known = lines.flatMap<JsonRecord>((line) => record(line) ?? [])
  const error = known.find(({ op }) => op === 'error')
  if (error !== undefined) return sourceTrouble(error)
  if (known[0]?.op === 'same') return { kind: 'same' }
  const study = known.find(({ op }) => op === 'study')
  const end = known.at(-1)
  if (study === undefined || end?.op !== 'end') return BROKEN_SOURCE
  const beganMs = sourceTime(study.began)
  if (isOther(spec, beganMs)) return { kind: 'other' }
  const names = (Array.isArray(study.metrics) ? study.metrics : []).slice(0, 16).map(String)
  // Its files do not say which way is better.
  const metrics =
    spec.metrics.length > 0
      ? spec.metrics
      : sourceMetrics(
          names,
          names.map(() => false),
        )
  const told = known.filter(({ op, number }) => op === 'trial' && isTrialNumber(number))
  const exchanges = known.filter(({ op }) => op === 'population')
  const total = Math.max(0, Number(study.trials) || 0)
  const runs =
    exchanges.length === 0
      ? told.map((line) => only(line, metrics, nowMs))
      : generations(told, exchanges, metrics, nowMs)
  const parameters = new SourceParameters(spec)
  const searched = searchedNames(told, runs, spec)
  for (const original of searched) {
    const name = parameters.nameOf(original)
    const values = runs.map(({ raw }) => raw.get(original)).filter((value) => value !== undefined)
    if (name === undefined || values.length === 0) continue
    const numbers = values.map(([text, kind]) => (kind === undefined ? undefined : sourceNumber(text)))
    if (numbers.every((value) => value !== undefined)) {
      const isWhole = values.every(([, kind]) => kind === 0)
      const [low, high] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))]
      parameters.note(name, { kind: 'numbers', low, high, isLog: false, ...(isWhole ? { step: 1 } : {}) })
    } else
      parameters.note(name, { kind: 'texts', texts: [...new Set(values.flatMap(([text]) => choiceTexts([text])))] })
  }
  if (parameters.texts().length === 0) return EMPTY_SOURCE
  const trials = runs.map(({ number, raw, steps, end: own, ...descent }): SourceTrial => {
    const texts = searched.flatMap((original) => {
      const [name, value] = [parameters.nameOf(original), raw.get(original)]
      if (name === undefined || value === undefined) return []
      return [[name, value[1] === undefined ? (choiceTexts([value[0]])[0] ?? '') : value[0]]]
    })
    return {
      number,
      point: parameters.point(Object.fromEntries(texts)),
      steps: sourceSteps(steps),
      end: own,
      ...descent,
    }
  })
  const hasMore = end.more === true
  const { mark: _, ...before } = spec.source ?? { kind: 'ray', url: '' }
  const mark = hasMore ? undefined : sourceText(study.since)
  const source = { ...before, metrics: names, ...defined({ names: parameters.renamed(), beganMs, mark }) }
  return {
    kind: 'read',
    name: sourceText(study.name) ?? '',
    spec: { ...spec, digits: SOURCE_DIGITS, parameters: parameters.texts(), metrics, source },
    trials,
    total: exchanges.length === 0 ? total : runs.length,
    isWhole: exchanges.length > 0,
    hasMore,
  }
}

function configurationOf(value: unknown): Configuration {
  return new Map(
    Object.entries(record(value) ?? {}).flatMap(([path, pair]) => {
      const [text, kind]: readonly unknown[] = Array.isArray(pair) ? pair : []
      if (typeof text !== 'string') return []
      const isNumber = (kind === 0 || kind === 1) && sourceNumber(text) !== undefined
      return [[path, [text, isNumber ? kind : undefined] as const]]
    }),
  )
}

/** What Ray says that it searched, what is known, and everything that differs between trials. */
function searchedNames(
  told: readonly JsonRecord[],
  runs: readonly Run[],
  { source, parameters }: StudySpec,
): readonly string[] {
  const names = new Set(
    parameters.map((text) => text.slice(0, text.indexOf('='))).map((name) => source?.names?.[name] ?? name),
  )
  for (const { searched } of told)
    if (Array.isArray(searched)) for (const name of searched) if (typeof name === 'string') names.add(name)
  const first = new Map<string, string>()
  for (const { raw } of runs)
    for (const [path, [text]] of raw) {
      if ((first.get(path) ?? text) !== text) names.add(path)
      first.set(path, text)
    }
  return [...names].filter((name) => first.has(name)).slice(0, 64)
}

function endOf(line: JsonRecord, last: JsonRecord, values: TrialEnd['values'], nowMs: number): TrialEnd | undefined {
  if (line.state !== 'TERMINATED' && line.state !== 'ERROR') return undefined
  const startedMs = sourceTime(line.started)
  return {
    kind: line.state === 'ERROR' ? 'failed' : 'done',
    values,
    endedMs: sourceTime(line.ended) ?? sourceTime(last.ended) ?? startedMs ?? nowMs,
    ...defined({
      startedMs,
      host: sourceText(line.host) ?? sourceText(last.host),
      reason: line.state === 'ERROR' ? sourceText(line.error) : undefined,
    }),
  }
}

const runsOf = ({ runs }: JsonRecord): readonly JsonRecord[] => list(runs)

function only(line: JsonRecord, metrics: readonly Metric[], nowMs: number): Run {
  const own = runsOf(line)
  return {
    number: Number(line.number),
    raw: configurationOf(line.params),
    steps: own.flatMap(({ steps }) => (Array.isArray(steps) ? steps : [])),
    end: endOf(line, own.at(-1) ?? {}, sourceValues(metrics, line.values), nowMs),
  }
}

const MOST_EXCHANGES = 10_000

/**
 * Ray keeps a trial for each place of a population and gives it another one's checkpoint and other parameters. Here each of these
 * is a trial of its own, with a parent. Those that a population begins with keep their numbers; the others follow in order.
 */
function generations(
  told: readonly JsonRecord[],
  exchanges: readonly JsonRecord[],
  metrics: readonly Metric[],
  nowMs: number,
): readonly Run[] {
  const members = new Map(told.map((line) => [String(line.tag).split('@perturbed')[0] ?? '', line]))
  type Generation = {
    readonly number: number
    readonly raw: Configuration
    readonly parent?: number
    readonly parentStep?: number
    readonly reason?: string
  }
  const lines = new Map<JsonRecord, Generation[]>()
  for (const line of told) {
    const own = runsOf(line)
    const first = configurationOf(own[0]?.params ?? line.first)
    lines.set(line, [{ number: Number(line.number), raw: first.size > 0 ? first : configurationOf(line.params) }])
  }
  let next = Math.max(-1, ...told.map(({ number }) => Number(number))) + 1
  for (const { target, source, sourceAt, params } of exchanges.slice(0, MOST_EXCHANGES)) {
    const [to, from] = [lines.get(members.get(String(target)) ?? {}), lines.get(members.get(String(source)) ?? {})]
    const parent = from?.at(-1)
    if (to === undefined || parent === undefined || next >= MOST_SOURCE_TRIALS) continue
    const at = Number.isSafeInteger(sourceAt) ? ` at step ${sourceAt}` : ''
    const reason = `replaced by the checkpoint of trial ${parent.number}${at}`
    const own = { number: next++, raw: configurationOf(params), parent: parent.number, reason }
    to.push({ ...own, ...(Number.isSafeInteger(sourceAt) ? { parentStep: Number(sourceAt) } : {}) })
  }
  return [...lines].flatMap(([line, own]) => {
    const stretches = assign(runsOf(line), own)
    // A trial that ends before it reports anything still has the result of the one whose checkpoint it was given.
    const valued = configurationOf(line.valued)
    const isOwn = valued.size === 0 || keyOf(valued) === keyOf(own.at(-1)?.raw ?? valued)
    return own.map((generation, index): Run => {
      const stretch = stretches[index] ?? []
      const after = own[index + 1]
      const last = stretch.at(-1) ?? {}
      const ended: TrialEnd = {
        kind: 'pruned',
        values: sourceValues(metrics, last.values),
        endedMs: sourceTime(last.ended) ?? sourceTime(line.ended) ?? nowMs,
        ...defined({ startedMs: sourceTime(stretch[0]?.started), host: sourceText(last.host), reason: after?.reason }),
      }
      return {
        number: generation.number,
        raw: generation.raw,
        steps: stretch.flatMap(({ steps }) => (Array.isArray(steps) ? steps : [])),
        member: Number(line.number),
        ...defined({ parent: generation.parent, parentStep: generation.parentStep }),
        end:
          after === undefined
            ? endOf(line, last, sourceValues(metrics, isOwn ? line.values : last.values), nowMs)
            : ended,
      }
    })
  })
}

/** Results follow each other, and each has the configuration that it was made with. */
function assign(runs: readonly JsonRecord[], own: readonly { readonly raw: Configuration }[]): readonly JsonRecord[][] {
  const keys = own.map(({ raw }) => keyOf(raw))
  const found: JsonRecord[][] = own.map(() => [])
  let at = 0
  for (const run of runs) {
    const key = keyOf(configurationOf(run.params))
    const next = keys.indexOf(key, at)
    if (next >= 0) at = next
    found[at]?.push(run)
  }
  return found
}

const keyOf = (raw: Configuration): string =>
  pointKey(Object.fromEntries([...raw].map(([path, [text]]) => [path, text])))
