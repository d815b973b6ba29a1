/** What `muster` does without a verb. In a file of its own, so that a console's process loads no other verb. */
import type { Verb } from '../command-line/verb.ts'

export const CONSOLE: Verb = {
  summary: 'open the console: type into shells on many hosts at once',
  effect: 'console',
  takes: ['inventory', 'exclude', 'connection', 'color'],
  load: () => import('./console.ts'),
}
