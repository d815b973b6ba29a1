/** What each framework asks for: the rows that were seen with its released package. */
import { describe, expect, test } from 'vitest'
import { checkSize, type Framework, type Values } from '../../../../src/scheduler/plans/framework.ts'
import { framework as openrlhf } from '../../../../src/scheduler/plans/openrlhf.ts'
import { framework as rllib } from '../../../../src/scheduler/plans/rllib.ts'
import { framework as train } from '../../../../src/scheduler/plans/train.ts'
import { framework as tune } from '../../../../src/scheduler/plans/tune.ts'
import { framework as vllm } from '../../../../src/scheduler/plans/vllm.ts'
import { valuesOf } from '../../../support/plan-values.ts'

const groupsOf = (framework: Framework, values: Values) => framework.plan(valuesOf(framework, values)).groups
const bundlesOf = (framework: Framework, values: Values) => groupsOf(framework, values).map(({ bundles }) => bundles)

describe('rllib', () => {
  const [cpu, both] = [{ CPU: 1 }, { CPU: 1, GPU: 1 }]
  const quarter = { CPU: 1, GPU: 0.25 }
  test.each<readonly [string, Values, readonly object[]]>([
    ['two env runners', {}, [cpu, cpu, cpu]],
    ['a local learner with a GPU', { num_gpus_per_learner: 1 }, [both, cpu, cpu]],
    ['the old stack with num_gpus', { num_gpus: 1, enable_rl_module_and_learner: false }, [both, cpu, cpu]],
    ['num_gpus, which only the old stack knows', { num_gpus: 1 }, [both, cpu, cpu]],
    [
      'num_gpus on the new stack, which ignores it',
      { num_gpus: 1, enable_rl_module_and_learner: true },
      [cpu, cpu, cpu],
    ],
    [
      'env runners that share a GPU, and two learners',
      { num_gpus_per_env_runner: 0.25, num_learners: 2, num_gpus_per_learner: 1 },
      [cpu, quarter, quarter, { GPU: 1 }, { GPU: 1 }],
    ],
    ['a learner with two GPUs', { num_learners: 1, num_gpus_per_learner: 2 }, [cpu, cpu, cpu, { GPU: 2 }]],
    [
      'a local learner with three cores',
      { evaluation_num_env_runners: 1, num_cpus_per_learner: 3 },
      [{ CPU: 3 }, cpu, cpu, cpu],
    ],
    [
      'a learner with three cores',
      { evaluation_num_env_runners: 1, num_learners: 1, num_cpus_per_learner: 3 },
      [cpu, cpu, cpu, cpu, { CPU: 3 }],
    ],
    [
      'aggregators beside learners',
      { num_env_runners: 1, num_learners: 2, num_aggregator_actors_per_learner: 2 },
      [cpu, cpu, { CPU: 3 }, { CPU: 3 }],
    ],
    [
      'aggregators without learners',
      { num_env_runners: 1, num_aggregator_actors_per_learner: 2 },
      [cpu, cpu, cpu, cpu],
    ],
    ['custom resources', { num_env_runners: 1, custom_resources_per_env_runner: { x: 1 } }, [cpu, { CPU: 1, x: 1 }]],
    [
      'a main process without a core',
      { num_env_runners: 1, num_cpus_for_main_process: 0, num_learners: 1 },
      [cpu, cpu],
    ],
  ])('%s', (_, values, bundles) => {
    expect(groupsOf(rllib, values)).toEqual([{ name: 'algorithm', strategy: 'PACK', bundles }])
  })

  test('refuses a bundle that asks for nothing, and parts of more than one GPU, as Ray does', () => {
    expect(() => groupsOf(rllib, { num_cpus_per_env_runner: 0 })).toThrow(
      'a bundle asks for nothing, which Ray refuses',
    )
    const plan = rllib.plan(valuesOf(rllib, { num_gpus_per_learner: 1.5 }))
    expect(() => checkSize(plan)).toThrow('algorithm: 1.5 GPUs: more than one must be a whole number')
    expect(() => groupsOf(rllib, { num_env_runners: 1e9 })).toThrow('1000000000 bundles are too many')
  })
})

describe('train', () => {
  test.each<readonly [Values, readonly object[]]>([
    [{ num_workers: 2 }, [{ CPU: 1 }, { CPU: 1 }]],
    [{ num_workers: 2, use_gpu: true }, [{ GPU: 1 }, { GPU: 1 }]],
    [{ use_gpu: true, resources_per_worker: { CPU: 2 } }, [{ CPU: 2, GPU: 1 }]],
    [
      { num_workers: 8, use_gpu: true, resources_per_worker: { CPU: 4, GPU: 0.5 }, accelerator_type: 'A100' },
      Array.from({ length: 8 }, () => ({ CPU: 4, GPU: 0.5, 'accelerator_type:A100': 0.001 })),
    ],
  ])('%j', (values, bundles) => {
    expect(groupsOf(train, values)).toEqual([{ name: 'workers', strategy: 'PACK', bundles }])
  })

  test('refuses GPUs without use_gpu', () => {
    expect(() => groupsOf(train, { resources_per_worker: { GPU: 1 } })).toThrow('use_gpu is False')
  })
})

