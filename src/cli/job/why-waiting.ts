/** Why a job does not run yet, from what is stored alone. */
import { formatGangWhyNot, whyNotGang } from '../../scheduler/gangs/why-not-gang.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { gangOf, occupy } from '../../scheduler/jobs/plan-jobs.ts'
import { isRayJob, RAY_PLACE } from '../../scheduler/jobs/ray-jobs.ts'
import { hostsOf } from './hosts-seen.ts'
import type { OpenQueue } from './open-queue.ts'

function rayWords({ store }: OpenQueue): string | undefined {
  const trouble = store.view()?.down[RAY_PLACE]
  return trouble === undefined ? undefined : `Ray cannot be asked: ${trouble}`
}

export type WhyWaiting = { readonly why: readonly string[]; readonly expected?: string }

export function whyWaiting(job: Job, queue: OpenQueue): WhyWaiting {
  if (job.state.kind === 'held') return { why: ['it is held'] }
  if (job.state.kind === 'starting' && isRayJob(job))
    return { why: [rayWords(queue) ?? 'Ray has it, and it waits for room there'] }
  if (job.state.kind !== 'queued') return { why: [] }
  const undone = job.after.filter((id) => queue.store.get(id)?.state.kind !== 'done')
  if (undone.length > 0) return { why: [`it waits for ${undone.join(', ')}`] }
  const { notBeforeMs = 0 } = job.state
  const view = queue.store.view()
  const down = Object.entries(view?.down ?? {}).flatMap(([host, reason]) =>
    host === RAY_PLACE ? [] : [`${host}: ${reason}`],
  )
  if (isRayJob(job)) return { why: [rayWords(queue) ?? 'it goes to Ray at the next look, or when fewer wait there'] }
  const { cluster } = occupy(hostsOf(queue), queue.store.active())
  const gang = gangOf(job.spec)
  const why = whyNotGang(cluster, gang)
  const startS = view?.expectedS[job.id]
  return {
    why: [
      ...(notBeforeMs > (view?.atMs ?? 0) ? [`it is tried again at ${new Date(notBeforeMs).toISOString()}`] : []),
      ...down,
      ...(why === undefined
        ? ['there is room: it is begun at the next look, or others are before it']
        : formatGangWhyNot(cluster, gang, why)),
    ],
    ...(typeof startS === 'number' ? { expected: new Date(startS * 1000).toISOString() } : {}),
  }
}
