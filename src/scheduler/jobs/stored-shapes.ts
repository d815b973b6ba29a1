/**
 * Whether what a row of the queue holds has what Muster reads of it: not whether it makes sense, which is checked when it is submitted.
 * Earlier versions wrote less, so only what every version wrote is required.
 */
import type { StudySpec, StudyState } from '../study/study.ts'
import { FINAL_KINDS, type JobSpec, type JobState } from './job.ts'
import type { MetricValues } from './metric.ts'

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'
const isNothing = (value: unknown): value is undefined => value === undefined
const isListOf = (value: unknown, isItem: (item: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isItem)
const isOptional = (value: unknown, isWhole: (value: unknown) => boolean): boolean => isNothing(value) || isWhole(value)

export function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  if (!isObject(value)) return false
  for (const name in value) if (!isText(value[name])) return false
  return true
}

export const isNumbers = (value: unknown): value is readonly number[] => isListOf(value, isNumber)

export const isPairs = (value: unknown): value is readonly (readonly [string, string])[] =>
  isListOf(value, (pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isText))

const isPlace = (value: unknown): boolean =>
  isObject(value) && isText(value.host) && isNumbers(value.devices) && isOptional(value.address, isText)
const isBundle = (value: unknown): boolean =>
  isObject(value) &&
  (value.kind === 'sent' || value.kind === 'begun' || (value.kind === 'ended' && isObject(value.end)))

const isFallen = ({ failed, failedMs }: Fields): boolean =>
  isOptional(failed, isNumber) && isOptional(failedMs, isNumber)

/** `kind`: as its row has it. */
export function isJobState(value: unknown, { kind }: { readonly kind?: unknown }): value is JobState {
  if (!isObject(value) || value.kind !== kind) return false
  if (kind === 'queued' || kind === 'held') return true
  const { places, bundles, startedMs } = value
  if (FINAL.has(kind))
    return (
      isNumber(value.endedMs) &&
      isOptional(value.reason, isText) &&
      isFallen(value) &&
      isOptional(places, (list) => isListOf(list, isPlace)) &&
      isOptional(bundles, (list) => isListOf(list, isBundle))
    )
  const isWhole = isListOf(places, isPlace) && isListOf(bundles, isBundle) && isNumber(startedMs)
  return ACTIVE.has(kind) && isWhole && isFallen(value)
}

const FINAL: ReadonlySet<unknown> = new Set(FINAL_KINDS)
const ACTIVE: ReadonlySet<unknown> = new Set(['starting', 'pending', 'running', 'ending'])

const isRequest = (value: unknown): boolean =>
  isObject(value) && [value.cpuMilli, value.memoryBytes, value.gpuCount, value.gpuMilli].every(isNumber)
const isRole = (value: unknown): boolean =>
  isObject(value) && isText(value.name) && isNumber(value.count) && isRequest(value.request)
const isMetric = (value: unknown): boolean => isObject(value) && isText(value.name)

export function isJobSpec(value: unknown): value is JobSpec {
  if (!isObject(value)) return false
  const { launch, roles, metrics, typed, silence, needs } = value
  return (
    isText(value.name) &&
    isText(value.command) &&
    isTexts(value.environment) &&
    isRequest(value.request) &&
    isNumber(value.bundles) &&
    isText(value.strategy) &&
    isNumber(value.retries) &&
    isOptional(typed, isTexts) &&
    isOptional(silence, isObject) &&
    isOptional(needs, (one) => isObject(one) && Array.isArray(one.bundles)) &&
    isOptional(metrics, (list) => isListOf(list, isMetric)) &&
    isOptional(roles, (list) => isListOf(list, isRole)) &&
    isOptional(value.leaders, isNumbers) &&
    isOptional(launch, (one) => isObject(one) && isText(one.kind) && isTexts(one.options))
  )
}

export const isMetricValues = (value: unknown): value is MetricValues => isTexts(value)

export function isStudySpec(value: unknown): value is StudySpec {
  if (!isObject(value)) return false
  const { parameters, metrics, prune, pbt, sampler, source } = value
  return (
    isListOf(parameters, isText) &&
    isText(value.method) &&
    isNumber(value.seed) &&
    isListOf(metrics, isMetric) &&
    isNumber(value.repeat) &&
    isNumber(value.failures) &&
    isOptional(prune, isObject) &&
    isOptional(pbt, (one) => isObject(one) && isListOf(one.mutate, isText)) &&
    isOptional(sampler, (one) => isObject(one) && isTexts(one.options)) &&
    isOptional(source, (one) => isObject(one) && isText(one.url))
  )
}

export function isStudyState(value: unknown): value is StudyState {
  if (!isObject(value)) return false
  const { kind, population } = value
  return (
    (kind === 'running' || kind === 'stopped' || kind === 'done') &&
    isOptional(population, (one) => isObject(one) && Array.isArray(one.marks) && Array.isArray(one.replacements))
  )
}

/** It changes with each version: only what is always read of it counts. */
export const isReport = (value: unknown): boolean =>
  isObject(value) &&
  isNumber(value.atMs) &&
  isListOf(value.hosts, isObject) &&
  isOptional(value.declared, (list) => isListOf(list, isObject)) &&
  isTexts(value.down) &&
  isObject(value.expectedS) &&
  isOptional(value.rooms, isObject) &&
  isOptional(value.waits, isObject)

/** What is kept of a trial besides its columns. */
export const isTrialMore = (value: unknown): value is Fields =>
  isObject(value) &&
  isOptional(value.asker, isObject) &&
  isOptional(value.end, (end) => isObject(end) && isTexts(end.values))
