/** Groups of a plan on hosts: what is placed, what hangs, when it fits, and with which changes. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import type { Framework, GroupsPlan, PlanGroup, Values } from '../../../../src/scheduler/plans/framework.ts'
import { framework as openrlhf } from '../../../../src/scheduler/plans/openrlhf.ts'
import { inThousandths, type PlanRoom, type PlanTenant, tryPlan } from '../../../../src/scheduler/plans/place-plan.ts'
import { framework as rllib } from '../../../../src/scheduler/plans/rllib.ts'
import { framework as train } from '../../../../src/scheduler/plans/train.ts'
import { framework as tune } from '../../../../src/scheduler/plans/tune.ts'
import { framework as vllm } from '../../../../src/scheduler/plans/vllm.ts'
import { valuesOf } from '../../../support/plan-values.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const hosts = (...gpus: readonly number[]) =>
  gpus.map((count, index) => ({
    name: `m${index + 1}`,
    cpuMilli: 16_000,
    memoryBytes: 0,
    gpus: Array.from({ length: count }, () => ''),
  }))

const roomOf = (cluster: Cluster, rest: Partial<PlanRoom> = {}): PlanRoom => ({
  cluster,
  tenants: [],
  down: [],
  driver: 0,
  ...rest,
})

/** Takes whole GPUs of a host for a job. */
function occupyGpus(cluster: Cluster, id: number, host: number, devices: readonly number[]): PlanTenant {
  const shape = cluster.shapeOf({ cpuMilli: 1000, memoryBytes: 0, gpuCount: devices.length, gpuMilli: 1000 })
  return { id, endS: 1000 * id, isEstimated: true, placements: [cluster.take(shape, { host, devices })] }
}

const four = {
  'actor.num_gpus_per_node': 4,
  'ref.num_gpus_per_node': 4,
  'critic.num_gpus_per_node': 2,
  'reward.num_gpus_per_node': 2,
  'vllm.num_engines': 2,
  'vllm.tensor_parallel_size': 2,
}
const plan = (framework: Framework, values: Values, room: PlanRoom) =>
  tryPlan(framework, valuesOf(framework, values), room)
const placed = ({ groups }: ReturnType<typeof tryPlan>) =>
  groups.map(({ placements }) => placements?.map(({ host, devices }) => `m${host + 1}:${devices}`).join(' '))

