/** The frameworks that `muster plan` knows. */
import type { Framework } from './framework.ts'

export type FrameworkEntry = {
  readonly name: string
  readonly summary: string
  load(): Promise<{ readonly framework: Framework }>
}

export const FRAMEWORKS: readonly FrameworkEntry[] = [
  { name: 'rllib', summary: 'plan an RLlib algorithm', load: () => import('./rllib.ts') },
  { name: 'train', summary: 'plan a Ray Train job', load: () => import('./train.ts') },
  { name: 'tune', summary: 'plan the trials of Ray Tune', load: () => import('./tune.ts') },
  { name: 'vllm', summary: 'plan vLLM engines', load: () => import('./vllm.ts') },
  { name: 'openrlhf', summary: 'plan an OpenRLHF job', load: () => import('./openrlhf.ts') },
]
