/** RLlib: one placement group of main process, env runners, evaluation runners and learners (`default_resource_request`). */
import {
  type Amounts,
  amounts,
  type Framework,
  fewer,
  flag,
  numberOf,
  strategyOf,
  times,
  type Value,
  type Values,
} from './framework.ts'

const words: Framework['words'] = {
  num_env_runners: { kind: 'count', byDefault: 2, old: ['num_rollout_workers', 'num_workers'] },
  num_cpus_per_env_runner: { kind: 'amount', byDefault: 1, old: ['num_cpus_per_worker'] },
  num_gpus_per_env_runner: { kind: 'amount', byDefault: 0, old: ['num_gpus_per_worker'] },
  custom_resources_per_env_runner: { kind: 'amounts', old: ['custom_resources_per_worker'] },
  num_learners: { kind: 'count', byDefault: 0, old: ['num_learner_workers'] },
  num_cpus_per_learner: { kind: 'amount', byDefault: 'auto', old: ['num_cpus_per_learner_worker'] },
  num_gpus_per_learner: { kind: 'amount', byDefault: 0, old: ['num_gpus_per_learner_worker'] },
  custom_resources_per_learner: { kind: 'amounts' },
  num_aggregator_actors_per_learner: { kind: 'count', byDefault: 0 },
  evaluation_num_env_runners: { kind: 'count', byDefault: 0, old: ['evaluation_num_workers'] },
  num_offline_eval_runners: { kind: 'count', byDefault: 0 },
  num_cpus_per_offline_eval_runner: { kind: 'amount', byDefault: 1 },
  num_gpus_per_offline_eval_runner: { kind: 'amount', byDefault: 0 },
  num_cpus_for_main_process: {
    kind: 'amount',
    byDefault: 1,
    old: ['num_cpus_for_local_worker', 'num_cpus_for_driver'],
  },
  custom_resources_for_main_process: { kind: 'amounts' },
  /** Missing: the new API stack, unless `num_gpus` is given, which means something on the old one only. */
  enable_rl_module_and_learner: { kind: 'switch' },
  num_gpus: { kind: 'amount', byDefault: 0 },
  placement_strategy: { kind: 'text', byDefault: 'PACK' },
}

export const framework: Framework = {
  source: 'ray 2.60.0',
  example: 'PPOConfig().env_runners(num_env_runners=2).learners(num_gpus_per_learner=1)',
  words,
  flags: [
    flag('--env-runners <n>', 'run N env runners (default: 2, as PPO, APPO and IMPALA)', words, 'num_env_runners'),
    flag('--cpu-per-env-runner <n>', 'cores of each (default: 1)', words, 'num_cpus_per_env_runner'),
    flag('--gpu-per-env-runner <n>', 'GPUs of each; 0.25 shares one (default: 0)', words, 'num_gpus_per_env_runner'),
    flag('--learners <n>', 'run N remote learners (default: 0: the main process learns)', words, 'num_learners'),
    flag('--cpu-per-learner <n>', 'cores of each (default: 1 without a GPU, else 0)', words, 'num_cpus_per_learner'),
    flag('--gpu-per-learner <n>', 'GPUs of each, on one host (default: 0)', words, 'num_gpus_per_learner'),
    flag(
      '--aggregators <n>',
      'aggregator actors of each learner (default: 0)',
      words,
      'num_aggregator_actors_per_learner',
    ),
    flag(
      '--eval-env-runners <n>',
      'run N env runners for evaluation (default: 0)',
      words,
      'evaluation_num_env_runners',
    ),
    flag('--main-cpu <n>', 'cores of the main process (default: 1)', words, 'num_cpus_for_main_process'),
    flag('--gpu <n>', 'GPUs of the main process on the old API stack (num_gpus)', words, 'num_gpus'),
    flag('--strategy <name>', 'placement_strategy (default: PACK)', words, 'placement_strategy'),
  ],
  renamed: {
    num_gpus: 'num_gpus_per_learner on the new API stack',
    'rollouts()': 'env_runners()',
    'exploration()': 'env_runners()',
    sgd_minibatch_size: 'minibatch_size',
    num_sgd_iter: 'num_epochs',
    num_envs_per_worker: 'num_envs_per_env_runner',
  },
  write: (word, value) => `${word}=${value}`,
  plan(values) {
    const main = amounts(mainOf(values))
    const bundles = [
      ...(Object.keys(main).length === 0 ? [] : [main]),
      ...times(numberOf(values, 'num_env_runners'), envRunnerOf(values)),
      ...times(numberOf(values, 'evaluation_num_env_runners'), envRunnerOf(values)),
      ...times(numberOf(values, 'num_offline_eval_runners'), {
        CPU: numberOf(values, 'num_cpus_per_offline_eval_runner'),
        GPU: numberOf(values, 'num_gpus_per_offline_eval_runner'),
      }),
      ...learnersOf(values),
    ]
    return {
      groups: [{ name: 'algorithm', bundles, strategy: strategyOf(values.placement_strategy) }],
      shortage: 'hangs',
    }
  },
  *changes(values) {
    const [learners, gpus] = [numberOf(values, 'num_learners'), numberOf(values, 'num_gpus_per_learner')]
    if (gpus > 1) yield { num_learners: Math.max(1, learners) * gpus, num_gpus_per_learner: 1 }
    if (String(values.placement_strategy).startsWith('STRICT')) yield { placement_strategy: 'PACK' }
    if (numberOf(values, 'num_gpus_per_env_runner') > 0) yield { num_gpus_per_env_runner: 0 }
    yield* fewer(values, 'num_env_runners')
    yield* fewer(values, 'num_learners')
  },
}

const customOf = (value: Value): Amounts => (value as Amounts | undefined) ?? {}
const isNewStack = (values: Values) =>
  (values.enable_rl_module_and_learner as boolean | undefined) ?? numberOf(values, 'num_gpus') === 0

const learnerGpus = (values: Values) => numberOf(values, 'num_gpus_per_learner')
/** `auto` is no core beside a GPU. */
const learnerCpus = (values: Values) =>
  values.num_cpus_per_learner === 'auto' || values.num_cpus_per_learner === undefined
    ? Number(learnerGpus(values) === 0)
    : numberOf(values, 'num_cpus_per_learner')

function mainOf(values: Values): Amounts {
  const custom = customOf(values.custom_resources_for_main_process)
  const cpus = numberOf(values, 'num_cpus_for_main_process')
  if (!isNewStack(values)) return { CPU: cpus, GPU: numberOf(values, 'num_gpus'), ...custom }
  if (numberOf(values, 'num_learners') > 0) return { CPU: cpus, ...custom }
  return { CPU: Math.max(cpus, learnerCpus(values)), GPU: learnerGpus(values), ...custom }
}

const envRunnerOf = (values: Values): Amounts => ({
  CPU: numberOf(values, 'num_cpus_per_env_runner'),
  GPU: numberOf(values, 'num_gpus_per_env_runner'),
  ...customOf(values.custom_resources_per_env_runner),
})

function learnersOf(values: Values): readonly Amounts[] {
  if (!isNewStack(values)) return []
  const [count, aggregators] = [numberOf(values, 'num_learners'), numberOf(values, 'num_aggregator_actors_per_learner')]
  if (count === 0) return times(aggregators, { CPU: 1 })
  return times(count, {
    CPU: learnerCpus(values) + aggregators,
    GPU: learnerGpus(values),
    ...customOf(values.custom_resources_per_learner),
  })
}
