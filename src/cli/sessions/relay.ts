/**
 * `muster attach` where the console cannot open this terminal by its name: after `su` it belongs to another user, and in some
 * containers it has no name. It makes a terminal of the user's own, runs `muster attach` on it, and copies the bytes.
 */
import { spawnLocalPty } from '../../terminal/local-pty.ts'
import { ownCommand } from '../command-line/own-command.ts'
import type { CliContext } from '../command-line/verb.ts'
import { RELAYED } from './messages.ts'

const HANG_UP_CODE = 129
const KILLED_CODE = 137

/** Runs Muster with these arguments on a new terminal; writes `restore` if it is killed. Resolves with its exit code. */
export async function relay(words: readonly string[], restore: Buffer, context: CliContext): Promise<number> {
  const stdin = context.stdin as NodeJS.ReadStream
  const stdout = context.stdout as NodeJS.WriteStream
  const [file = '', ...args] = ownCommand()
  const ended = Promise.withResolvers<number>()
  const given = Object.entries({ ...context.environment, [RELAYED]: '1' })
  const pty = spawnLocalPty(
    {
      file,
      args: [...args, ...words],
      columns: stdout.columns || 80,
      rows: stdout.rows || 24,
      term: context.environment.TERM ?? 'xterm',
      environment: Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== undefined)),
      directory: context.workingDirectory,
    },
    {
      onData(bytes) {
        if (stdout.write(bytes)) return
        pty.pause()
        stdout.once('drain', () => pty.resume())
      },
      onExit: (ending) => ended.resolve('code' in ending ? ending.code : KILLED_CODE),
    },
  )
  const type = (bytes: Buffer) => void pty.write(bytes)
  const resize = () => pty.resize(stdout.columns, stdout.rows)
  // The inner Muster loses its terminal, as it would have lost this one.
  const close = () => {
    pty.close()
    ended.resolve(HANG_UP_CODE)
  }
  const stay = () => {}
  stdin.setRawMode(true)
  stdin.on('data', type).resume()
  stdin.once('end', close).on('error', close)
  stdout.on('resize', resize).on('error', close)
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(signal, close)
  // A stopped relay could not restore this terminal.
  process.on('SIGTSTP', stay)
  try {
    const code = await ended.promise
    if (code === KILLED_CODE) stdout.write(restore)
    return code
  } finally {
    stdin.off('data', type).pause()
    stdin.setRawMode(false)
  }
}
