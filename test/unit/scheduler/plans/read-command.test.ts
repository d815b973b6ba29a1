/** Options of frameworks in lines of a shell and of Python, which are read and never run. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { framework as openrlhf } from '../../../../src/scheduler/plans/openrlhf.ts'
import { readCommand, splitWords } from '../../../../src/scheduler/plans/read-command.ts'
import { framework as rllib } from '../../../../src/scheduler/plans/rllib.ts'
import { framework as train } from '../../../../src/scheduler/plans/train.ts'
import { framework as tune } from '../../../../src/scheduler/plans/tune.ts'
import { framework as vllm } from '../../../../src/scheduler/plans/vllm.ts'

describe('splitWords', () => {
  test.each([
    ['a  b\tc', ['a', 'b', 'c']],
    [`a 'b "c' "d 'e\\" $f"`, ['a', 'b "c', `d 'e" $f`]],
    ['a \\\n  b\\ c', ['a', 'b c']],
    ['A=1 b # rest\nc', ['A=1', 'b', 'c']],
    ['a && b | c; d > e', ['a', 'b', 'c', 'd', 'e']],
    [`''`, ['']],
  ])('%j', (line, words) => {
    expect(splitWords(line)).toEqual(words)
  })

  test('refuses a quote that is not closed, and very long lines', () => {
    expect(() => splitWords("a 'b")).toThrow("the line has a ' that is not closed")
    expect(() => splitWords('a'.repeat(70_000))).toThrow('longer than 64 KB')
  })

  test('splits any quoted words again', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (words) => {
        const line = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
        expect(splitWords(line)).toEqual(words)
      }),
    )
  })
})

describe('readCommand', () => {
  test('reads flags of OpenRLHF, old ones and those of programs that start it', () => {
    const line = `ray job submit --address x --runtime-env-json='{"working_dir": "."}' -- python3 -m openrlhf.cli.train_ppo_ray \\
      --actor_num_nodes 1 --actor.num_gpus_per_node 4 --vllm.num_engines=2 --colocate_all_models --pretrain m --zero_stage 3`
    expect(readCommand(line, openrlhf)).toEqual({
      values: {
        'actor.num_nodes': 1,
        'actor.num_gpus_per_node': 4,
        'vllm.num_engines': 2,
        'train.colocate_all': true,
      },
      unknown: ['--zero_stage'],
      renamed: [
        { old: '--actor_num_nodes', now: '--actor.num_nodes' },
        { old: '--colocate_all_models', now: '--train.colocate_all' },
        { old: '--pretrain', now: 'actor.model_name_or_path' },
      ],
    })
  })

  test('reads flags and variables of vLLM, and its Python', () => {
    const line =
      'VLLM_RAY_DP_PACK_STRATEGY=fill vllm serve m --tensor-parallel-size 2 -dp 3 --worker-use-ray --max-model-len 8192'
    expect(readCommand(line, vllm)).toEqual({
      values: {
        VLLM_RAY_DP_PACK_STRATEGY: 'fill',
        'tensor-parallel-size': 2,
        'data-parallel-size': 3,
        'worker-use-ray': true,
      },
      unknown: ['--max-model-len'],
      renamed: [{ old: '--worker-use-ray', now: '--distributed-executor-backend ray' }],
    })
    expect(readCommand('LLM("m", tensor_parallel_size=4)', vllm).values).toEqual({ 'tensor-parallel-size': 4 })
  })

  test('reads calls and dicts of RLlib, and says the new words', () => {
    const line =
      'PPOConfig().rollouts(num_rollout_workers=2, num_envs_per_worker=4).resources(num_gpus=1).training(sgd_minibatch_size=128, lr=1e-4)'
    expect(readCommand(line, rllib)).toEqual({
      values: { num_env_runners: 2, num_gpus: 1 },
      unknown: ['lr'],
      renamed: [
        { old: '.rollouts()', now: '.env_runners()' },
        { old: 'num_rollout_workers', now: 'num_env_runners' },
        { old: 'num_envs_per_worker', now: 'num_envs_per_env_runner' },
        { old: 'num_gpus', now: 'num_gpus_per_learner on the new API stack' },
        { old: 'sgd_minibatch_size', now: 'minibatch_size' },
      ],
    })
    for (const dict of [`--config '{"num_workers":3, "num_gpus": 0.5}'`, 'config={"num_workers": 3, "num_gpus": 0.5}'])
      expect(readCommand(`rllib train --run PPO ${dict}`, rllib).values).toEqual({ num_env_runners: 3, num_gpus: 0.5 })
    expect(readCommand('python3 cartpole.py --num-env-runners 4 --num-learners=2', rllib).values).toEqual({
      num_env_runners: 4,
      num_learners: 2,
    })
    expect(readCommand('config.num_env_runners = 5', rllib).values).toEqual({ num_env_runners: 5 })
  })

  test('reads resources of Train and Tune', () => {
    const line =
      'ScalingConfig(num_workers=8, use_gpu=True, resources_per_worker={"CPU": 4, "GPU": 0.5}, accelerator_type="A100")'
    expect(readCommand(line, train).values).toEqual({
      num_workers: 8,
      use_gpu: true,
      resources_per_worker: { CPU: 4, GPU: 0.5 },
      accelerator_type: 'A100',
    })
    const tuner = 'Tuner(with_resources(f, {"cpu": 2, "gpu": 0.5}), tune_config=TuneConfig(num_samples=20))'
    expect(readCommand(tuner, tune).values).toEqual({ cpu: 2, gpu: 0.5, num_samples: 20 })
  })

  test.each([
    ['vllm serve m -tp $TP', vllm, 'the value of -tp is $TP: write its number'],
    ['vllm serve m -tp `nproc`', vllm, 'the value of -tp is `nproc`: write its number'],
    ['vllm serve m -tp two', vllm, '-tp is two: it must be a whole number of 0 or more'],
    ['vllm serve m -tp', vllm, '-tp has no value'],
    ['vllm serve m -tp -1', vllm, '-tp is -1: it must be a whole number'],
    ['ScalingConfig(num_workers=(1, 4))', train, 'num_workers has no value that can be read'],
    ['ScalingConfig(use_gpu=maybe)', train, 'use_gpu is maybe: it must be true or false'],
    ['ScalingConfig(resources_per_worker={4})', train, 'write it as CPU=4,GPU=0.5'],
    ['a -tp \u001b[31m', vllm, '-tp is \\x1b[31m'],
  ])('refuses %j', (line, framework, sentence) => {
    expect(() => readCommand(line, framework)).toThrow(sentence)
  })

  test('never fails in another way, and takes no long time, whatever the line is', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom(rllib, train, tune, vllm, openrlhf), (line, framework) => {
        try {
          readCommand(line, framework)
        } catch (error) {
          expect(error).toMatchObject({ code: 'usage' })
        }
      }),
    )
    expect(readCommand(`${'a '.repeat(30_000)}`, rllib).values).toEqual({})
    expect(readCommand('a'.repeat(60_000), rllib).values).toEqual({})
  })
})
