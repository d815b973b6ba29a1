/** A command of this machine as a RemoteProcess, in a process group of its own so that ending it ends all of it. */
import { spawn } from 'node:child_process'
import { basename } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { signalGroup } from '../../base/processes.ts'
import type { Pty, PtyOptions, PtySpawner } from '../../base/pty.ts'
import type { ChannelEnd, ExecHandlers, RemoteProcess, Shell, ShellHandlers } from '../transport.ts'

type ProcessOptions = {
  readonly file: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly directory?: string
  readonly clock: Clock
}

const GRACE_MS = 2_000

/** Rejects with the system's error when the program cannot be started. `onEnd` comes after the last output. */
export function spawnProcess(options: ProcessOptions, handlers: ExecHandlers): Promise<RemoteProcess> {
  const { file, args, environment, directory, clock } = options
  const child = spawn(file, args, {
    ...(directory === undefined ? {} : { cwd: directory }),
    env: environment,
    detached: true,
    stdio: 'pipe',
  })
  // Without files for its pipes there is no child, and the error comes later.
  if (child.stdout === undefined)
    return new Promise((_, reject) => child.once('error', (error) => reject(spawnError(error))))
  let isClosed = false
  let kill: Disposable | undefined
  const signal = (name: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) signalGroup(child.pid, name)
  }
  child.stdout.on('data', (bytes: Buffer) => {
    if (!isClosed) handlers.onStdout(bytes)
  })
  child.stderr.on('data', (bytes: Buffer) => {
    if (!isClosed) handlers.onStderr(bytes)
  })
  // A command that does not read its input to the end is no error.
  child.stdin.on('error', () => {})
  child.stdin.on('drain', () => {
    if (!isClosed) handlers.onDrain?.()
  })
  child.on('exit', () => kill?.[Symbol.dispose]())
  child.on('close', (code, endedBy) => {
    // What never began has no end either: the promise tells.
    if (isClosed || child.pid === undefined) return
    if (endedBy !== null) handlers.onEnd({ kind: 'signal', signal: endedBy })
    else handlers.onEnd({ kind: 'exit', code: code ?? 255 })
  })

  const remote: RemoteProcess = {
    write: (bytes) => child.stdin.write(bytes),
    endInput: () => child.stdin.end(),
    signal: (name) => signal(`SIG${name.replace(/^SIG/, '')}` as NodeJS.Signals),
    pause: () => void [child.stdout, child.stderr].map((output) => output.pause()),
    resume: () => void [child.stdout, child.stderr].map((output) => output.resume()),
    close: () => {
      if (isClosed) return
      isClosed = true
      signal('SIGHUP')
      if (child.exitCode === null && child.signalCode === null) kill = clock.after(GRACE_MS, () => signal('SIGKILL'))
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
    },
  }
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(remote))
    child.on('error', (error) => reject(spawnError(error)))
  })
}

/** Node's message quotes the whole command. */
function spawnError(error: NodeJS.ErrnoException): Error {
  if (error.code !== 'EMFILE' && error.code !== 'ENFILE') return error
  return new Error(`${basename(error.path ?? 'a program')} cannot be started: too many open files`, { cause: error })
}

/** `onExit` in place of `handlers.onEnd`: the caller may know more than the exit status tells. Nothing is called after `close`. */
export function openPtyShell(
  spawnPty: PtySpawner,
  options: PtyOptions,
  handlers: Pick<ShellHandlers, 'onData' | 'onDrain'>,
  onExit: (end: ChannelEnd) => void,
): Shell {
  let isOver = false
  const pty: Pty = spawnPty(options, {
    onData: (bytes) => {
      if (!isOver) handlers.onData(bytes)
    },
    onDrain: () => {
      if (!isOver) handlers.onDrain()
    },
    onExit: (end) => {
      if (isOver) return
      isOver = true
      onExit('code' in end ? { kind: 'exit', code: end.code } : { kind: 'signal', signal: end.signal })
    },
  })
  return {
    write: (bytes) => isOver || pty.write(bytes),
    resize: ({ columns, rows }) => {
      if (!isOver) pty.resize(columns, rows)
    },
    pause: () => {
      if (!isOver) pty.pause()
    },
    resume: () => {
      if (!isOver) pty.resume()
    },
    close: () => {
      if (isOver) return
      isOver = true
      pty.close()
    },
  }
}
