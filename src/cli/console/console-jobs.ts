/** The job queue for the console: the file that the verbs use, opened when one of its tabs is first shown. */
import { setImmediate } from 'node:timers/promises'
import { MusterError } from '../../base/errors.ts'
import { KeptPromise } from '../../base/kept-promise.ts'
import type { JobEvent } from '../../scheduler/jobs/job.ts'
import type { JobAction, JobDetails, JobsPort, QueueStatus } from '../../ui/jobs/jobs-port.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import type { ConsoleQueue } from '../job/console-queue.ts'

const CHUNK = 200
const WITHOUT_FILE = 'no job queue: the console is open on hosts that are not from a hosts.yaml'

/** The queue of hosts.yaml, if the console is open on its hosts: the hosts.yaml of the working directory says nothing about others. */
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
  const opening = new KeptPromise(openQueue)
  const open = () => opening.get()
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
      opening.made?.then(
        (queue) => queue[Symbol.dispose](),
        () => undefined,
      )
    },
  }
}

const eventOf = (action: JobAction): JobEvent =>
  action === 'cancel' ? { kind: 'stop', reason: 'cancelled' } : { kind: action }
