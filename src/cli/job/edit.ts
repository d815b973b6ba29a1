/** `muster job edit`: changes jobs that wait or are held. */
import { resolveTarget } from '../../inventory/inventory.ts'
import type { Job, JobSpec } from '../../scheduler/jobs/job.ts'
import { type ResourceRequest, WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import type { CliContext } from '../command-line/context.ts'
import { numberFrom, wholeNumber } from '../command-line/values.ts'
import type { VerbCode } from '../command-line/verb.ts'
import { tellChanges } from './change.ts'
import { withJobs } from './ids.ts'
import { type JobOptions, type OpenQueue, openQueue } from './open-queue.ts'
import { checkCommand, requestOf } from './submit.ts'

type EditOptions = JobOptions & {
  readonly name?: string
  readonly priority?: number
  readonly estimate?: number
  readonly limit?: number
  readonly retries?: number
  readonly cpu?: number
  readonly memory?: string
  readonly gpu?: number
  readonly on?: string
  readonly dir?: string
  readonly command?: string
}

export const verb: VerbCode = {
  define: (command) =>
    withJobs(command)
      .option('--name <name>', 'name for people')
      .option('--priority <n>', 'higher goes first', wholeNumber(Number.MIN_SAFE_INTEGER))
      .option('--estimate <s>', 'expected run time in seconds', wholeNumber(1))
      .option('--limit <s>', 'stop the job after S seconds', wholeNumber(1))
      .option('--retries <n>', 'retry at most N times if it fails', wholeNumber(0))
      .option('--cpu <cores>', 'cores of each bundle', numberFrom(0))
      .option('--memory <size>', 'memory of each bundle, such as 16GiB')
      .option('--gpu <n>', 'GPUs of each bundle: whole ones, or a share of one such as 0.5', numberFrom(0))
      .option('--on <target>', 'run only on these hosts')
      .option('--dir <path>', 'directory on the host to run in')
      .option('--command <line>', 'command line for sh'),
  help: `
Examples:
  muster job edit 17 --priority 5    while it waits
`,
  run: editJobs,
}

async function editJobs(ids: readonly number[], options: EditOptions, context: CliContext): Promise<number> {
  if (options.command !== undefined) checkCommand(options.command)
  using queue = await openQueue(options, context)
  const results = queue.store.editAll(ids, (job) => ({
    spec: editSpec(job.spec, options, queue),
    priority: options.priority ?? job.priority,
  }))
  return tellChanges('edit', ids, results, queue, options, context)
}

function editSpec(spec: Job['spec'], options: EditOptions, queue: OpenQueue): JobSpec {
  const { name, estimate, limit, retries, dir, command } = options
  return {
    ...spec,
    request: editRequest(spec.request, options, queue),
    ...(name === undefined ? {} : { name }),
    ...(estimate === undefined ? {} : { estimateS: estimate }),
    ...(limit === undefined ? {} : { limitS: limit }),
    ...(retries === undefined ? {} : { retries }),
    ...(dir === undefined ? {} : { directory: dir }),
    ...(command === undefined ? {} : { command }),
  }
}

/** What is not named stays. */
function editRequest(
  before: ResourceRequest,
  { cpu, memory, gpu, on }: EditOptions,
  queue: OpenQueue,
): ResourceRequest {
  const hosts = on === undefined ? undefined : resolveTarget(queue.inventory, on, {}).map(({ name }) => name)
  const gpus = before.gpuMilli < WHOLE_MILLI ? before.gpuMilli / WHOLE_MILLI : before.gpuCount
  const asked = { cpu: cpu ?? before.cpuMilli / 1000, gpu: gpu ?? (before.gpuCount === 0 ? 0 : gpus) }
  const after = requestOf(memory === undefined ? asked : { ...asked, memory }, hosts)
  return {
    ...before,
    ...after,
    memoryBytes: memory === undefined ? before.memoryBytes : after.memoryBytes,
  }
}
