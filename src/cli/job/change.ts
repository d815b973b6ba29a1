/** `muster job cancel`, `hold`, `release`, `retry` and `wait`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isActive, isFinal, type Job, type JobEvent } from '../../scheduler/jobs/job.ts'
import { hostsToForget } from '../../scheduler/jobs/store.ts'
import { type CliContext, EXIT } from '../command-line/context.ts'
import { type JobOptions, type OpenQueue, openQueue } from './open-queue.ts'
import { jobOr } from './show.ts'

export type JobChange = 'cancel' | 'hold' | 'release' | 'retry' | 'requeue'

export type ChangeOptions = JobOptions & { readonly forget?: boolean }

const LOOK_MS = 250

export async function changeJobs(
  change: JobChange,
  ids: readonly number[],
  options: ChangeOptions,
  context: CliContext,
): Promise<number> {
  using queue = await openQueue(options, context)
  const { store } = queue
  const jobsOf = (): readonly Job[] => ids.flatMap((id) => store.get(id) ?? [])
  const event: JobEvent = options.forget
    ? { kind: 'forget', hosts: hostsToForget(jobsOf(), store.report()) }
    : change === 'cancel'
      ? { kind: 'stop', reason: 'cancelled' }
      : { kind: change }
  const results = store.applyAll(
    ids.map((id) => ({ id, event })),
    context.now(),
  )
  if (options.forget && !options.json) {
    for (const { id, state } of jobsOf()) {
      if (!isActive(state)) continue
      const left = state.places.flatMap(({ host }, rank) => (state.bundles[rank]?.kind === 'ended' ? [] : [host]))
      const hosts = [...new Set(left)].join(', ')
      context.stderr.write(`muster: job ${id} ends on ${hosts} first: only hosts that are down are given up\n`)
    }
  }
  return tellChanges(change, ids, results, queue, options, context)
}

/** A line a job, or only of those that stay as they are; the exit code. */
export function tellChanges(
  change: JobChange | 'edit',
  ids: readonly number[],
  results: readonly (boolean | undefined)[],
  queue: OpenQueue,
  { json }: JobOptions,
  context: CliContext,
): number {
  ids.forEach((id, index) => {
    const hasChanged = results[index]
    const state = queue.store.get(id)?.state.kind
    if (json)
      context.stdout.write(`${JSON.stringify({ type: change, job: id, changed: hasChanged ?? false, state })}\n`)
    else if (hasChanged === undefined) context.stderr.write(`muster: there is no job ${id}\n`)
    else if (!hasChanged) context.stderr.write(`muster: job ${id} is ${state}: nothing to ${change}\n`)
  })
  return results.every((hasChanged) => hasChanged) ? EXIT.ok : EXIT.failed
}

export async function waitForJobs(ids: readonly number[], options: JobOptions, context: CliContext): Promise<number> {
  using queue = await openQueue(options, context)
  for (const id of ids)
    for (let job = jobOr(queue, id); !isFinal(job.state); job = jobOr(queue, id))
      await sleep(LOOK_MS, undefined, { signal: context.signal })
  const states = ids.map((id) => jobOr(queue, id).state.kind)
  if (options.json)
    ids.forEach((id, index) => {
      context.stdout.write(`${JSON.stringify({ type: 'ended', job: id, state: states[index] })}\n`)
    })
  return states.every((kind) => kind === 'done') ? EXIT.ok : EXIT.failed
}
