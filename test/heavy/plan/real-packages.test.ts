/**
 * Plans beside the frameworks' own code, in the environment of heavy tests or of the interpreter that MUSTER_RLLIB_PYTHON names.
 * What a plan says of placing is compared with placement groups of a real Ray whose nodes have declared GPUs.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Cluster } from '../../../src/scheduler/model/cluster.ts'
import type { Framework, Values } from '../../../src/scheduler/plans/framework.ts'
import { framework as openrlhf } from '../../../src/scheduler/plans/openrlhf.ts'
import { tryPlan } from '../../../src/scheduler/plans/place-plan.ts'
import { framework as rllib } from '../../../src/scheduler/plans/rllib.ts'
import { framework as train } from '../../../src/scheduler/plans/train.ts'
import { framework as vllm } from '../../../src/scheduler/plans/vllm.ts'
import { environmentDirectory } from '../../lab/cluster/python-environment.ts'
import { ROOT } from '../../support/console-options.ts'
import { valuesOf } from '../../support/plan-values.ts'
import { requirement } from '../../support/requirements.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const OWN_PYTHON = process.env.MUSTER_RLLIB_PYTHON
const PYTHON = OWN_PYTHON ?? join(environmentDirectory('ray-libraries'), 'venv', 'bin', 'python')
const canRun = OWN_PYTHON !== undefined || requirement('environment ray-libraries', 'python torch')

function hasPackages(program: string): boolean {
  if (OWN_PYTHON === undefined) return canRun
  const { status, stderr, error } = spawnSync(PYTHON, ['-c', program], { encoding: 'utf8' })
  if (status === 0) return true
  const reason = error?.message ?? stderr.trim().split('\n').at(-1)
  process.stderr.write(`skipped: ${PYTHON} -c '${program}': ${reason}\n`)
  return false
}

function ask<T>(what: string, question: unknown): T {
  const { status, stdout, stderr } = spawnSync(PYTHON, [join(ROOT, 'test/support/plan-oracle.py'), what], {
    input: JSON.stringify(question),
    encoding: 'utf8',
    env: { ...process.env, RAY_TRAIN_V2_ENABLED: '1', RAY_USAGE_STATS_ENABLED: '0' },
    timeout: 250_000,
    // Ray is stopped on the way out.
    killSignal: 'SIGINT',
    maxBuffer: 2 ** 24,
  })
  if (status !== 0) throw new Error(stderr.slice(-2000))
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as T
}

/** Inside a test. */
function picker() {
  const random = seededRandom()
  return <T>(...values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
}

describe.skipIf(!hasPackages('import torch, ray.rllib'))('RLlib', () => {
  test('asks for the same bundles in random configurations', () => {
    const pick = picker()
    const configs = Array.from({ length: 60 }, () => {
      const isOld = pick(true, false, false, false)
      return {
        num_env_runners: pick(0, 1, 2, 5),
        num_cpus_per_env_runner: pick(1, 2, 0.5),
        num_gpus_per_env_runner: pick(0, 0.25, 1),
        evaluation_num_env_runners: pick(0, 1, 3),
        num_cpus_for_main_process: pick(1, 2, 4),
        ...(isOld
          ? { enable_rl_module_and_learner: false, num_gpus: pick(0, 0.5, 1, 2) }
          : {
              enable_rl_module_and_learner: true,
              num_learners: pick(0, 1, 3),
              num_cpus_per_learner: pick<number | string>('auto', 1, 3),
              num_gpus_per_learner: pick(0, 0.5, 1, 2),
              num_aggregator_actors_per_learner: pick(0, 0, 2),
            }),
        placement_strategy: pick('PACK', 'SPREAD', 'STRICT_PACK'),
      }
    })
    const theirs = ask<readonly { readonly bundles: unknown; readonly strategy: string }[]>('rllib', configs)
    const ours = configs.map((values) => rllib.plan(valuesOf(rllib, values)).groups[0])
    expect(ours.map((group) => ({ bundles: group?.bundles, strategy: group?.strategy }))).toEqual(theirs)
  })
})

describe.skipIf(!hasPackages('import pandas, ray.train'))('Ray Train', () => {
  test('asks for the same bundles, and refuses the same', () => {
    const pick = picker()
    const configs = Array.from({ length: 60 }, (): Values => {
      const resources = pick(undefined, { CPU: 4 }, { CPU: 2, GPU: 0.5 }, { GPU: 1 }, { CPU: 1, licence: 2 })
      const model = pick(undefined, 'A100')
      return {
        num_workers: pick(1, 2, 8),
        use_gpu: pick(true, false),
        ...(resources === undefined ? {} : { resources_per_worker: resources }),
        ...(model === undefined ? {} : { accelerator_type: model }),
      }
    })
    const ours = configs.map((values) => {
      try {
        return train.plan(valuesOf(train, values)).groups[0]?.bundles
      } catch {
        return null
      }
    })
    expect(ours).toEqual(ask('train', configs))
  })
})

const HAS_VLLM = 'import importlib.util; assert importlib.util.find_spec("vllm"), "there is no vllm"'

describe.skipIf(!hasPackages(HAS_VLLM))('vLLM', () => {
  test('its own function places data parallel ranks on the same hosts, and fails for the same', () => {
    const pick = picker()
    const questions = Array.from({ length: 400 }, () => {
      const pack = pick('strict', 'fill', 'span')
      const dp = pick(1, 2, 3, 4, 5)
      const free = pick([4, 4], [4, 4, 4], [8, 4, 2], [2, 2, 2, 2], [4, 0, 4], [0, 4], [3, 4])
      return { pack, dp, local: pack === 'span' ? pick(1, 1, 2) : pick(1, 2, dp), world: pick(1, 2, 4, 8), free }
    })
    const ours = questions.map(({ pack, dp, local, world, free }) => {
      const values = {
        'tensor-parallel-size': world,
        'data-parallel-size': dp,
        'data-parallel-size-local': local,
        'data-parallel-backend': 'ray',
        VLLM_RAY_DP_PACK_STRATEGY: pack,
      }
      const hosts = free.map((gpus, index) => ({
        name: `n${index}`,
        cpuMilli: 64_000,
        memoryBytes: 0,
        gpus: Array.from({ length: gpus }, () => ''),
      }))
      const room = { cluster: new Cluster(hosts), tenants: [], down: [], driver: 0 }
      const { fits, groups, refusal } = tryPlan(vllm, valuesOf(vllm, values), room)
      // The ranks of one host are one group here with strict.
      const ranks = groups.flatMap(({ group: { bundles }, placements = [] }) => {
        const placed = [...new Set(placements.map(({ host }) => host))].sort()
        const count = pack === 'span' ? 1 : bundles.filter(({ CPU }) => CPU !== undefined).length
        return placements.length === 0 ? [] : Array.from({ length: count }, () => placed)
      })
      return { fails: fits !== 'now', hosts: refusal === undefined ? ranks : undefined }
    })
    const theirs = ask<readonly { readonly fails: boolean; readonly hosts: readonly unknown[] }[]>('vllm', questions)
    for (const [index, one] of theirs.entries()) {
      expect([questions[index], ours[index]?.fails]).toEqual([questions[index], one.fails])
      if (ours[index]?.hosts !== undefined)
        expect([questions[index], ours[index]?.hosts]).toEqual([questions[index], one.hosts])
    }
    expect(theirs.filter(({ fails }) => !fails).length).toBeGreaterThan(50)
  })
})

describe.skipIf(!hasPackages('import ray.cluster_utils'))('Ray with declared GPUs', () => {
  test('places what a plan says fits, and leaves waiting what it says waits', () => {
    const gpus = [4, 4, 2]
    const shape = (model: string, nodes: number, count: number) => ({
      [`${model}.num_nodes`]: nodes,
      [`${model}.num_gpus_per_node`]: count,
    })
    const models = {
      ...shape('actor', 1, 4),
      ...shape('ref', 1, 4),
      ...shape('critic', 1, 2),
      ...shape('reward', 1, 2),
    }
    const engines = { 'vllm.num_engines': 2, 'vllm.tensor_parallel_size': 2 }
    const plans: readonly (readonly [Framework, Values])[] = [
      [openrlhf, { ...models, ...engines }],
      [openrlhf, { ...models, ...engines, 'train.colocate_actor_ref': true, 'train.colocate_critic_reward': true }],
      [openrlhf, { ...models, ...engines, 'train.colocate_all': true }],
      [rllib, { num_learners: 2, num_gpus_per_learner: 4 }],
      [rllib, { num_learners: 3, num_gpus_per_learner: 3 }],
      [rllib, { num_env_runners: 40, num_cpus_per_env_runner: 1 }],
      [rllib, { num_env_runners: 48, num_cpus_per_env_runner: 1 }],
      [rllib, { num_env_runners: 2, num_gpus_per_env_runner: 0.25, num_learners: 2, num_gpus_per_learner: 1 }],
      [train, { num_workers: 10, use_gpu: true }],
      [train, { num_workers: 11, use_gpu: true }],
      [train, { num_workers: 4, use_gpu: true, placement_strategy: 'STRICT_PACK' }],
      [train, { num_workers: 5, use_gpu: true, placement_strategy: 'STRICT_PACK' }],
      [train, { num_workers: 3, use_gpu: true, placement_strategy: 'STRICT_SPREAD' }],
      [train, { num_workers: 4, use_gpu: true, placement_strategy: 'STRICT_SPREAD' }],
      [train, { num_workers: 6, use_gpu: true, resources_per_worker: { GPU: 0.6, CPU: 2 } }],
    ]
    const cluster = () =>
      new Cluster(
        gpus.map((count, index) => ({
          name: `n${index}`,
          cpuMilli: 16_000,
          memoryBytes: 0,
          gpus: Array.from({ length: count }, () => ''),
        })),
      )
    const outcomes = plans.map(([framework, values]) =>
      tryPlan(framework, valuesOf(framework, values), { cluster: cluster(), tenants: [], down: [], driver: 0 }),
    )
    const placed = outcomes.map(({ groups }) => groups.filter(({ placements }) => placements !== undefined).length)
    const asked = outcomes.map(({ groups }) =>
      groups.map(({ group: { bundles, strategy } }) => ({ bundles, strategy })),
    )
    expect(outcomes.filter(({ fits }) => fits === 'now').length).toBeGreaterThanOrEqual(8)
    expect(placed).toEqual(ask('groups', { hosts: gpus, plans: asked }))
  })
})
