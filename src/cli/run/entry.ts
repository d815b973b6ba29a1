/** `muster run` in the table of verbs; by itself, so that it can be called without the others. */
import type { Verb } from '../command-line/verb.ts'

export const RUN: Verb = {
  summary: 'run a command on every host of the target',
  effect: 'changes',
  takes: ['inventory', 'exclude', 'connection', 'color', 'confirmation'],
  load: () => import('./run.ts'),
  output: async () => (await import('../schemas/run.ts')).run,
}
