/** `muster job edit`: changes jobs that wait or are held. */
import { defined } from '../../base/defined.ts'
import { resolveTarget } from '../../inventory/inventory.ts'
import type { Job, JobSpec } from '../../scheduler/jobs/job.ts'
import { type ResourceRequest, WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import type { VerbCode } from '../command-line/verb.ts'
import { withJobs, withRequest } from './arguments.ts'
import { reportChanges } from './change.ts'
import { type OpenQueue, openQueue } from './open-queue.ts'
import { checkCommand, requestOf, type SubmitOptions } from './submit.ts'

type EditOptions = GlobalOptions &
  Partial<
    Pick<
      SubmitOptions,
      'name' | 'priority' | 'estimate' | 'limit' | 'retries' | 'cpu' | 'memory' | 'gpu' | 'on' | 'dir'
    >
  > & { readonly command?: string }

export const verb: VerbCode = {
  define: (command) => withRequest(withJobs(command)).option('--command <line>', 'command line for sh'),
  help: `
Examples:
  muster job edit 17 --priority 5    while it waits

Options that are not given stay unchanged.
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
  return reportChanges('edit', ids, results, queue, options, context)
}

function editSpec(spec: Job['spec'], options: EditOptions, queue: OpenQueue): JobSpec {
  const { name, estimate, limit, retries, dir, command } = options
  return {
    ...spec,
    request: editRequest(spec.request, options, queue),
    ...defined({ name, estimateS: estimate, limitS: limit, retries, directory: dir, command }),
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
  return { ...before, ...after, memoryBytes: memory === undefined ? before.memoryBytes : after.memoryBytes }
}
