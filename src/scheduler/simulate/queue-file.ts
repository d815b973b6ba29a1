/** Hosts and jobs for `simulate queue`, read from JSON. */
import { z } from 'zod'
import { MusterError } from '../../base/errors.ts'
import { type HostCapacity, WHOLE_MILLI } from '../model/resources.ts'
import type { Reservation } from '../plan/predict.ts'
import type { QueueRunJob } from './queue-run.ts'

const GIB = 2 ** 30

const whole = z.int().min(0)
const file = z.strictObject({
  hosts: z
    .array(z.strictObject({ name: z.string(), cpu: whole, memoryGiB: whole, gpus: whole.max(1024).default(0) }))
    .min(1),
  jobs: z.array(
    z.strictObject({
      submitS: whole,
      runS: whole.min(1),
      estimateS: whole.min(1).optional(),
      user: z.string().default(''),
      priority: z.int().default(0),
      isPreemptible: z.boolean().default(false),
      strategy: z.enum(['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD']).default('PACK'),
      bundles: whole.min(1).max(100_000).default(1),
      cpu: whole.default(1),
      memoryGiB: whole.default(0),
      /** Of each bundle; a multiple of 1000 for whole GPUs. */
      gpuMilli: whole.refine((milli) => milli <= WHOLE_MILLI || milli % WHOLE_MILLI === 0).default(0),
    }),
  ),
  reservations: z
    .array(
      z.strictObject({
        hosts: z.array(z.string()),
        fromS: whole,
        untilS: whole,
        users: z.array(z.string()).default([]),
      }),
    )
    .default([]),
})

type QueueInput = {
  readonly hosts: readonly HostCapacity[]
  readonly jobs: readonly QueueRunJob[]
  readonly reservations: readonly Reservation[]
}

/** @throws MusterError 'configuration' with the first mistake. */
export function parseQueueFile(text: string): QueueInput {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new MusterError('configuration', 'the hosts and jobs are no JSON', { cause: error })
  }
  const result = file.safeParse(value)
  if (!result.success) {
    const [issue] = result.error.issues
    throw new MusterError('configuration', `the hosts and jobs: ${issue?.path.join('.')}: ${issue?.message}`)
  }
  const { hosts, jobs, reservations } = result.data
  return {
    hosts: hosts.map(({ name, cpu, memoryGiB, gpus }) => ({
      name,
      cpuMilli: cpu * 1000,
      memoryBytes: memoryGiB * GIB,
      gpus: Array.from({ length: gpus }, () => ''),
    })),
    jobs: jobs.map(({ strategy, bundles, cpu, memoryGiB, gpuMilli, estimateS, ...rest }, order) => {
      const bundle = {
        cpuMilli: cpu * 1000,
        memoryBytes: memoryGiB * GIB,
        gpuCount: gpuMilli === 0 ? 0 : Math.max(1, gpuMilli / WHOLE_MILLI),
        gpuMilli: Math.min(WHOLE_MILLI, gpuMilli),
      }
      const gang = { name: `job${order}`, strategy, bundles: Array.from({ length: bundles }, () => bundle) }
      return { ...rest, order, estimateS, gang }
    }),
    reservations: reservations.map((reservation) => ({
      ...reservation,
      hosts: reservation.hosts.map((name) => {
        const index = hosts.findIndex((host) => host.name === name)
        if (index < 0) throw new MusterError('configuration', `a reservation names '${name}', which is no host`)
        return index
      }),
    })),
  }
}
