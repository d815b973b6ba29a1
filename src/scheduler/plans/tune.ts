/** Ray Tune: one placement group a trial. Trials that do not fit wait until others end, so one that fits is enough. */
import { type Framework, fewer, flag, numberOf, refusal, strategyOf, times } from './framework.ts'

const words: Framework['words'] = {
  num_samples: { kind: 'count', byDefault: 1 },
  max_concurrent_trials: { kind: 'count' },
  cpu: { kind: 'amount', aliases: ['CPU'] },
  gpu: { kind: 'amount', byDefault: 0, aliases: ['GPU'] },
  workers: { kind: 'count', byDefault: 0 },
  worker_cpu: { kind: 'amount', byDefault: 1 },
  worker_gpu: { kind: 'amount', byDefault: 0 },
  strategy: { kind: 'text', byDefault: 'PACK' },
}

export const framework: Framework = {
  source: 'ray 2.60.0',
  example: 'Tuner(with_resources(f, {"cpu": 2, "gpu": 0.5}), tune_config=TuneConfig(num_samples=20))',
  words,
  flags: [
    flag('--samples <n>', 'number of trials (default: 1)', words, 'num_samples'),
    flag('--concurrent <n>', 'run at most N trials at once (default: as many as fit)', words, 'max_concurrent_trials'),
    flag('--cpu <n>', 'cores of a trial (default: 1, and 0 with a GPU)', words, 'cpu'),
    flag('--gpu <n>', 'GPUs of a trial; 0.5 shares one (default: 0)', words, 'gpu'),
    flag('--workers <n>', 'bundles that each trial has besides its own (default: 0)', words, 'workers'),
    flag('--worker-cpu <n>', 'cores of each of them (default: 1)', words, 'worker_cpu'),
    flag('--worker-gpu <n>', 'GPUs of each of them (default: 0)', words, 'worker_gpu'),
    flag('--strategy <name>', 'strategy of the placement group of a trial (default: PACK)', words, 'strategy'),
  ],
  renamed: { resources_per_trial: 'tune.with_resources()' },
  write: (word, value) => `${word}=${value}`,
  plan(values) {
    const trials = Math.min(numberOf(values, 'num_samples'), numberOf(values, 'max_concurrent_trials') || Infinity)
    if (trials === 0) throw refusal('no trials: num_samples is 0')
    const gpu = numberOf(values, 'gpu')
    const bundles = [
      ...times(1, { CPU: (values.cpu as number | undefined) ?? Number(gpu === 0), GPU: gpu }),
      ...times(numberOf(values, 'workers'), {
        CPU: numberOf(values, 'worker_cpu'),
        GPU: numberOf(values, 'worker_gpu'),
      }),
    ]
    const strategy = strategyOf(values.strategy)
    return {
      groups: times(trials, { CPU: 1 }).map((_, index) => ({
        name: `trial ${index + 1}`,
        family: 'trial',
        bundles,
        strategy,
      })),
      shortage: 'queues',
    }
  },
  *changes(values) {
    if (String(values.strategy).startsWith('STRICT')) yield { strategy: 'PACK' }
    const gpu = numberOf(values, 'gpu')
    if (gpu > 0 && gpu <= 1) for (const share of [0.5, 0.25, 0.1]) if (share < gpu) yield { gpu: share }
    yield* fewer(values, 'cpu')
    yield* fewer(values, 'workers')
    if (gpu > 1) yield* fewer(values, 'gpu')
  },
}
