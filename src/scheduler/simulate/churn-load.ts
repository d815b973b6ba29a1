/**
 * A trace as a lasting load: its pods come and go so that, on average, a given part of all GPUs is requested at once. Time is a
 * ring: what runs at its end runs at its beginning.
 */
import { MusterError } from '../../base/errors.ts'
import { type HostCapacity, type ResourceRequest, WHOLE_MILLI } from '../model/resources.ts'
import { createRandomNumbers } from '../policies/random.ts'
import type { TracePod } from './openb-trace.ts'

/** Seconds from the beginning of the span. */
export type TimedRequest = {
  readonly request: ResourceRequest
  readonly arrivalS: number
  readonly durationS: number
}

export type LoadInput = {
  readonly pods: readonly TracePod[]
  readonly hosts: readonly HostCapacity[]
  /** 1: on average as many GPUs are requested as there are. */
  readonly load: number
  readonly seed: number
}

/** Overlays copies of the trace, each shifted by another time. */
export function layOver({ pods, hosts, load, seed }: LoadInput) {
  const timed = timesOf(pods)
  const spanS = spanOf(timed)
  const wantedMilli = load * gpuMilliOf(hosts)
  const copies = Math.max(1, Math.round((wantedMilli * spanS) / Math.max(1, askedMilliSeconds(timed, spanS))))
  const random = createRandomNumbers(seed)
  const turned = Array.from({ length: copies }, () => turn(timed, spanS, Math.floor(random() * spanS)))
  return { requests: inOrder(turned.flat()), copies }
}

export const gpuMilliOf = (hosts: readonly HostCapacity[]): number =>
  hosts.reduce((sum, { gpus = [] }) => sum + gpus.length * WHOLE_MILLI, 0)

export function timesOf(pods: readonly TracePod[]): TimedRequest[] {
  const timed = pods.flatMap(({ request, createdAtS, deletedAtS }) => {
    if (createdAtS === undefined || deletedAtS === undefined) return []
    return [{ request, arrivalS: createdAtS, durationS: Math.max(1, deletedAtS - createdAtS) }]
  })
  if (timed.length === 0) throw new MusterError('configuration', 'the pod list has no arrival and departure times')
  return timed
}

export const spanOf = (timed: readonly TimedRequest[]): number =>
  timed.reduce((latest, { arrivalS }) => Math.max(latest, arrivalS), 1)

/** Within a span: a request counts at most once at any time. */
export const askedMilliSeconds = (timed: readonly TimedRequest[], spanS: number): number =>
  timed.reduce(
    (sum, { request, durationS }) => sum + request.gpuCount * request.gpuMilli * Math.min(durationS, spanS),
    0,
  )

export function turn(timed: readonly TimedRequest[], spanS: number, turnS: number): TimedRequest[] {
  return timed.flatMap((one) => {
    const arrivalS = (one.arrivalS + turnS) % spanS
    // It arrived before the beginning and still runs.
    const restS = arrivalS + Math.min(one.durationS, spanS) - spanS
    return [{ ...one, arrivalS }, ...(restS > 0 ? [{ ...one, arrivalS: 0, durationS: restS }] : [])]
  })
}

export const inOrder = (requests: TimedRequest[]): TimedRequest[] =>
  requests.sort((one, other) => one.arrivalS - other.arrivalS)
