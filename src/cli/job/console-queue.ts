/** What the console's tabs read of the queue and write to it: short calls, each far below the time of a frame. */
import { JOBS_DIRECTORY } from '../../scheduler/jobs/host-program.ts'
import type { JobEvent } from '../../scheduler/jobs/job.ts'
import { bundleKey } from '../../scheduler/jobs/orders.ts'
import { packHosts } from '../../scheduler/jobs/packing.ts'
import type { JobDetails, QueueSight } from '../../ui/jobs/jobs-port.ts'
import type { CliContext } from '../context.ts'
import { hostsOf } from './hosts-seen.ts'
import { type JobOptions, openQueue } from './open-queue.ts'
import { whyWaiting } from './why-waiting.ts'

const MOST_GROUPS = 200
const MOST_WAITING = 8
/** A look of the console waits no longer for others that write: keys are waiting too. */
const BUSY_MS = 100
const TAIL_BYTES = 16 * 1024

export interface ConsoleQueue extends Disposable {
  read(): QueueSight | undefined
  details(id: number): JobDetails | undefined
  members(spec: number, kinds: readonly string[]): readonly number[]
  change(event: JobEvent, ids: readonly number[]): number
}

export async function openConsoleQueue(options: JobOptions, context: CliContext): Promise<ConsoleQueue> {
  const queue = await openQueue(options, context, BUSY_MS)
  const { store } = queue
  let seen = ''
  const expectedOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
  return {
    read() {
      const driver = store.driver(context.now())
      const state = `${store.version()} ${driver}`
      if (state === seen) return undefined
      seen = state
      const { down = {} } = store.view() ?? {}
      const active = store.active()
      return {
        hosts: packHosts(hostsOf(queue), active),
        down,
        active,
        waiting: store.queued(MOST_WAITING).map((job) => {
          const { why, expected } = whyWaiting(job, queue)
          return { job, why: why.join(' '), expectedMs: expectedOf(expected) }
        }),
        groups: store.groups(MOST_GROUPS).flatMap((group) => {
          const lead = store.get(group.first)
          return lead === undefined ? [] : [{ ...group, lead }]
        }),
        counts: store.counts(),
        driver,
      }
    },
    details(id) {
      const job = store.get(id)
      if (job === undefined) return undefined
      const { why, expected } = whyWaiting(job, queue)
      const place = 'places' in job.state ? job.state.places?.[0] : undefined
      const program = `cd ${JOBS_DIRECTORY}/${bundleKey(store.id, job, 0)} && tail -c ${TAIL_BYTES} out && tail -c ${TAIL_BYTES} err`
      return { job, why, expectedMs: expectedOf(expected), log: place && { host: place.host, program } }
    },
    members: (spec, kinds) => store.idsOf(spec, kinds),
    change(event, ids) {
      // Own writes do not move the version that is looked at.
      seen = ''
      const results = store.applyAll(
        ids.map((id) => ({ id, event })),
        context.now(),
      )
      return results.filter(Boolean).length
    },
    [Symbol.dispose]: () => queue[Symbol.dispose](),
  }
}
