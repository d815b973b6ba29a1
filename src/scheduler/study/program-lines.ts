/** What programs that ask for points say, and what they are answered: JSON lines. Nothing of a line is believed. Pure. */
import { defined } from '../../base/defined.ts'
import { type JsonRecord, numberOf, parseJson, record, textOf } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import { type Metric, type MetricValues, metricNumber } from '../jobs/metric.ts'
import type { Point, Space } from './space.ts'

/** `study`: by name. `token`: of the one who was given the trial; undefined: a person, who may tell of any trial. */
export type ProgramRequest = { readonly study: string } & (
  | { readonly kind: 'ask'; readonly isKept: boolean; readonly expiresS?: number }
  | { readonly kind: 'best' }
  | ({ readonly kind: 'hold' } & TrialName)
  | ({ readonly kind: 'again' } & TrialName)
  | ({ readonly kind: 'step'; readonly step: number; readonly value: number } & TrialName)
  | ({ readonly kind: 'tell'; readonly told: Told; readonly host?: string } & TrialName)
)

type TrialName = { readonly trial: number; readonly token?: string }

/** `values`: as they came, by the names of metrics, or in their order. */
export type Told =
  | { readonly kind: 'values'; readonly values: unknown }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'pruned' }

/** `done`: the study has no more points. `gone`: another program has the trial now. `over`: the trial is. */
export type ProgramAnswer =
  | { readonly trial: number; readonly token: string; readonly parameters: Point; readonly space: Space }
  | {
      readonly best: readonly BestTrial[]
      readonly directions: readonly ('maximize' | 'minimize')[]
      readonly space: Space
    }
  | { readonly done: string }
  | { readonly error: string }
  | { readonly gone: string }
  | { readonly over: string }
  | { readonly stop: string }
  | Record<never, never>

/** `values`: in the order of the metrics. */
export type BestTrial = { readonly trial: number; readonly parameters: Point; readonly values: readonly number[] }
/** Of a Pareto front, so many trials are told. */
export const MOST_BEST = 200

/** Characters of a line. */
export const MOST_LINE = 65_536
const MOST_TEXT = 500
const MOST_EXPIRES_S = 10 * 365 * 86_400

/** What is wrong as a string. */
export function parseRequest(line: string): ProgramRequest | string {
  // Python writes numbers that JSON does not have: they are no values.
  const asked = record(parseJson(line) ?? parseJson(line.replaceAll(/-?\b(?:NaN|Infinity)\b/g, 'null')))
  if (asked === undefined) return 'a line must be a JSON object such as {"ask":"wf"}'
  const kind = KINDS.find((one) => Object.hasOwn(asked, one))
  if (kind === undefined) return `one of these is missing: ${KINDS.join(', ')}`
  const study = textOf(asked[kind])
  if (study === '' || study.length > MOST_TEXT) return `"${kind}" must be the name of a study`
  if (kind === 'ask') {
    const expiresS = numberOf(asked.expires)
    const isWrong =
      expiresS === undefined ? Object.hasOwn(asked, 'expires') : expiresS <= 0 || expiresS > MOST_EXPIRES_S
    if (isWrong) return '"expires" must be a number of seconds'
    return { kind, study, isKept: asked.keep === true, ...defined({ expiresS }) }
  }
  if (kind === 'best') return { kind, study }
  const { trial } = asked
  if (typeof trial !== 'number' || !Number.isSafeInteger(trial) || trial < 0)
    return '"trial" must be a number of a trial'
  const named = { study, trial, ...(asked.token === undefined ? {} : { token: textOf(asked.token) }) }
  if (kind === 'hold' || kind === 'again') return { kind, ...named }
  if (kind === 'step') {
    const [step, value] = [numberOf(asked.at), numberOf(asked.value)]
    return step === undefined || value === undefined
      ? '"at" must be the number of the step, and "value" a number'
      : { kind, ...named, step, value }
  }
  const host = shortText(asked.host)
  return { kind, ...named, told: toldOf(asked), ...(host === '' ? {} : { host }) }
}

const KINDS = ['ask', 'tell', 'step', 'hold', 'again', 'best'] as const

function toldOf(asked: JsonRecord): Told {
  if (asked.pruned === true) return { kind: 'pruned' }
  if (!Object.hasOwn(asked, 'failed')) return { kind: 'values', values: asked.values }
  return { kind: 'failed', reason: shortText(asked.failed) || 'its program said that it failed' }
}

const shortText = (value: unknown): string => printable(textOf(value).slice(0, MOST_TEXT))

/** What was told as values of these metrics. `wrong`: it cannot be meant; `failed`: the objective has no value. */
export function valuesOf(
  told: unknown,
  metrics: readonly Metric[],
): { readonly values: MetricValues } | { readonly wrong: string } | { readonly failed: string } {
  const names = metrics.map(({ name }) => name)
  const byName = record(told)
  const inOrder: readonly unknown[] = Array.isArray(told) ? told : told === undefined ? [] : [told]
  const given = byName ?? Object.fromEntries(inOrder.slice(0, names.length).map((value, at) => [names[at], value]))
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  const isMany = byName === undefined && inOrder.length > names.length
  if (unknown !== undefined || isMany)
    return {
      wrong: `its metrics are: ${names.join(', ') || 'none'}${unknown === undefined ? '' : `, not ${printable(unknown.slice(0, MOST_TEXT))}`}`,
    }
  const missing = names.find((name) => !Object.hasOwn(given, name))
  if (missing !== undefined) return { wrong: `the value of ${missing} is missing` }
  const values = names.map((name) => [name, numberOf(given[name])] as const)
  const none = values.find(([, value]) => value === undefined)
  if (none !== undefined) return { failed: `its ${none[0]} was not a number` }
  return { values: Object.fromEntries(values.map(([name, value]) => [name, String(value)])) }
}

/** By their numbers. */
export const areSame = (one: MetricValues, other: MetricValues): boolean =>
  Object.keys({ ...one, ...other }).every((name) => metricNumber(one[name]) === metricNumber(other[name]))

/** A line with its end. Values are numbers where all of the parameter's are, and in their canonical form. */
export function answerLine(answer: ProgramAnswer): string {
  if (!('space' in answer)) return `${JSON.stringify(answer)}\n`
  const { space } = answer
  if ('trial' in answer)
    return `{"trial":${answer.trial},"token":${JSON.stringify(answer.token)},"parameters":${pointText(answer.parameters, space)}}\n`
  const best = answer.best.map(
    ({ trial, parameters, values }) =>
      `{"trial":${trial},"parameters":${pointText(parameters, space)},"values":${JSON.stringify(values)}}`,
  )
  return `{"best":[${best.join()}],"directions":${JSON.stringify(answer.directions)}}\n`
}

function pointText(point: Point, { parameters }: Space): string {
  const members = parameters.flatMap((parameter) => {
    const value = point[parameter.name]
    if (value === undefined) return []
    const isNumber = parameter.kind !== 'choice' || parameter.values.every((one) => NUMBER.test(one))
    return [`${JSON.stringify(parameter.name)}:${isNumber ? value : JSON.stringify(value)}`]
  })
  return `{${members.join()}}`
}

/** Of JSON. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/
