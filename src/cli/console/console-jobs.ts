/** The queue of jobs for the console: the file that the verbs use, opened when a tab of it is first shown. */
import { setImmediate } from 'node:timers/promises'
import { MusterError } from '../../base/errors.ts'
import type { JobEvent } from '../../scheduler/jobs/job.ts'
import type { JobAction, JobDetails, JobsPort, QueueStatus } from '../../ui/jobs/jobs-port.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import type { ConsoleQueue } from '../job/console-queue.ts'

const CHUNK = 200
const WITHOUT_FILE =
  'A queue of jobs belongs to the hosts of a hosts.yaml, and the console is open on others: open it on those to see one.'

/** The queue of hosts.yaml, where the console's hosts are those of it: what lies in the working directory is not the queue of others. */
export function declaredQueue(
  options: GlobalOptions,
  context: CliContext,
  isDeclared: boolean,
): () => Promise<ConsoleQueue> {
  return async () => {
    if (!isDeclared) throw new MusterError('configuration', WITHOUT_FILE)
    const { openConsoleQueue } = await import('../job/console-queue.ts')
    return await openConsoleQueue(options, context)
  }
}

export function createConsoleJobs(openQueue: () => Promise<ConsoleQueue>): JobsPort & Disposable {
  let opening: Promise<ConsoleQueue> | undefined
  const open = (): Promise<ConsoleQueue> => {
    opening ??= openQueue()
    // What could not be opened is tried again at the next look.
    opening.catch(() => {
      opening = undefined
    })
    return opening
  }
  return {
    read: async (): Promise<QueueStatus | undefined> => (await open()).read(),
    tryOut: async (whatIf) => (await open()).tryOut(whatIf),
    details: async (id): Promise<JobDetails | undefined> => (await open()).details(id),
    sweep: async (id) => (await open()).sweep(id),
    members: async (spec, kinds) => (await open()).members(spec, kinds),
    async change(action, ids) {
      const queue = await open()
      let count = 0
      for (let at = 0; at < ids.length; at += CHUNK) {
        count += queue.change(eventOf(action), ids.slice(at, at + CHUNK))
        await setImmediate()
      }
      return count
    },
    [Symbol.dispose]() {
      opening?.then(
        (queue) => queue[Symbol.dispose](),
        () => undefined,
      )
    },
  }
}

const eventOf = (action: JobAction): JobEvent =>
  action === 'cancel' ? { kind: 'stop', reason: 'cancelled' } : { kind: action }
