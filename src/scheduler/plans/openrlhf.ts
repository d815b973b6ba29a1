/** OpenRLHF (`train_ppo_ray`): a placement group for each model and for the engines, taken one after the other without a time limit. */
import {
  type Framework,
  fewer,
  flag,
  numberOf,
  type PlanFlag,
  type PlanGroup,
  refusal,
  times,
  type Values,
} from './framework.ts'

const MODELS = ['actor', 'ref', 'critic', 'reward'] as const

const words: Framework['words'] = {
  ...Object.fromEntries(
    MODELS.flatMap((model) => [
      [`${model}.num_nodes`, { kind: 'count', byDefault: 1, old: [`${model}_num_nodes`] }] as const,
      [`${model}.num_gpus_per_node`, { kind: 'count', byDefault: 8, old: [`${model}_num_gpus_per_node`] }] as const,
    ]),
  ),
  'vllm.num_engines': { kind: 'count', old: ['vllm_num_engines'] },
  'vllm.tensor_parallel_size': { kind: 'count', byDefault: 1, old: ['vllm_tensor_parallel_size'] },
  'train.colocate_actor_ref': { kind: 'switch', old: ['colocate_actor_ref'] },
  'train.colocate_critic_reward': { kind: 'switch', old: ['colocate_critic_reward'] },
  'train.colocate_all': { kind: 'switch', old: ['colocate_all_models', 'colocate_all'] },
  'train.async_enable': { kind: 'switch', old: ['async_train'] },
  'train.agent_func_path': { kind: 'text', old: ['agent_func_path'] },
  'algo.kl.init_coef': { kind: 'amount', byDefault: 0.01, old: ['init_kl_coef'] },
  'algo.advantage.estimator': { kind: 'text', byDefault: 'gae', old: ['advantage_estimator'] },
  'reward.remote_url': { kind: 'text', old: ['remote_rm_url'] },
}

/** `none` leaves the model out, as `none` does. */
function shape(model: (typeof MODELS)[number], none: Values): PlanFlag {
  const own = flag(
    `--${model} <nodes>x<gpus>`,
    `place the ${model} model on N hosts with G GPUs each${Object.keys(none).length > 0 ? ', or none' : ''} (default: 1x8)`,
    words,
    `${model}.num_nodes`,
    `${model}.num_gpus_per_node`,
  )
  return { ...own, read: (text) => (text === 'none' && Object.keys(none).length > 0 ? none : own.read(text)) }
}

const COLOCATE = ['actor_ref', 'critic_reward', 'all']

export const framework: Framework = {
  source: 'openrlhf 0.11.2',
  example: 'python3 -m openrlhf.cli.train_ppo_ray --actor.num_nodes 1 --actor.num_gpus_per_node 4',
  words,
  flags: [
    shape('actor', {}),
    shape('ref', { 'algo.kl.init_coef': 0 }),
    shape('critic', { 'algo.advantage.estimator': 'reinforce' }),
    shape('reward', { 'reward.remote_url': 'remote' }),
    flag(
      '--vllm <engines>x<tp>',
      'run N engines with a tensor parallel size of T (default: none)',
      words,
      'vllm.num_engines',
      'vllm.tensor_parallel_size',
    ),
    {
      flags: '--colocate <list>',
      about: 'models that share their GPUs: actor_ref, critic_reward, all',
      read(text) {
        const parts = text.split(',')
        const wrong = parts.find((part) => !COLOCATE.includes(part))
        if (wrong !== undefined) throw refusal(`--colocate ${wrong}: it must be ${COLOCATE.join(' or ')}`)
        return Object.fromEntries(parts.map((part) => [`train.colocate_${part}`, true]))
      },
    },
  ],
  renamed: {
    pretrain: 'actor.model_name_or_path',
    reward_pretrain: 'reward.model_name_or_path',
    critic_pretrain: 'critic.model_name_or_path',
  },
  write: (word, value) => (value === true ? `--${word}` : `--${word} ${value}`),
  plan: (values) => ({ groups: groupsOf(values), shortage: 'hangs' }),
  *changes(values) {
    const pairs: Values[] = [{ 'train.colocate_critic_reward': true }, { 'train.colocate_actor_ref': true }]
    const merged = [{}, ...pairs, Object.assign({}, ...pairs) as Values, { 'train.colocate_all': true }]
    yield* merged.slice(1)
    for (const change of fewer(values, 'vllm.num_engines')) for (const pair of merged) yield { ...change, ...pair }
    const tensor = numberOf(values, 'vllm.tensor_parallel_size')
    const engines = sizeOf(values, 'actor') / tensor
    if (Number.isInteger(engines) && engines > 0)
      yield { 'train.colocate_all': true, 'train.colocate_critic_reward': true, 'vllm.num_engines': engines }
  },
}

