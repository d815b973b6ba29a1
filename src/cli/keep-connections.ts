/** The background process of `--persist`: it holds connections until they have not been used for a while, and runs commands over them. */
import { systemClock } from '../base/clock.ts'
import { runKeeper } from '../ssh/persist/keeper.ts'
import type { KeeperWork } from '../ssh/persist/messages.ts'
import type { WorkStreams } from '../ssh/persist/served-work.ts'
import type { WarmConnections } from '../ssh/persist/warm-connections.ts'
import { createSsh2Transport } from '../ssh/ssh2/transport.ts'
import { buildName } from './command-line/build-name.ts'
import { runVerb } from './command-line/run-verbs.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from './command-line/verb.ts'
import { keepToAscii } from './output/ascii-output.ts'
import { RUN } from './run/entry.ts'

export const verb: VerbCode = {
  define: (command) => command.argument('<directory>', 'directory of its socket'),
  help: '',
  async run(directory: string, _: GlobalOptions, { signal }: CliContext) {
    // Now, as the files may be replaced while it runs.
    const build = buildName()
    await runKeeper({
      directory,
      createTransport: () => createSsh2Transport(),
      clock: systemClock,
      signal,
      doWork: (...work) => runForProgram(build, ...work),
    })
    return 0
  },
}

/** `muster run` for a program of the same build. */
export async function runForProgram(
  build: string,
  warm: WarmConnections,
  request: KeeperWork,
  { accept, decline, ...streams }: WorkStreams,
): Promise<number> {
  const { words, environment, workingDirectory } = request
  if (request.build !== build) {
    decline()
    return EXIT.ok
  }
  for (const stream of [streams.stdout, streams.stderr]) keepToAscii(stream, environment)
  const connections = (persist?: number) => warm.asTransport(persist === undefined ? undefined : persist * 1000)
  const inKeeper = { connections, accept, decline }
  return await runVerb({ verbs: { run: RUN } }, words, {
    ...streams,
    ...{ environment, workingDirectory, now: Date.now, inKeeper },
  })
}
