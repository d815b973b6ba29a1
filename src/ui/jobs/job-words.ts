/** A job in a few words, for the tab and for the verbs. */
import { foldHostSet } from '../../inventory/host-set.ts'
import { isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { isRayJob } from '../../scheduler/jobs/ray-jobs.ts'

/** `4 × (8 CPU + 2 GPU) SPREAD` */
export function askedWords({ spec: { request, bundles, strategy } }: Job): string {
  const gpu = request.gpuCount === 0 ? '' : ` + ${(request.gpuCount * request.gpuMilli) / 1000} GPU`
  const one = `${request.cpuMilli / 1000} CPU${gpu}`
  return bundles === 1 ? one : `${bundles} × (${one}) ${strategy}`
}

/** Where it is or was; undefined: nowhere. */
export function placeWords(job: Job): string | undefined {
  const { state } = job
  if (!('places' in state) || state.places === undefined || state.places.length === 0) return undefined
  return isRayJob(job) ? 'Ray' : foldHostSet([...new Set(state.places.map(({ host }) => host))])
}

export function durationWords({ state }: Job, nowMs: number): string {
  if (!('startedMs' in state) || state.startedMs === undefined) return '-'
  const seconds = Math.max(0, ((isFinal(state) ? state.endedMs : nowMs) - state.startedMs) / 1000)
  return seconds < 100 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`
}