describe('tune', () => {
  test('asks for a group for each trial, at most as many as may run at once', () => {
    expect(bundlesOf(tune, { num_samples: 3 })).toEqual([[{ CPU: 1 }], [{ CPU: 1 }], [{ CPU: 1 }]])
    expect(bundlesOf(tune, { num_samples: 20, max_concurrent_trials: 2, gpu: 0.5 })).toEqual([
      [{ GPU: 0.5 }],
      [{ GPU: 0.5 }],
    ])
    expect(bundlesOf(tune, { cpu: 2, workers: 2, worker_gpu: 1 })).toEqual([
      [{ CPU: 2 }, { CPU: 1, GPU: 1 }, { CPU: 1, GPU: 1 }],
    ])
  })
})

describe('vllm', () => {
  const rank = [{ GPU: 1 }, { GPU: 1 }, { CPU: 1 }]
  const onRay = { 'data-parallel-backend': 'ray', 'tensor-parallel-size': 2, 'data-parallel-size-local': 1 }

  test('takes one group of bundles with one GPU each on Ray', () => {
    const values = { 'distributed-executor-backend': 'ray', 'tensor-parallel-size': 2, 'pipeline-parallel-size': 2 }
    expect(groupsOf(vllm, values)).toEqual([
      { name: 'workers', strategy: 'PACK', bundles: Array.from({ length: 4 }, () => ({ GPU: 1 })) },
    ])
    expect(groupsOf(vllm, { ...values, engines: 3 })).toHaveLength(3)
  })

  test('takes a group for each data parallel rank on Ray', () => {
    expect(groupsOf(vllm, { ...onRay, 'data-parallel-size': 2 })).toEqual([
      { name: 'dp_rank_0', strategy: 'STRICT_PACK', bundles: rank, on: 'driver' },
      { name: 'dp_rank_1', strategy: 'STRICT_PACK', bundles: rank, on: 'unused' },
    ])
    const span = { ...onRay, 'data-parallel-size': 2, VLLM_RAY_DP_PACK_STRATEGY: 'span' }
    expect(groupsOf(vllm, span).map(({ strategy }) => strategy)).toEqual(['PACK', 'PACK'])
  })

  test('shows the ranks that a host has to hold together as one with strict', () => {
    const values = { ...onRay, 'data-parallel-size': 4, 'data-parallel-size-local': 2 }
    expect(groupsOf(vllm, values).map(({ name, bundles }) => [name, bundles])).toEqual([
      ['dp_rank_0-1', [...rank, ...rank]],
      ['dp_rank_2-3', [...rank, ...rank]],
    ])
    const fill = { ...values, VLLM_RAY_DP_PACK_STRATEGY: 'fill' }
    expect(groupsOf(vllm, fill).map(({ on }) => on)).toEqual(['driver', 'driver', 'others', 'others'])
  })

  test('stops at once where its own host is too small, or span has hosts of different sizes', () => {
    const refusal = (values: Values, free: readonly number[]) =>
      vllm.plan(valuesOf(vllm, { ...onRay, ...values })).refuses?.(free)
    const local = { 'data-parallel-size': 2, 'data-parallel-size-local': 3, VLLM_RAY_DP_PACK_STRATEGY: 'fill' }
    expect(refusal(local, [4, 4])).toContain('room for 2 of 3 local data parallel ranks')
    expect(refusal({ 'data-parallel-size': 2, 'tensor-parallel-size': 5 }, [4, 4])).toContain('room for 0 of 1')
    const span = { 'data-parallel-size': 2, VLLM_RAY_DP_PACK_STRATEGY: 'span', 'tensor-parallel-size': 8 }
    expect(refusal(span, [4, 4, 4, 4])).toBeUndefined()
    expect(refusal(span, [4, 4])).toContain('2 ranks need 16 GPUs, and 8 are free')
    expect(refusal(span, [4, 3])).toContain('the same number of free GPUs')
    expect(refusal(span, [8, 8])).toContain('larger than a host')
    expect(refusal({ ...span, 'tensor-parallel-size': 6 }, [4, 4])).toContain('no whole hosts of 4')
    const strict = { 'data-parallel-size': 3, 'data-parallel-size-local': 2 }
    expect(refusal(strict, [4, 2])).toContain('only 1 of 2 hosts')
    expect(refusal(strict, [4, 4])).toBeUndefined()
  })

  test('is a gang of processes without Ray', () => {
    expect(groupsOf(vllm, { 'tensor-parallel-size': 4, 'pipeline-parallel-size': 2, nnodes: 2 })).toEqual([
      { name: 'processes', strategy: 'STRICT_SPREAD', bundles: [{ GPU: 4 }, { GPU: 4 }] },
    ])
    expect(bundlesOf(vllm, { 'tensor-parallel-size': 4 })).toEqual([[{ GPU: 4 }]])
    expect(
      bundlesOf(vllm, { 'tensor-parallel-size': 2, 'data-parallel-size': 3, 'data-parallel-size-local': 2 }),
    ).toEqual([[{ GPU: 4 }, { GPU: 2 }]])
    expect(() => bundlesOf(vllm, { 'tensor-parallel-size': 3, nnodes: 2 })).toThrow('cannot be divided among 2 hosts')
    expect(() => bundlesOf(vllm, { 'tensor-parallel-size': 0 })).toThrow('tensor-parallel-size is 0')
    expect(() => bundlesOf(vllm, { 'data-parallel-backend': 'slurm' })).toThrow('it must be mp or ray')
  })
})

