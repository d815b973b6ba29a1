/** A study and its trials, as text and as JSON. */

import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { formatDuration } from '../../base/time-text.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { isActive } from '../../scheduler/jobs/job.ts'
import { hostsText } from '../../scheduler/jobs/job-columns.ts'
import { type Metric, type MetricValues, metricJson } from '../../scheduler/jobs/metric.ts'
import type { OpenTrial } from '../../scheduler/jobs/study-rows.ts'
import { ancestorsOf, descentLines } from '../../scheduler/study/descent.ts'
import { explainStudy } from '../../scheduler/study/explain.ts'
import { bestTrials, countTrials } from '../../scheduler/study/front.ts'
import { importanceOf } from '../../scheduler/study/importance.ts'
import { shownSpec } from '../../scheduler/study/source.ts'
import {
  ENDED_KINDS,
  type Study,
  type StudySpec,
  spaceOf,
  type Trial,
  type TrialEnd,
} from '../../scheduler/study/study.ts'
import { domainText, handLine, mostTrials, pointText, valuesTextOf } from '../../scheduler/study/study-text.ts'
import { type OpenQueue, undrivenWords } from '../job/open-queue.ts'
import { whyWaiting } from '../job/why-waiting.ts'

export type KindCounts = ReadonlyMap<string, number>

export const endedOf = (counts: KindCounts): number =>
  ENDED_KINDS.reduce((sum, kind) => sum + (counts.get(kind) ?? 0), 0)

/** A trial as a row: what it has printed until now, and what its job does. */
export type TrialRow = {
  readonly trial: Trial
  readonly state: string
  readonly values: MetricValues
  readonly seconds?: number
  readonly where: string
}

const MOST_SHOWN = 10

/** In whole seconds. */
export const ageOf = (sinceMs: number, nowMs: number): string =>
  formatDuration(Math.max(1, Math.round((nowMs - sinceMs) / 1000)) * 1000)

/** What a person wants to know of a study. */
export function studyLines(study: Study, queue: OpenQueue, nowMs: number): readonly string[] {
  const { studies, lease } = queue.store
  const { id, name, user, spec, state, createdMs } = study
  const trials = studies.trials(id)
  const counts = studies.counts(id)
  const open = studies.open(id)
  const job = studies.jobOf(study)
  const [running = [], waiting = []] = [true, false].map((isWanted) => open.filter((one) => isAtWork(one) === isWanted))
  const [objective] = spec.metrics
  const importance = objective && importanceOf(spaceOf(spec), trials, objective)
  const width = widthOf(spaceOf(spec).parameters)
  const age = ageOf(createdMs, nowMs)
  const isUndriven = state.kind === 'running' && spec.source === undefined && lease.owner(nowMs) === undefined
  const [first] = waiting
  const why = first?.job === undefined ? [] : whyWaiting(first.job, queue, nowMs).why
  return formatParts([
    ['study', [`${name}, ${stateText(study)}`]],
    ['created', [`${age} ago by ${user}`]],
    searchesPart(spec),
    ['method', explainStudy(study, countTrials(trials), trials)],
    ['trials', [trialsText(study, counts, running.length)]],
    [
      'trouble',
      [...(state.trouble === undefined ? [] : [state.trouble]), ...(isUndriven ? [undrivenWords(queue)] : [])],
    ],
    ['best', bestLines(study, trials, job)],
    ['descent', descentOf(study, trials)],
    ['matters', (importance ?? []).map((one) => `${one.name.padEnd(width)}  ${Math.round(one.share * 100)} %`)],
    ['running', some(running.map((one) => openText(one, study, nowMs)))],
    [
      'waiting',
      first === undefined ? [] : [`${counted(waiting.length, 'trial')}${why.length > 0 ? `: ${why.join('; ')}` : ''}`],
    ],
    ...(['pruned', 'failed', 'cancelled'] as const).map((kind): readonly [string, readonly string[]] => [
      kind,
      some(
        trials
          .filter(({ end }) => end?.kind === kind)
          .toReversed()
          .map(reasonText),
        3,
      ),
    ]),
  ])
}

const stateText = ({ state: { kind, reason } }: Study): string =>
  reason === undefined ? kind : kind === 'stopped' ? reason : `${kind}: ${reason}`

/** A program's trial is with that program. */
const isAtWork = ({ trial, job }: OpenTrial): boolean =>
  job === undefined ? trial.asker !== undefined : isActive(job.state)

/** Each parameter with its values. */
export function searchesPart(spec: StudySpec): readonly [string, readonly string[]] {
  const { parameters } = spaceOf(spec)
  const width = widthOf(parameters)
  return ['searches', parameters.map((one) => `${one.name.padEnd(width)}  ${domainText(one)}`)]
}

const widthOf = (parameters: readonly { readonly name: string }[]): number =>
  Math.max(0, ...parameters.map((one) => one.name.length))

/** The title before the first line of each part; parts without lines are left out. */
export const formatParts = (parts: readonly (readonly [string, readonly string[]])[]): readonly string[] =>
  parts.flatMap(([title, lines]) => lines.map((line, at) => `${(at === 0 ? `${title}:` : '').padEnd(11)}${line}`))

const some = (lines: readonly string[], most = MOST_SHOWN): readonly string[] =>
  lines.length <= most ? lines : [...lines.slice(0, most), `… and ${lines.length - most} more`]

