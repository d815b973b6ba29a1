/**
 * vLLM: an engine of tensor × pipeline × prefill-context workers with a GPU each, as processes on its hosts or as a placement group
 * of Ray; with data parallel ranks on Ray one group a rank (`create_dp_placement_groups`).
 */
import {
  type Framework,
  fewer,
  flag,
  type GroupsPlan,
  numberOf,
  type PlanGroup,
  refusal,
  times,
  type Values,
} from './framework.ts'

const words: Framework['words'] = {
  'tensor-parallel-size': { kind: 'count', byDefault: 1, aliases: ['tp'] },
  'pipeline-parallel-size': { kind: 'count', byDefault: 1, aliases: ['pp'] },
  'prefill-context-parallel-size': { kind: 'count', byDefault: 1, aliases: ['pcp'] },
  'data-parallel-size': { kind: 'count', byDefault: 1, aliases: ['dp'] },
  'data-parallel-size-local': { kind: 'count', aliases: ['dpl'] },
  'data-parallel-backend': { kind: 'text', byDefault: 'mp', aliases: ['dpb'] },
  'distributed-executor-backend': { kind: 'text', byDefault: 'mp' },
  'worker-use-ray': { kind: 'switch' },
  nnodes: { kind: 'count', byDefault: 1 },
  VLLM_RAY_DP_PACK_STRATEGY: { kind: 'text', byDefault: 'strict' },
  engines: { kind: 'count', byDefault: 1 },
}

export const framework: Framework = {
  source: 'vllm 0.33.0',
  example: 'vllm serve MODEL --tensor-parallel-size 4 --pipeline-parallel-size 2',
  words,
  flags: [
    flag('--tp <n>', 'tensor parallel size: GPUs that share each layer (default: 1)', words, 'tensor-parallel-size'),
    flag('--pp <n>', 'pipeline parallel size (default: 1)', words, 'pipeline-parallel-size'),
    flag('--pcp <n>', 'prefill context parallel size (default: 1)', words, 'prefill-context-parallel-size'),
    flag('--dp <n>', 'data parallel ranks (default: 1)', words, 'data-parallel-size'),
    flag('--dp-local <n>', 'data parallel ranks on each host (default: all)', words, 'data-parallel-size-local'),
    flag('--dp-backend <name>', 'mp or ray (default: mp)', words, 'data-parallel-backend'),
    flag(
      '--dp-pack <name>',
      'pack ranks on Ray strict, fill or span: VLLM_RAY_DP_PACK_STRATEGY (default: strict)',
      words,
      'VLLM_RAY_DP_PACK_STRATEGY',
    ),
    flag('--backend <name>', 'distributed executor: mp or ray (default: mp)', words, 'distributed-executor-backend'),
    flag('--nodes <n>', 'nnodes: run an engine without Ray on N hosts (default: 1)', words, 'nnodes'),
    flag('--engines <n>', 'run N engines that know nothing of each other (default: 1)', words, 'engines'),
  ],
  renamed: {
    'worker-use-ray': '--distributed-executor-backend ray',
    'engine-use-ray': 'no longer there',
  },
  write: (word, value) => (word.startsWith('VLLM_') ? `${word}=${value}` : `--${word} ${value}`),
  plan(values) {
    const engines = numberOf(values, 'engines')
    for (const word of SIZES) if (numberOf(values, word) === 0) throw refusal(`${word} is 0: it must be 1 or more`)
    oneOf(values, 'data-parallel-backend', ['mp', 'ray'])
    oneOf(values, 'distributed-executor-backend', ['mp', 'ray', 'uni', 'external_launcher'])
    const isDpOnRay = values['data-parallel-backend'] === 'ray'
    if (isDpOnRay && engines > 1)
      throw refusal('engines with data parallel ranks on Ray share names: plan them one by one')
    const one = isDpOnRay ? ranksOnRay(values) : engineOf(values)
    const named = (index: number) => (engines === 1 ? one.groups : one.groups.map((group) => numbered(group, index)))
    return { ...one, groups: times(engines, { GPU: 1 }).flatMap((_, index) => named(index + 1)) }
  },
  *changes(values) {
    const [world, dp] = [worldOf(values), numberOf(values, 'data-parallel-size')]
    const tensor = numberOf(values, 'tensor-parallel-size')
    if (values['data-parallel-backend'] === 'ray') {
      for (const strategy of ['fill', 'strict', 'span']) yield { VLLM_RAY_DP_PACK_STRATEGY: strategy }
      for (const change of fewer({ local: localOf(values) }, 'local'))
        for (const strategy of ['strict', 'fill'])
          yield { 'data-parallel-size-local': change.local, VLLM_RAY_DP_PACK_STRATEGY: strategy }
    } else {
      const isOnRay = values['distributed-executor-backend'] === 'ray' || values['worker-use-ray'] === true
      if (!isOnRay && world > 1) {
        yield { 'distributed-executor-backend': 'ray' }
        for (let nodes = 2; nodes <= world; nodes++) if (world % nodes === 0) yield { nnodes: nodes }
      }
      for (const change of fewer({ local: localOf(values) }, 'local'))
        if (dp > 1 && !isOnRay) yield { 'data-parallel-size-local': change.local }
    }
    yield* fewer(values, 'engines')
    yield* fewer(values, 'data-parallel-size')
    for (let size = tensor / 2; Number.isInteger(size) && size >= 1; size /= 2) yield { 'tensor-parallel-size': size }
  },
}

const SIZES = [
  'tensor-parallel-size',
  'pipeline-parallel-size',
  'prefill-context-parallel-size',
  'data-parallel-size',
  'nnodes',
  'engines',
]