describe('openrlhf', () => {
  const shape = (model: string, nodes: number, gpus: number): Values => ({
    [`${model}.num_nodes`]: nodes,
    [`${model}.num_gpus_per_node`]: gpus,
  })
  const four = { ...shape('actor', 1, 4), ...shape('ref', 1, 4), ...shape('critic', 1, 2), ...shape('reward', 1, 2) }
  const engines = { 'vllm.num_engines': 2, 'vllm.tensor_parallel_size': 2 }
  const sizes = (values: Values) => groupsOf(openrlhf, values).map(({ name, bundles }) => `${name} ${bundles.length}`)

  test.each<readonly [string, Values, readonly string[]]>([
    ['nothing colocated: engines first', {}, ['vllm 4', 'actor 4', 'ref 4', 'critic 2', 'reward 2']],
    ['actor and ref', { 'train.colocate_actor_ref': true }, ['actor+ref 4', 'vllm 4', 'critic 2', 'reward 2']],
    ['critic and reward', { 'train.colocate_critic_reward': true }, ['vllm 4', 'actor 4', 'ref 4', 'critic+reward 2']],
    ['all', { 'train.colocate_all': true }, ['actor+ref+vllm+critic+reward 4']],
    [
      'all, asynchronous',
      { 'train.colocate_all': true, 'train.async_enable': true },
      ['actor+ref+critic+reward 4', 'vllm 4'],
    ],
    ['no ref', { 'algo.kl.init_coef': 0 }, ['vllm 4', 'actor 4', 'critic 2', 'reward 2']],
    ['no critic', { 'algo.advantage.estimator': 'rloo' }, ['vllm 4', 'actor 4', 'ref 4', 'reward 2']],
    ['no reward', { 'reward.remote_url': 'http://m1' }, ['vllm 4', 'actor 4', 'ref 4', 'critic 2']],
    ['an agent gives the reward', { 'train.agent_func_path': 'a.py' }, ['vllm 4', 'actor 4', 'ref 4', 'critic 2']],
    ['no engines', { 'vllm.num_engines': 0 }, ['actor 4', 'ref 4', 'critic 2', 'reward 2']],
  ])('%s', (_, values, expected) => {
    expect(sizes({ ...four, ...engines, ...values })).toEqual(expected)
  })

  test('asks for a GPU and a core a bundle, and for single actors where a model has one GPU per host', () => {
    const [actor, ref] = groupsOf(openrlhf, { ...four, ...shape('ref', 2, 1) })
    expect(actor).toEqual({
      name: 'actor',
      strategy: 'PACK',
      bundles: Array.from({ length: 4 }, () => ({ GPU: 1, CPU: 1 })),
    })
    expect(ref).toMatchObject({
      isLoose: true,
      bundles: [
        { GPU: 1, CPU: 1 },
        { GPU: 1, CPU: 1 },
      ],
    })
  })

  test.each<readonly [Values, string]>([
    [{ ...shape('ref', 1, 2), 'train.colocate_actor_ref': true }, 'actor and ref share their GPUs'],
    [{ ...shape('reward', 1, 1), 'train.colocate_critic_reward': true }, 'critic and reward share their GPUs'],
    [{ 'train.colocate_all': true, 'vllm.num_engines': 1 }, 'must be engines × tensor parallel size (1 × 2)'],
    [
      { 'train.colocate_all': true, ...shape('critic', 1, 8) },
      'critic has 8 workers, but the group that it shares only 4 bundles',
    ],
    [shape('actor', 0, 4), 'actor has 0 GPUs'],
  ])('refuses %j', (values, sentence) => {
    expect(() => groupsOf(openrlhf, { ...four, ...engines, ...values })).toThrow(sentence)
  })
})
