/** `--persist`: the transport that borrows connections from a background process, and starts that process. */
import { spawn } from 'node:child_process'
import { packageRoot } from '../../base/package-root.ts'
import { keeperDirectory } from '../../ssh/persist/keeper-directory.ts'
import { createPersistTransport } from '../../ssh/persist/persist-transport.ts'
import type { Transport } from '../../ssh/transport.ts'
import { ownCommand } from '../command-line/own-command.ts'

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

/** In its own session and without a terminal, so that nothing that happens to this process reaches it. */
function startKeeper(directory: string, environment: KeptOptions['environment']): void {
  const [program = '', ...words] = ownCommand()
  const child = spawn(program, [...words, 'keep-connections', directory], {
    cwd: packageRoot(),
    env: environment,
    detached: true,
    stdio: 'ignore',
  })
  // If it did not start, it does not answer.
  child.on('error', () => {})
  child.unref()
}
