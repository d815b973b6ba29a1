/** The background process of `--persist`: it holds connections until they have not been used for a while. */
import { systemClock } from '../base/clock.ts'
import { runKeeper } from '../ssh/persist/keeper.ts'
import { createSsh2Transport } from '../ssh/ssh2/transport.ts'
import type { CliContext, GlobalOptions, VerbCode } from './command-line/verb.ts'

export const verb: VerbCode = {
  define: (command) => command.argument('<directory>', 'directory of its socket'),
  help: '',
  async run(directory: string, _: GlobalOptions, { signal }: CliContext) {
    await runKeeper({ directory, createTransport: () => createSsh2Transport(), clock: systemClock, signal })
    return 0
  },
}
