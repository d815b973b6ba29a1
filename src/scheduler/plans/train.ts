/** Ray Train: one placement group with a bundle a worker (`ScalingConfig`); the controller takes no part in it. */
import {
  type Amounts,
  type Framework,
  fewer,
  flag,
  numberOf,
  parseAmounts,
  refusal,
  strategyOf,
  times,
  type Values,
} from './framework.ts'

const words: Framework['words'] = {
  num_workers: { kind: 'count', byDefault: 1 },
  use_gpu: { kind: 'switch', byDefault: false },
  resources_per_worker: { kind: 'amounts' },
  accelerator_type: { kind: 'text' },
  placement_strategy: { kind: 'text', byDefault: 'PACK' },
}

export const framework: Framework = {
  source: 'ray 2.60.0',
  example: 'ScalingConfig(num_workers=8, use_gpu=True, resources_per_worker={"CPU": 4, "GPU": 0.5})',
  words,
  flags: [
    flag('--workers <n>', 'run N workers (default: 1)', words, 'num_workers'),
    {
      flags: '--gpu <n>',
      about: 'GPUs of each worker; 0.5 shares one (default: 0)',
      read: (text) => perWorker('--gpu', `GPU=${text}`),
    },
    {
      flags: '--cpu <n>',
      about: 'cores of each worker (default: 1, and 0 with a GPU)',
      read: (text) => perWorker('--cpu', `CPU=${text}`),
    },
    {
      flags: '--resources <list>',
      about: 'resources of each worker: CPU=4,GPU=0.5',
      read: (text) => perWorker('--resources', text),
    },
    flag(
      '--accelerator-type <name>',
      'only on hosts with this GPU model, as Ray names it: A100',
      words,
      'accelerator_type',
    ),
    flag('--strategy <name>', 'placement_strategy (default: PACK)', words, 'placement_strategy'),
  ],
  renamed: { trainer_resources: 'no longer there: the controller takes no resources of the group' },
  write: (word, value) =>
    `${word}=${typeof value === 'object' ? JSON.stringify(value) : value === true ? 'True' : value === false ? 'False' : value}`,
  plan(values) {
    if (numberOf(values, 'num_workers') === 0)
      throw refusal('num_workers is 0: Ray Train then runs in the process that calls it, and asks for nothing')
    const bundles = times(numberOf(values, 'num_workers'), workerOf(values))
    return {
      groups: [{ name: 'workers', bundles, strategy: strategyOf(values.placement_strategy) }],
      shortage: 'hangs',
    }
  },
  *changes(values) {
    const strategy = String(values.placement_strategy)
    if (strategy.startsWith('STRICT')) yield { placement_strategy: strategy === 'STRICT_SPREAD' ? 'SPREAD' : 'PACK' }
    const { CPU = 0, ...rest } = workerOf(values)
    const most = Math.ceil(CPU) - 1
    for (let cpus = most; cpus >= 1; cpus--) yield { resources_per_worker: { CPU: cpus, ...rest } }
    yield* fewer(values, 'num_workers')
  },
}

/** What `muster plan` was told about a worker; GPUs switch `use_gpu` on. */
function perWorker(flagName: string, text: string): Values {
  const given = parseAmounts(flagName, text)
  return { resources_per_worker: given, ...((given.GPU ?? 0) > 0 ? { use_gpu: true } : {}) }
}

/** Only where nothing else is given has a worker a core, and none beside a GPU. */
function workerOf({ use_gpu: usesGpu, resources_per_worker: given, accelerator_type: model }: Values): Amounts {
  const own = given as Amounts | undefined
  if (own?.GPU !== undefined && usesGpu !== true)
    throw refusal('resources_per_worker has GPUs, but use_gpu is False: Ray Train refuses that')
  return {
    ...(own ?? (usesGpu === true ? {} : { CPU: 1 })),
    ...(usesGpu === true ? { GPU: own?.GPU ?? 1 } : {}),
    ...(model === undefined ? {} : { [`accelerator_type:${model}`]: 0.001 }),
  }
}