function trialsText(study: Study, counts: KindCounts, running: number): string {
  const ended = endedOf(counts)
  const most = mostTrials(study)
  const kinds = ENDED_KINDS.flatMap((kind) => (counts.has(kind) ? [`${counts.get(kind)} ${kind}`] : []))
  const open = (counts.get('open') ?? 0) - running
  const now = [...(running > 0 ? [`${running} running`] : []), ...(open > 0 ? [`${open} waiting`] : [])]
  const all = [...(ended > 0 ? kinds : []), ...now]
  return `${ended}${most === undefined ? '' : ` of ${most}`} ended${all.length === 0 ? '' : `: ${all.join(', ')}`}`
}

/** Of a population: which trials went on from whose checkpoint. */
function descentOf({ spec }: Study, trials: readonly Trial[]): readonly string[] {
  if (spec.pbt === undefined && !trials.some(({ parent }) => parent !== undefined)) return []
  const best = bestTrials(trials, spec.metrics).map(({ number }) => {
    const line = ancestorsOf(trials, number).map((one) => one.number)
    return `the best: trial ${line.join(' → ')}`
  })
  return [...best, ...some(descentLines(trials, spec.pbt?.timeAttr ?? 'training_iteration'), MOST_DESCENT)]
}

const MOST_DESCENT = 40
const MOST_FRONT = 5

function bestLines({ spec }: Study, trials: readonly Trial[], job: Parameters<typeof handLine>[0]): readonly string[] {
  const best = bestTrials(trials, spec.metrics)
  const lines = best.slice(0, MOST_FRONT).flatMap((trial) => {
    const { end, number, point } = trial
    const byHand = handLine(job, trial)
    const on = end?.host === undefined ? '' : ` on ${placeTitle(end.host)}`
    return [
      `${valuesTextOf(end?.values ?? {}, spec.metrics)}: trial ${number}${on}${byHand === undefined ? `, ${pointText(point)}` : ''}`,
      ...(byHand === undefined ? [] : [`  ${byHand}`]),
    ]
  })
  const left = best.length - MOST_FRONT
  return left > 0 ? [...lines, `… and ${left} more that no other trial beats in all metrics`] : lines
}

function openText({ trial, job, values }: OpenTrial, { spec }: Study, nowMs: number): string {
  const { state } = job ?? {}
  const on = job === undefined ? 'a program' : hostsText(job)
  const place = state !== undefined && 'places' in state ? state.places?.[0] : undefined
  const gpus = place === undefined || place.devices.length === 0 ? '' : ` GPU ${place.devices.join(',')}`
  const startedMs = state !== undefined && 'startedMs' in state ? state.startedMs : trial.asker?.sinceMs
  const since = startedMs === undefined ? '' : ` for ${ageOf(startedMs, nowMs)}`
  const printed = valuesTextOf(values, spec.metrics)
  const stopping = trial.stopping === undefined ? '' : `; stopping: ${trial.stopping}`
  return `trial ${trial.number} on ${on ?? '-'}${gpus}${since}: ${pointText(trial.point)}${printed === '' ? '' : `, ${printed} so far`}${stopping}`
}

const reasonText = ({ number, end, point }: Trial): string =>
  `trial ${number}: ${end?.reason ?? end?.kind} (${pointText(point)})`

/** The line of a trial that has ended. */
export function endText(trial: Trial & { readonly end: TrialEnd }, metrics: readonly Metric[]): string {
  const { number, point, end } = trial
  const { host, startedMs, endedMs, reason, kind } = end
  const on = host === undefined ? '' : ` on ${placeTitle(host)}`
  const ran = startedMs === undefined ? '' : ` in ${formatDuration(endedMs - startedMs)}`
  const why = reason === undefined ? '' : ` (${reason})`
  const values = valuesTextOf(end.values, metrics)
  return `trial ${number} ${kind}${on}${ran}${why}: ${values === '' ? '' : `${values} with `}${pointText(point)}`
}

export function wholeJson(study: Study, { store }: OpenQueue): object {
  const { studies } = store
  const { id, spec } = study
  const trials = studies.trials(id)
  const [objective] = spec.metrics
  const importance = objective && importanceOf(spaceOf(spec), trials, objective)
  const best = bestTrials(trials, spec.metrics).map((trial) => bestJson(trial, study))
  return { ...studyJson(study, studies.counts(id)), spec: shownSpec(spec), best, ...defined({ importance }) }
}

const numbersOf = (values: MetricValues): object =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, metricJson(value)]))

export const bestJson = ({ number, point, end }: Trial, { spec }: Study): object => ({
  trial: number,
  parameters: point,
  metrics: numbersOf(
    Object.fromEntries(
      spec.metrics.flatMap(({ name }) => (end?.values[name] === undefined ? [] : [[name, end.values[name]]])),
    ),
  ),
})

export function studyJson(study: Study, counts: KindCounts): object {
  const { name, user, spec, state, createdMs } = study
  return {
    type: 'study',
    study: name,
    user,
    method: spec.method,
    state: state.kind,
    created: new Date(createdMs).toISOString(),
    trials: Object.fromEntries(counts),
    ...defined({ most: mostTrials(study), reason: state.reason, trouble: state.trouble }),
  }
}

/** A line of `--json`. */
export function trialJson(study: Study, row: Pick<TrialRow, 'trial' | 'state' | 'values'>): object {
  const { trial, state, values } = row
  const { number, point, repetition, job, end, stopping, member, parent, parentStep } = trial
  const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())
  return {
    ...{ type: 'trial', study: study.name, trial: number, state, parameters: point, metrics: numbersOf(values) },
    ...defined({
      repetition: study.spec.repeat > 1 ? repetition : undefined,
      job,
      host: end?.host,
      devices: end?.devices,
      started: iso(end?.startedMs),
      ended: iso(end?.endedMs),
      reason: end?.reason ?? stopping,
      member,
      parent,
      parentStep,
    }),
  }
}