const sizeOf = (values: Values, model: (typeof MODELS)[number]) =>
  numberOf(values, `${model}.num_nodes`) * numberOf(values, `${model}.num_gpus_per_node`)

const isSame = (values: Values, one: (typeof MODELS)[number], other: (typeof MODELS)[number]) =>
  ['num_nodes', 'num_gpus_per_node'].every((word) => values[`${one}.${word}`] === values[`${other}.${word}`])

function mustBeSame(values: Values, one: (typeof MODELS)[number], other: (typeof MODELS)[number]): void {
  if (!isSame(values, one, other))
    throw refusal(`${one} and ${other} share their GPUs, so they need the same number of hosts and of GPUs per host`)
}

const ONE = { GPU: 1, CPU: 1 }

function groupsOf(values: Values): readonly PlanGroup[] {
  const hasRef = numberOf(values, 'algo.kl.init_coef') > 0
  const hasCritic = values['algo.advantage.estimator'] === 'gae'
  const hasReward = values['reward.remote_url'] === undefined && values['train.agent_func_path'] === undefined
  const isAll = values['train.colocate_all'] === true
  const [engines, tensor] = [numberOf(values, 'vllm.num_engines'), numberOf(values, 'vllm.tensor_parallel_size')]
  for (const model of MODELS)
    if (sizeOf(values, model) === 0) throw refusal(`${model} has 0 GPUs: it must be 1x1 or more`)
  if (engines > 0 && tensor === 0) throw refusal('vllm.tensor_parallel_size is 0: it must be 1 or more')

  const groups: { name: string; size: number; models: string[]; isLoose?: true }[] = []
  const open = (size: number, ...models: string[]) => {
    const group = { name: '', size, models }
    groups.push(group)
    return group
  }
  let shared: { size: number; models: string[] } | undefined
  const add = (model: (typeof MODELS)[number]) => {
    if (shared === undefined) {
      const isLoose = numberOf(values, `${model}.num_gpus_per_node`) === 1
      groups.push({ name: '', size: sizeOf(values, model), models: [model], ...(isLoose ? { isLoose } : {}) })
    } else if (sizeOf(values, model) > shared.size) {
      throw refusal(
        `${model} has ${sizeOf(values, model)} workers, but the group that it shares only ${shared.size} bundles`,
      )
    } else if (!shared.models.includes(model)) shared.models.push(model)
  }
  if (values['train.colocate_actor_ref'] === true || isAll) {
    if (hasRef) mustBeSame(values, 'actor', 'ref')
    shared = open(sizeOf(values, 'actor'), 'actor', ...(hasRef ? ['ref'] : []))
  }
  if (engines > 0) {
    const isHybrid = isAll && values['train.async_enable'] !== true
    if (isHybrid && shared !== undefined) {
      if (shared.size !== engines * tensor)
        throw refusal(
          `with colocate_all the GPUs of the actor (${shared.size}) must be engines × tensor parallel size (${engines} × ${tensor})`,
        )
      shared.models.push('vllm')
    } else open(engines * tensor, 'vllm')
  }
  add('actor')
  if (hasRef) add('ref')
  if (!isAll) shared = undefined
  if (hasCritic && values['train.colocate_critic_reward'] === true) {
    mustBeSame(values, 'critic', 'reward')
    shared = open(sizeOf(values, 'critic'))
  }
  if (hasCritic) add('critic')
  if (hasReward) add('reward')
  return groups.map(({ size, models, isLoose }) => ({
    name: models.join('+'),
    bundles: times(size, ONE),
    strategy: 'PACK' as const,
    ...(models.length > 1 ? { sharedBy: models } : {}),
    ...(isLoose ? { isLoose } : {}),
  }))
}