function oneOf(values: Values, word: string, known: readonly string[]): void {
  if (!known.includes(String(values[word])))
    throw refusal(`${word} is ${values[word]}: it must be ${known.join(' or ')}`)
}

const numbered = (group: PlanGroup, engine: number): PlanGroup => ({
  ...group,
  name: `${group.name} of engine ${engine}`,
  family: group.family ?? group.name,
})

const worldOf = (values: Values): number =>
  numberOf(values, 'tensor-parallel-size') *
  numberOf(values, 'pipeline-parallel-size') *
  numberOf(values, 'prefill-context-parallel-size')

const localOf = (values: Values): number => {
  const local = numberOf(values, 'data-parallel-size-local')
  if (local > 0) return local
  const isSpan = values['data-parallel-backend'] === 'ray' && values.VLLM_RAY_DP_PACK_STRATEGY === 'span'
  return isSpan ? 1 : numberOf(values, 'data-parallel-size')
}

/** Workers of one rank share a host where they can; a bundle never has more than one GPU. */
function engineOf(values: Values): GroupsPlan {
  const [world, dp, nodes] = [worldOf(values), numberOf(values, 'data-parallel-size'), numberOf(values, 'nnodes')]
  if (values['distributed-executor-backend'] === 'ray' || values['worker-use-ray'] === true) {
    const bundles = times(world, { GPU: 1 })
    const groups = times(dp, { GPU: 1 }).map((_, rank): PlanGroup => {
      const name = dp === 1 ? 'workers' : `workers of rank ${rank}`
      return { name, bundles, strategy: 'PACK', ...(dp === 1 ? {} : { family: 'workers' }) }
    })
    return { groups, shortage: 'hangs' }
  }
  if (nodes > 1) {
    if ((world * dp) % nodes !== 0) throw refusal(`${world * dp} GPUs cannot be divided among ${nodes} hosts`)
    const bundles = times(nodes, { GPU: (world * dp) / nodes })
    return { groups: [{ name: 'processes', bundles, strategy: 'STRICT_SPREAD' }], shortage: 'fails' }
  }
  const local = Math.min(dp, localOf(values))
  const hosts = [
    ...times(Math.floor(dp / local), { GPU: local * world }),
    ...times(Math.sign(dp % local), { GPU: (dp % local) * world }),
  ]
  return {
    groups: [{ name: 'processes', bundles: hosts, strategy: hosts.length > 1 ? 'STRICT_SPREAD' : 'STRICT_PACK' }],
    shortage: 'fails',
  }
}

/** Counted once, from what is free: what other groups need is not reserved. */
function ranksOnRay(values: Values): GroupsPlan {
  const [world, dp, local] = [worldOf(values), numberOf(values, 'data-parallel-size'), localOf(values)]
  const pack = String(values.VLLM_RAY_DP_PACK_STRATEGY)
  oneOf(values, 'VLLM_RAY_DP_PACK_STRATEGY', ['strict', 'fill', 'span'])
  const rank = (first: number, count: number) => ({
    name: count === 1 ? `dp_rank_${first}` : `dp_rank_${first}-${first + count - 1}`,
    bundles: times(count, { CPU: 1 }).flatMap(() => [...times(world, { GPU: 1 }), { CPU: 1 }]),
  })
  const groups = times(dp, { GPU: 1 }).flatMap((_, first): PlanGroup[] => {
    if (pack === 'span') return [{ ...rank(first, 1), strategy: 'PACK' }]
    if (pack === 'fill')
      return [{ ...rank(first, 1), strategy: 'STRICT_PACK', on: first < local ? 'driver' : 'others' }]
    // The ranks of one host are shown as one, as they need it together.
    if (first % local !== 0) return []
    return [
      { ...rank(first, Math.min(local, dp - first)), strategy: 'STRICT_PACK', on: first === 0 ? 'driver' : 'unused' },
    ]
  })
  return {
    groups,
    shortage: 'fails',
    refuses([own = 0, ...others]) {
      if (pack === 'span') return spanTrouble(world, dp, local, [own, ...others])
      const able = Math.floor(own / world)
      if (able < local)
        return `vLLM stops at once: the host of its first process has room for ${able} of ${local} local data parallel ranks`
      // A host that does not hold all ranks of a host is skipped, also for the last, smaller part.
      const hosts = 1 + others.filter((free) => Math.floor(free / world) >= local).length
      return pack === 'strict' && dp % local !== 0 && hosts < Math.ceil(dp / local)
        ? `vLLM stops: only ${hosts} of ${Math.ceil(dp / local)} hosts have room for ${local} data parallel ranks each`
        : undefined
    },
  }
}

function spanTrouble(world: number, dp: number, local: number, [own = 0, ...others]: readonly number[]) {
  const free = [own, ...others].filter((gpus) => gpus > 0)
  const most = Math.max(0, ...free)
  if (world <= most) return `vLLM stops at once: span is for ranks larger than a host, and one has ${most} GPUs free`
  if (free.some((gpus) => gpus !== most))
    return 'vLLM stops at once: span needs hosts with the same number of free GPUs'
  if (most === 0 || world % most !== 0) return `vLLM stops at once: ${world} GPUs are no whole hosts of ${most}`
  if (free.length * most < world * dp)
    return `vLLM stops at once: ${dp} ranks need ${world * dp} GPUs, and ${free.length * most} are free`
  if (local !== 1) return 'vLLM stops at once: span needs --data-parallel-size-local 1'
  return own === 0 ? 'vLLM stops at once: the host of its first process has no free GPU' : undefined
}