describe('tryPlan', () => {
  test('says which group hangs, with how many GPUs held, and which change helps', () => {
    const outcome = plan(openrlhf, { ...four, 'train.colocate_actor_ref': true }, roomOf(new Cluster(hosts(4, 4))))
    expect(outcome).toMatchObject({
      fits: 'never',
      heldGpuMilli: 8000,
      change: { values: { 'train.colocate_all': true }, onIdle: false },
    })
    expect(outcome.groups.map(({ group, lacks }) => [group.name, lacks])).toEqual([
      ['actor+ref', undefined],
      ['vllm', undefined],
      ['critic', 'needs 2 GPUs, 0 free'],
      ['reward', undefined],
    ])
  })

  test('waits for those jobs alone that are in the way', () => {
    const cluster = new Cluster(hosts(4, 4))
    const tenants = [occupyGpus(cluster, 1, 0, [0]), occupyGpus(cluster, 2, 1, [0, 1, 2, 3])]
    const values = { num_learners: 1, num_gpus_per_learner: 4 }
    const outcome = plan(rllib, values, roomOf(cluster, { tenants }))
    expect(outcome.fits).toBe('later')
    expect(outcome.after.tenants.map(({ id }) => id)).toEqual([1])
    const both = plan(rllib, { num_learners: 2, num_gpus_per_learner: 4 }, roomOf(cluster, { tenants }))
    expect(both.after.tenants.map(({ id }) => id)).toEqual([1, 2])
    const split = plan(rllib, values, roomOf(new Cluster(hosts(2, 2))))
    expect(split.change?.values).toEqual({ num_learners: 4, num_gpus_per_learner: 1 })
  })

  test('waits for hosts that are down', () => {
    const cluster = new Cluster(hosts(4, 4))
    cluster.close(1, true)
    const outcome = plan(train, { num_workers: 8, use_gpu: true }, roomOf(cluster, { down: [1] }))
    expect(outcome).toMatchObject({ fits: 'later', after: { tenants: [], hosts: [1] } })
    expect(outcome.change?.values).toEqual({ num_workers: 4 })
  })

  test('runs trials in turn: one that fits is enough', () => {
    const room = roomOf(new Cluster(hosts(2)))
    expect(plan(tune, { num_samples: 5, gpu: 1 }, room)).toMatchObject({ fits: 'now', heldGpuMilli: 2000 })
    expect(plan(tune, { num_samples: 5, gpu: 3 }, room)).toMatchObject({
      fits: 'never',
      change: { values: { gpu: 2 } },
    })
  })

  test('puts data parallel ranks where vLLM does', () => {
    const room = () => roomOf(new Cluster(hosts(4, 4)))
    const ranks = { 'data-parallel-backend': 'ray', 'tensor-parallel-size': 2, 'data-parallel-size-local': 1 }
    const rank = (host: number, ...devices: readonly number[]) =>
      [...devices.map((device) => `m${host}:${device}`), `m${host}:`].join(' ')
    expect(placed(plan(vllm, { ...ranks, 'data-parallel-size': 2 }, room()))).toEqual([rank(1, 0, 1), rank(2, 0, 1)])
    const strict = plan(vllm, { ...ranks, 'data-parallel-size': 3 }, room())
    expect(strict).toMatchObject({ fits: 'never', heldGpuMilli: 6000 - 2000 })
    expect(strict.change).toEqual({ values: { VLLM_RAY_DP_PACK_STRATEGY: 'fill' }, onIdle: false })
    const fill = { ...ranks, 'data-parallel-size': 3, VLLM_RAY_DP_PACK_STRATEGY: 'fill' }
    expect(placed(plan(vllm, fill, room()))).toEqual([rank(1, 0, 1), rank(2, 0, 1), rank(2, 2, 3)])
    const span = { ...ranks, 'tensor-parallel-size': 8, 'data-parallel-size': 1, VLLM_RAY_DP_PACK_STRATEGY: 'span' }
    expect(plan(vllm, { ...span, 'data-parallel-size': 2 }, roomOf(new Cluster(hosts(4, 4, 4, 4)))).fits).toBe('now')
    const local = { ...ranks, 'data-parallel-size': 2, 'tensor-parallel-size': 5 }
    expect(plan(vllm, local, room())).toMatchObject({
      fits: 'never',
      heldGpuMilli: 0,
      refusal: expect.stringContaining('room for 0 of 1'),
    })
  })

  test('keeps single actors that were placed before one that waits', () => {
    const alone = { ...four, 'actor.num_nodes': 3, 'actor.num_gpus_per_node': 1, 'vllm.num_engines': 0 }
    expect(plan(openrlhf, alone, roomOf(new Cluster(hosts(2))))).toMatchObject({ fits: 'never', heldGpuMilli: 2000 })
  })

  test('takes a thousandth of a custom resource, and any GPU where no host declares its model', () => {
    const values = { num_workers: 4, use_gpu: true, accelerator_type: 'A100' }
    const model = { 'accelerator_type:A100': { kind: 'pool', amount: 1 } } as const
    const [m1, m2] = hosts(4, 4)
    const declared = new Cluster(
      inThousandths([{ ...m1, name: 'm1' } as never, { ...m2, name: 'm2', custom: model } as never]),
    )
    expect(placed(plan(train, values, roomOf(declared)))).toEqual(['m2:0 m2:1 m2:2 m2:3'])
    expect(plan(train, values, roomOf(new Cluster(hosts(4)))).fits).toBe('now')
    const licence = { num_env_runners: 1, custom_resources_per_env_runner: { licence: 1 } }
    expect(plan(rllib, licence, roomOf(new Cluster(hosts(4)))).groups[0]?.lacks).toBe('no host declares licence')
  })
})

