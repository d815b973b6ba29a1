/** `muster job cancel`, `hold`, `release`, `retry`, `requeue` and `wait`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { counted } from '../../base/counted.ts'
import { formatNumberSet } from '../../base/number-set.ts'
import { printable } from '../../base/printable.ts'
import { isActive, isFinal, isInLine, type Job, type JobEvent } from '../../scheduler/jobs/job.ts'
import { hostsToForget } from '../../scheduler/jobs/store.ts'
import { changeJobs } from '../../scheduler/jobs/study-change.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { withJobs } from './arguments.ts'
import { noticeScheduler, type OpenQueue, openQueue } from './open-queue.ts'
import { jobOr } from './show.ts'
import { missedBy } from './why-waiting.ts'

type JobChange = 'cancel' | 'hold' | 'release' | 'retry' | 'requeue'

type ChangeOptions = GlobalOptions & { readonly forget?: boolean; readonly done?: boolean }

const CHECK_MS = 250

const verbFor = (change: JobChange, example: string): VerbCode => ({
  define: withJobs,
  help: `
Examples:
  muster job ${example}
`,
  async run(ids: readonly number[], options: ChangeOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    const { store } = queue
    const jobsOf = (): readonly Job[] => ids.flatMap((id) => store.get(id) ?? [])
    const event: JobEvent = options.forget
      ? { kind: 'forget', hosts: hostsToForget(jobsOf(), store.report()) }
      : change === 'cancel'
        ? { kind: 'stop', reason: 'cancelled' }
        : { kind: change }
    // A range of a sweep is retried for what failed in it; results of the others are not given up by the way.
    const isMeant = (id: number) => change !== 'retry' || options.done === true || store.get(id)?.state.kind !== 'done'
    const meant = ids.filter(isMeant)
    const changed = changeJobs(store, meant, event, context.now())
    const resultOf = new Map(meant.map((id, index) => [id, changed[index]]))
    const results = ids.map((id) => (resultOf.has(id) ? resultOf.get(id) : false))
    if (options.forget && !options.json) {
      for (const { id, state } of jobsOf()) {
        if (!isActive(state)) continue
        const left = state.places.flatMap(({ host }, rank) => (state.bundles[rank]?.kind === 'ended' ? [] : [host]))
        const hosts = [...new Set(left)].join(', ')
        context.stderr.write(`muster: job ${id} stops on ${hosts} first: --forget gives up only hosts that are down\n`)
      }
    }
    return reportChanges(change, ids, results, queue, options, context)
  },
})

export const cancel: VerbCode = {
  ...verbFor('cancel', 'cancel 17-19            stop three jobs'),
  define: (command) =>
    withJobs(command).option('--forget', 'do not wait for hosts that are down; what runs there keeps running'),
}
export const hold = verbFor('hold', 'hold 17                 keep a job from starting')
export const release = verbFor('release', 'release 17              let it start')
export const retry: VerbCode = {
  ...verbFor('retry', 'retry 17-36             queue again what failed, was cancelled or lost, or hit its limit'),
  define: (command) => withJobs(command).option('--done', 'also run jobs again that are done'),
}
export const requeue = verbFor('requeue', 'requeue 17              stop a job, and queue it again')

export const wait: VerbCode = {
  define: withJobs,
  help: `
Examples:
  muster job wait 17 --timeout 3600  wait for a job, an hour at most

Exit codes: 0 all are done, 1 a job ended otherwise.
`,
  async run(ids: readonly number[], options: GlobalOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    for (const id of ids)
      for (let job = jobOr(queue, id); !isFinal(job.state); job = jobOr(queue, id))
        await sleep(CHECK_MS, undefined, { signal: context.signal })
    const jobs = ids.map((id) => jobOr(queue, id))
    const states = jobs.map(({ state }) => state.kind)
    if (options.json)
      ids.forEach((id, index) => {
        context.stdout.write(jsonLine({ type: 'ended', job: id, state: states[index] }, context))
      })
    else
      for (const { id, state } of jobs) {
        const reason = 'reason' in state && state.reason !== undefined ? `: ${state.reason}` : ''
        if (state.kind !== 'done') context.stderr.write(`muster: job ${id}: ${state.kind}${printable(reason)}\n`)
      }
    return states.every((kind) => kind === 'done') ? EXIT.ok : EXIT.failed
  },
}

/** Names the jobs that did not change (with --json, every job); returns the exit code. */
export function reportChanges(
  change: JobChange | 'edit',
  ids: readonly number[],
  results: readonly (boolean | undefined)[],
  queue: OpenQueue,
  { json }: GlobalOptions,
  context: CliContext,
): number {
  const all = ids.map((id, index) => ({ id, changed: results[index], state: queue.store.get(id)?.state.kind }))
  if (json) {
    for (const { id, changed = false, state } of all)
      context.stdout.write(jsonLine({ type: change, job: id, changed, state }, context))
  } else {
    const unchanged = Map.groupBy(
      all.filter(({ changed }) => changed !== true),
      ({ changed, state }) => (changed === undefined ? undefined : state),
    )
    for (const [state, jobs] of unchanged) {
      const isOne = jobs.length === 1
      const numbers = formatNumberSet(jobs.map(({ id }) => id))
      const hint = change === 'retry' && state === 'done' ? ` (--done runs ${isOne ? 'it' : 'them'} again)` : ''
      const is = isOne ? `job ${numbers} is` : `jobs ${numbers} are`
      const words =
        state === undefined
          ? `no such job${isOne ? '' : 's'}: ${numbers}`
          : `${is} ${state}: nothing to ${change}${hint}`
      context.stderr.write(`muster: ${words}\n`)
    }
  }
  if (change === 'retry' && !json) {
    noticeMissed(ids, queue, context)
    noticeLater(ids, queue, context)
  }
  // What runs is stopped by a scheduler.
  if (!json && all.some(({ changed, state }) => changed === true && state === 'ending') && queue.driver() === undefined)
    noticeScheduler(queue, context)
  // A range is retried for what failed in it.
  const isFine = ({ changed, state }: (typeof all)[number]) =>
    changed === true || (change === 'retry' && ids.length > 1 && state === 'done')
  return all.every(isFine) ? EXIT.ok : EXIT.failed
}

/** Says which jobs begin later. */
function noticeLater(ids: readonly number[], { store }: OpenQueue, context: CliContext): void {
  for (const [study, own] of store.studies.ofJobs(ids)) {
    const { name, spec } = store.studies.get(study) ?? {}
    const later = own.filter((id) => {
      const job = store.get(id)
      return job !== undefined && isInLine(job)
    })
    if (later.length === 0) continue
    const begin = later.length === 1 ? `job ${later[0]} begins` : `jobs ${formatNumberSet(later)} begin`
    context.stderr.write(
      `muster: ${begin} as study ${name} has room: it runs ${counted(spec?.atOnce ?? 0, 'trial')} at once\n`,
    )
  }
}

/** Says which jobs will be cancelled again, as a job that they come after has not succeeded. */
function noticeMissed(ids: readonly number[], queue: OpenQueue, context: CliContext): void {
  for (const id of ids) {
    const job = queue.store.get(id)
    const missed = job?.state.kind === 'queued' ? missedBy(job, queue) : []
    if (missed.length === 0) continue
    const all = formatNumberSet([...missed.map((one) => one.id), id])
    const words = missed.map((one) => one.words).join('; ')
    context.stderr.write(`muster: job ${id}: ${words}. Retry all of them: ${queue.command(`job retry ${all}`)}\n`)
  }
}
