/** Instances of gangs for one cluster of equal hosts, read from JSON. */
import { z } from 'zod'
import { MusterError } from '../../base/errors.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import type { GangInstance } from './gang-run.ts'

const GIB = 2 ** 30

const count = z.int().min(0)
const instances = z.array(
  z.object({
    name: z.string(),
    hosts: z.object({ count: count.min(1).max(100_000), cpu: count, memoryGiB: count, gpus: count.max(1024) }),
    gangs: z.array(
      z.object({
        bundles: count.min(1).max(100_000),
        /** Of each bundle; a multiple of 1000 for whole GPUs. */
        gpuMilli: count.refine((milli) => milli <= WHOLE_MILLI || milli % WHOLE_MILLI === 0),
        cpu: count,
        memoryGiB: count,
        strategy: z.enum(['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD']),
      }),
    ),
    bestKnownGpuPercent: z.number().positive().optional(),
  }),
)

/** @throws MusterError 'configuration' with the first thing that is wrong. */
export function parseGangInstances(text: string): readonly GangInstance[] {
  return readInstances(text).map(({ name, hosts, gangs, bestKnownGpuPercent }) => ({
    name,
    bestKnownGpuPercent,
    hosts: Array.from({ length: hosts.count }, (_, index) => ({
      name: `host${index}`,
      cpuMilli: hosts.cpu * 1000,
      memoryBytes: hosts.memoryGiB * GIB,
      gpus: Array.from({ length: hosts.gpus }, () => ''),
    })),
    gangs: gangs.map(({ bundles, gpuMilli, cpu, memoryGiB, strategy }, index) => {
      const isShare = gpuMilli < WHOLE_MILLI
      const bundle = {
        cpuMilli: cpu * 1000,
        memoryBytes: memoryGiB * GIB,
        gpuCount: isShare ? Math.sign(gpuMilli) : gpuMilli / WHOLE_MILLI,
        gpuMilli: isShare ? gpuMilli : WHOLE_MILLI,
      }
      return { name: `gang${index}`, strategy, bundles: Array.from({ length: bundles }, () => bundle) }
    }),
  }))
}

function readInstances(text: string): z.infer<typeof instances> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new MusterError('configuration', 'the instances are no JSON', { cause: error })
  }
  const result = instances.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new MusterError('configuration', `the instances: ${issue?.path.join('.')}: ${issue?.message}`)
}