const amount = fc.constantFrom(0, 0.25, 0.5, 1, 2)
const size = fc.integer({ min: 1, max: 4 })
const anyPlan = fc.oneof(
  fc
    .record({
      num_env_runners: fc.integer({ min: 0, max: 6 }),
      num_gpus_per_env_runner: amount,
      num_learners: fc.integer({ min: 0, max: 3 }),
      num_gpus_per_learner: amount,
    })
    .map((values) => [rllib, values] as const),
  fc
    .record({
      num_workers: fc.integer({ min: 1, max: 9 }),
      use_gpu: fc.boolean(),
      placement_strategy: fc.constantFrom('PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD'),
    })
    .map((values) => [train, values] as const),
  fc.record({ num_samples: size, gpu: amount, workers: size }).map((values) => [tune, values] as const),
  fc
    .record({
      'tensor-parallel-size': size,
      'pipeline-parallel-size': fc.integer({ min: 1, max: 2 }),
      'data-parallel-size': size,
      'data-parallel-size-local': size,
      'data-parallel-backend': fc.constantFrom('ray', 'mp'),
      'distributed-executor-backend': fc.constantFrom('ray', 'mp'),
      VLLM_RAY_DP_PACK_STRATEGY: fc.constantFrom('strict', 'fill', 'span'),
    })
    .map((values) => [vllm, values] as const),
  fc
    .record({
      'actor.num_nodes': size,
      'actor.num_gpus_per_node': size,
      'ref.num_nodes': size,
      'ref.num_gpus_per_node': size,
      'critic.num_gpus_per_node': size,
      'reward.num_gpus_per_node': size,
      'vllm.num_engines': fc.integer({ min: 0, max: 4 }),
      'vllm.tensor_parallel_size': size,
      'train.colocate_actor_ref': fc.boolean(),
      'train.colocate_critic_reward': fc.boolean(),
      'train.colocate_all': fc.boolean(),
    })
    .map((values) => [openrlhf, values] as const),
)

const asPlanned = (framework: Framework, values: Values): GroupsPlan | undefined => {
  try {
    return framework.plan(values)
  } catch {
    return undefined
  }
}
const bundlesOf = (groups: readonly PlanGroup[]) => groups.reduce((sum, { bundles }) => sum + bundles.length, 0)

test('never places more than there is; what fits is placed whole, and so is each change that it names', () => {
  fc.assert(
    fc.property(
      anyPlan,
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 3 })), { maxLength: 4 }),
      ([framework, given], gpus, busy) => {
        const values = valuesOf(framework, given)
        const asked = asPlanned(framework, values)
        if (asked === undefined) return
        const cluster = new Cluster(hosts(...gpus))
        const taken = new Set<string>()
        const tenants = busy.flatMap(([host, device], index) => {
          if (device >= (gpus[host] ?? 0) || taken.has(`${host} ${device}`)) return []
          taken.add(`${host} ${device}`)
          return [occupyGpus(cluster, index + 1, host, [device])]
        })
        const room = roomOf(cluster, { tenants })
        const before = cluster.usedGpuMilli
        const outcome = tryPlan(framework, values, room)
        expect(cluster.usedGpuMilli).toBe(before)
        const own = new Map<string, number>()
        for (const { placements = [] } of outcome.groups)
          for (const { host, devices, shape } of placements)
            for (const device of devices) {
              expect(taken.has(`${host} ${device}`)).toBe(false)
              own.set(`${host} ${device}`, (own.get(`${host} ${device}`) ?? 0) + shape.gpuMilli)
            }
        for (const milli of own.values()) expect(milli).toBeLessThanOrEqual(1000)
        expect(outcome.heldGpuMilli).toBeLessThanOrEqual(cluster.totalGpuMilli - before)
        if (outcome.fits === 'now' && asked.shortage !== 'queues') {
          expect(outcome.groups.map(({ placements }) => placements?.length)).toEqual(
            asked.groups.map(({ bundles }) => bundles.length),
          )
          expect(outcome.groups.reduce((sum, { placements = [] }) => sum + placements.length, 0)).toBe(
            bundlesOf(asked.groups),
          )
        }
        if (outcome.fits === 'never')
          expect(tryPlan(framework, values, roomOf(new Cluster(hosts(...gpus)))).fits).toBe('never')
        if (outcome.fits === 'later')
          expect(tryPlan(framework, values, roomOf(withoutTenants(gpus, tenants, outcome.after.tenants))).fits).toBe(
            'now',
          )
        if (outcome.change !== undefined) {
          const where = outcome.change.onIdle ? roomOf(new Cluster(hosts(...gpus))) : room
          expect(tryPlan(framework, { ...values, ...outcome.change.values }, where).fits).toBe('now')
        }
      },
    ),
    { numRuns: randomRuns(400) },
  )
})

function withoutTenants(
  gpus: readonly number[],
  tenants: readonly PlanTenant[],
  ended: readonly PlanTenant[],
): Cluster {
  const cluster = new Cluster(hosts(...gpus))
  for (const tenant of tenants)
    if (!ended.includes(tenant))
      for (const { host, devices } of tenant.placements) occupyGpus(cluster, tenant.id, host, devices)
  return cluster
}
