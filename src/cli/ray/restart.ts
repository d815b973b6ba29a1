/** `muster ray restart TARGET`: stops workers and lets them join again. */
import { change } from '../bring-up/change.ts'
import type { BringUpOptions } from '../bring-up/prepare.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'

export const verb: VerbCode = {
  define: (command) => command.argument('<target>', 'hosts of workers: m8, m[8-9]'),
  help: `
Examples:
  muster ray restart m8            restart one worker
`,
  async run(on: string, options: BringUpOptions, context: CliContext) {
    const code = await change('down', ['ray'], { ...options, on }, context)
    return code === EXIT.ok ? await change('up', ['ray'], { ...options, on }, context) : code
  },
}
