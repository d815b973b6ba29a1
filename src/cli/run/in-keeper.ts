/** `muster run` where a keeper holds the connections: it does the work, and this process is its streams. */
import { existsSync } from 'node:fs'
import { isInForeground } from '../../base/processes.ts'
import { KeeperGone } from '../../ssh/persist/keeper-client.ts'
import { keeperDirectory, socketAddress } from '../../ssh/persist/keeper-directory.ts'
import { findKeeper } from '../../ssh/persist/persist-transport.ts'
import { buildName } from '../command-line/build-name.ts'
import { reportOutputErrors } from '../command-line/report-output-errors.ts'
import { EXIT } from '../command-line/verb.ts'
import { isPiped } from './unsent-stdin.ts'

/** Resolves to the exit code; undefined: nothing was done, and this process has to do it. */
export async function runInKeeper(words: readonly string[]): Promise<number | undefined> {
  const { env, stdin, stdout, stderr } = process
  const directory = keeperDirectory(env)
  if (isPiped(process) || !existsSync(socketAddress(directory))) return undefined
  // Whatever is wrong is reported by the run in this process.
  using keeper = await findKeeper(directory).catch(() => undefined)
  const workingDirectory = currentDirectory()
  if (keeper === undefined || workingDirectory === undefined) return undefined
  const mayReadStdin = stdin.isTTY === true && stderr.isTTY === true && isInForeground()
  const size = () => {
    const { columns = 0, rows = 0 } = stderr.isTTY ? stderr : stdout
    return { columns, rows }
  }
  const enter = () => keeper.tell({ type: 'enter' })
  let isAccepted = false
  const work = () =>
    keeper.work(
      {
        words,
        environment: Object.fromEntries(Object.entries(env).map(([name, value = '']) => [name, value])),
        workingDirectory,
        build: buildName(),
        terminal: { stdin: mayReadStdin, stdout: stdout.isTTY === true, stderr: stderr.isTTY === true, ...size() },
      },
      {
        onAccepted() {
          isAccepted = true
          // The second one ends this process, and with it the work.
          for (const reason of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
            process.once(reason, () => keeper.tell({ type: 'interrupt', reason }))
          stdout.on('error', ({ message, code }: NodeJS.ErrnoException) =>
            keeper.tell({ type: 'unwritable', message, ...(code === undefined ? {} : { code }) }),
          )
          process.on('SIGWINCH', () => keeper.tell({ type: 'terminal-size', ...size() }))
          process.on('SIGCONT', () => keeper.tell({ type: 'continued' }))
          if (mayReadStdin) stdin.on('data', enter)
        },
        onBytes: (stream, bytes, taken) => process[stream].write(bytes, taken),
      },
    )
  const declined = -1
  const code = await reportOutputErrors(process, async () => {
    try {
      return (await work()) ?? declined
    } catch (error) {
      if (!(error instanceof KeeperGone)) throw error
      if (!isAccepted) return declined
      stderr.write(LOST)
      return EXIT.unreachable
    } finally {
      if (mayReadStdin) stdin.off('data', enter).pause()
    }
  })
  return code === declined ? undefined : code
}

const LOST =
  'muster: the process that keeps connections has ended, and with it the connections: the hosts stop the command.\nRun the same command again: it makes new connections.\n'

function currentDirectory(): string | undefined {
  try {
    return process.cwd()
  } catch {
    return undefined
  }
}
