/** A keeper in this process or in one of its own, in a private directory, and programs that borrow from it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { systemClock } from '../../../src/base/clock.ts'
import { runKeeper } from '../../../src/ssh/persist/keeper.ts'
import { socketAddress } from '../../../src/ssh/persist/keeper-directory.ts'
import { createPersistTransport, type PersistOptions } from '../../../src/ssh/persist/persist-transport.ts'
import { createPrivateDirectory } from '../../../src/ssh/private-directory.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import type { Transport } from '../../../src/ssh/transport.ts'
import { PROGRAM, ROOT } from '../../support/console-options.ts'

export async function keeperSetup() {
  const parent = await createPrivateDirectory('muster-keeper-')
  const directory = join(parent.path, 'muster')
  const abort = new AbortController()
  const keepers: Promise<void>[] = []
  const processes: ChildProcess[] = []
  const programs: Disposable[] = []
  const warnings: string[] = []
  const setup = {
    directory,
    address: socketAddress(directory),
    processes,
    warnings,
    /** How many keepers were asked for. */
    startedCount: 0,
    /** In this process; it may find another one and end. */
    startKeeper(transport?: Transport): Promise<void> {
      setup.startedCount += 1
      const createTransport = () => transport ?? createSsh2Transport()
      const keeper = runKeeper({
        directory,
        createTransport,
        clock: systemClock,
        signal: abort.signal,
        lingerMs: 500,
      })
      keepers.push(keeper)
      return keeper
    },
    /** As the command line does it. */
    startProcess(): ChildProcess {
      setup.startedCount += 1
      const [file = '', ...args] = [...PROGRAM, 'keep-connections', directory]
      const child = spawn(file, args, { cwd: ROOT, stdio: 'ignore' })
      processes.push(child)
      return child
    },
    program(changes: Partial<PersistOptions> = {}): Transport & Disposable {
      const program = createPersistTransport({
        directory,
        persistMs: 60_000,
        direct: { connect: () => Promise.reject(new Error('no keeper was used')) },
        startKeeper: () => void setup.startKeeper(),
        onWarning: (message) => warnings.push(message),
        ...changes,
      })
      programs.push(program)
      return program
    },
    async [Symbol.asyncDispose]() {
      for (const program of programs) program[Symbol.dispose]()
      abort.abort()
      for (const child of processes) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      await Promise.allSettled(keepers)
      parent[Symbol.dispose]()
    },
  }
  return setup
}
