/** A study of Optuna's, from what READ_OPTUNA_PROGRAM printed. Pure. */
import { defined } from '../../base/defined.ts'
import { type JsonRecord, record } from '../../base/json-lines.ts'
import {
  BROKEN_SOURCE,
  choiceTexts,
  EMPTY_SOURCE,
  isOther,
  isTrialNumber,
  numberText,
  type SeenValues,
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
import type { StudySpec, TrialEnd } from './study.ts'

/** `read`: which text an internal value stands for. */
type Distribution = { readonly values: SeenValues; read(value: number): string | undefined }

const KINDS: Readonly<Record<string, TrialEnd['kind']>> = { COMPLETE: 'done', PRUNED: 'pruned', FAIL: 'failed' }

/** `spec`: what was known of it. `nowMs`: the end of trials that have none. */
export function fromOptuna(lines: readonly unknown[], spec: StudySpec, nowMs: number): SourceReading {
  const known = lines.flatMap<JsonRecord>((line) => record(line) ?? [])
  const error = known.find(({ op }) => op === 'error')
  if (error !== undefined) return sourceTrouble(error)
  if (known[0]?.op === 'same') return { kind: 'same' }
  const study = known.find(({ op }) => op === 'study')
  const end = known.at(-1)
  if (study === undefined || end?.op !== 'end') return BROKEN_SOURCE
  const beganMs = sourceTime(study.began)
  const total = Math.max(0, Number(study.trials) || 0)
  if (isOther(spec, beganMs)) return { kind: 'other' }
  const directions: readonly unknown[] = Array.isArray(study.directions) ? study.directions : []
  const names: readonly unknown[] = Array.isArray(study.metrics) ? study.metrics : []
  const metrics = sourceMetrics(
    names.map(String),
    directions.slice(0, 16).map((one) => one === 'MAXIMIZE'),
  )
  const parameters = new SourceParameters(spec)
  const distributions = new Map<unknown, Distribution>()
  const raw: { readonly line: JsonRecord; readonly values: Record<string, string> }[] = []
  for (const line of known) {
    if (line.op === 'distribution') {
      const distribution = distributionOf(line)
      if (distribution !== undefined) distributions.set(line.id, distribution)
    }
    if (line.op !== 'trial' || !isTrialNumber(line.number)) continue
    const values: Record<string, string> = {}
    raw.push({ line, values })
    for (const [original, pair] of Object.entries(record(line.params) ?? {})) {
      const [id, internal]: readonly unknown[] = Array.isArray(pair) ? pair : []
      const value = sourceNumber(internal)
      const name = value === undefined ? undefined : parameters.nameOf(original)
      if (value === undefined || name === undefined) continue
      const distribution = distributions.get(id)
      parameters.note(name, distribution?.values ?? { kind: 'numbers', low: value, high: value, isLog: false })
      const text = distribution === undefined ? numberText(value) : distribution.read(value)
      if (text !== undefined) values[name] = text
    }
  }
  if (parameters.texts().length === 0) return EMPTY_SOURCE
  const trials = raw.map(({ line, values }): SourceTrial => {
    const kind = KINDS[String(line.state)]
    return {
      number: Number(line.number),
      point: parameters.point(values),
      steps: sourceSteps(line.steps),
      end: kind === undefined ? undefined : endOf(line, kind, sourceValues(metrics, line.values), nowMs),
    }
  })
  const hasMore = end.more === true
  const { mark: _, ...before } = spec.source ?? { kind: 'optuna', url: '' }
  const mark = hasMore ? undefined : sourceText(study.since)
  const source = { ...before, ...defined({ names: parameters.renamed(), beganMs, mark }) }
  return {
    kind: 'read',
    name: sourceText(study.name) ?? '',
    spec: { ...spec, digits: SOURCE_DIGITS, parameters: parameters.texts(), metrics, source },
    trials,
    total,
    isWhole: false,
    hasMore,
  }
}

function distributionOf({ kind, values, low, high, step, log }: JsonRecord): Distribution | undefined {
  if (kind === 'choice') {
    const entries: readonly unknown[] = Array.isArray(values) ? values : []
    const texts = choiceTexts(entries.map((entry) => (Array.isArray(entry) ? String(entry[0]) : '')))
    return texts.length === 0 ? undefined : { values: { kind: 'texts', texts }, read: (value) => texts[value] }
  }
  const [from, to, by] = [low, high, step].map(sourceNumber)
  if (from === undefined || to === undefined || from > to) return undefined
  const isLog = log === true
  const between = !isLog && by !== undefined && by > 0 ? { step: by } : {}
  return { values: { kind: 'numbers', low: from, high: to, isLog, ...between }, read: numberText }
}

/** What an export of Muster's added is read back. */
function endOf(
  { attributes, started, ended }: JsonRecord,
  kind: TrialEnd['kind'],
  values: TrialEnd['values'],
  nowMs: number,
): TrialEnd {
  const own = record(attributes) ?? {}
  const startedMs = sourceTime(started)
  const devices: readonly unknown[] = Array.isArray(own['muster:devices']) ? own['muster:devices'].slice(0, 64) : []
  return {
    kind: kind === 'failed' && own['muster:state'] === 'done' ? 'done' : kind,
    values,
    endedMs: sourceTime(ended) ?? startedMs ?? nowMs,
    ...defined({
      startedMs,
      host: sourceText(own['muster:host']),
      reason: sourceText(own['muster:reason']),
      devices: devices.length === 0 ? undefined : devices.filter((one) => Number.isSafeInteger(one)).map(Number),
    }),
  }
}
