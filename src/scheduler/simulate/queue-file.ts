/** Hosts and jobs for `simulate queue`, read from JSON. */
import { z } from 'zod'
import { MusterError } from '../../base/errors.ts'
import { bundlesOf, gpuMilli, hostOf, parseJson, strategy } from './json-input.ts'

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
      strategy: strategy.default('PACK'),
      bundles: whole.min(1).max(100_000).default(1),
      cpu: whole.default(1),
      memoryGiB: whole.default(0),
      gpuMilli: gpuMilli.default(0),
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

/** @throws MusterError 'configuration' with the first mistake. */
export function parseQueueFile(text: string) {
  const { hosts, jobs, reservations } = parseJson(text, 'queue', file)
  return {
    hosts: hosts.map(({ name, ...host }) => hostOf(name, host)),
    jobs: jobs.map(({ strategy: own, bundles, cpu, memoryGiB, gpuMilli: milli, estimateS, ...rest }, order) => {
      const bundle = { cpu, memoryGiB, gpuMilli: milli }
      return {
        ...rest,
        order,
        estimateS,
        gang: { name: `job${order}`, strategy: own, bundles: bundlesOf(bundles, bundle) },
      }
    }),
    reservations: reservations.map((reservation) => ({
      ...reservation,
      hosts: reservation.hosts.map((name) => {
        const index = hosts.findIndex((host) => host.name === name)
        if (index < 0) throw new MusterError('configuration', `a reservation names '${name}', which is not a host`)
        return index
      }),
    })),
  }
}
