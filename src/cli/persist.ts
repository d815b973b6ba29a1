/** `--persist`: the transport that borrows connections from the background process, and that process's hidden verb. */
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { systemClock } from '../base/clock.ts'
import { packageRoot } from '../base/package-root.ts'
import { keeperDirectory } from '../ssh/persist/keeper-directory.ts'
import { createPersistTransport } from '../ssh/persist/persist-transport.ts'
import type { Transport } from '../ssh/transport.ts'
import type { CliContext, Outcome } from './command-line/context.ts'

const VERB = 'keep-connections'

export type KeptOptions = {
  /** Makes connections that are not kept, and where no keeper can be had. */
  readonly direct: Transport
  /** Seconds after the last use; undefined: what hosts.yaml says of each host. */
  readonly persist?: number | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  onWarning(message: string): void
}

export function createKeptTransport({ direct, persist, environment, onWarning }: KeptOptions): Transport & Disposable {
  return createPersistTransport({
    directory: keeperDirectory(environment),
    ...(persist === undefined ? {} : { persistMs: persist * 1000 }),
    direct,
    startKeeper: (directory) => startKeeper(directory, environment),
    onWarning,
  })
}

/** In a session of its own and without a terminal, so that nothing that happens to this one reaches it. */
function startKeeper(directory: string, environment: KeptOptions['environment']): void {
  const main = join(packageRoot(), import.meta.filename.endsWith('.ts') ? 'src/main.ts' : 'dist/main.js')
  const nodeOptions = process.execArgv.filter((option) => !option.startsWith('--inspect'))
  const child = spawn(process.execPath, [...nodeOptions, main, VERB, directory], {
    cwd: dirname(main),
    env: environment,
    detached: true,
    stdio: 'ignore',
  })
  // That it did not start shows in that it does not answer.
  child.on('error', () => {})
  child.unref()
}

export function registerKeeper(program: Command, context: CliContext, _outcome: Outcome): void {
  program
    .command(VERB, { hidden: true })
    .description('holds connections for --persist; started by itself')
    .argument('<directory>')
    .action(async (directory: string) => {
      const [{ runKeeper }, { createSsh2Transport }] = await Promise.all([
        import('../ssh/persist/keeper.ts'),
        import('../ssh/ssh2/transport.ts'),
      ])
      const { signal } = context
      await runKeeper({ directory, createTransport: () => createSsh2Transport(), clock: systemClock, signal })
    })
}
