/** `muster job edit`: other figures for jobs that wait. */
import { resolveTarget } from '../../inventory/inventory.ts'
import type { Job, JobSpec } from '../../scheduler/jobs/job.ts'
import { type ResourceRequest, WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import type { CliContext } from '../command-line/context.ts'
import { tellChanges } from './change.ts'
import { type JobOptions, type OpenQueue, openQueue } from './open-queue.ts'
import { checkCommand, requestOf } from './submit.ts'

export type EditOptions = JobOptions & {
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

export async function editJobs(ids: readonly number[], options: EditOptions, context: CliContext): Promise<number> {
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
