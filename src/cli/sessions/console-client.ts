/**
 * The process that the user's shell waits for: it starts the console's process or attaches to one, passes on what
 * happens to the terminal (new sizes, signals), and restores it if that process is killed. Keys and frames do not pass through it.
 */
import { closeSync, constants, openSync } from 'node:fs'
import type { Socket } from 'node:net'
import { MusterError } from '../../base/errors.ts'
import { keeperDirectory, readToken } from '../../ssh/persist/keeper-directory.ts'
import { leaveSequence } from '../../ui/tty/terminal-session.ts'
import { type CliContext, EXIT } from '../command-line/verb.ts'
import { type FromConsole, identityOf, RELAYED, TERMINAL_VARIABLES } from './messages.ts'
import { type ClientLink, inheritedLink, openProvenLink } from './proven-link.ts'
import { nameOf } from './session-directory.ts'
import { type StartedConsole, spawnConsole, terminalPath, waitForForeground } from './spawn-console.ts'

/** Waits for the exit code of a process whose socket has closed. */
const END_LIMIT_MS = 2_000
const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const

/** Starts a console in a process of its own. Returns its exit code, or 0 once it is detached. */
export async function startConsole(args: readonly string[], context: CliContext): Promise<number> {
  return await followConsole(spawnConsole(args, context), context)
}

/** Until the console has ended or is detached. */
export async function followConsole({ child, ended }: StartedConsole, context: CliContext): Promise<number> {
  child.stderr?.on('data', (bytes: Buffer) => context.stderr.write(bytes))
  const code = await follow(
    (handlers) => inheritedLink((child.stdio as readonly unknown[])[5] as Socket, handlers),
    context,
    () => Promise.race([ended, new Promise<string>((resolve) => setTimeout(resolve, END_LIMIT_MS, '').unref())]),
  )
  child.unref()
  child.stderr?.destroy()
  return code
}

/** Shows a console on this terminal; `keep` as in the `attach` message. @throws MusterError if it cannot */
export async function attachTo(address: string, keep: boolean | undefined, context: CliContext): Promise<number> {
  waitForForeground(context.stdin)
  const terminal = terminalPath()
  if (terminal === undefined || !canBeOpened(terminal)) return await relayTo(address, keep, context)
  const token = await readToken(keeperDirectory(context.environment))
  const given = TERMINAL_VARIABLES.flatMap((name) => {
    const value = context.environment[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const open = async (handlers: Parameters<typeof openProvenLink>[2]) => {
    const link = await openProvenLink(address, token, handlers)
    link.send({ type: 'attach', terminal, identity: identityOf(0), environment: Object.fromEntries(given), keep })
    return link
  }
  return await follow(open, context, async () => '')
}

/** After `su` the terminal belongs to another user, and in some containers it has no name. */
async function relayTo(address: string, keep: boolean | undefined, context: CliContext): Promise<number> {
  if (context.environment[RELAYED] !== undefined) {
    throw new MusterError(
      'unreachable',
      'cannot open this terminal by its name, nor a terminal that Muster made for it',
      {
        hint: 'Run: script -q -c "muster attach" /dev/null',
      },
    )
  }
  const { relay } = await import('./relay.ts')
  const options = keep === undefined ? [] : [keep ? '--keep' : '--no-keep']
  return await relay(['attach', nameOf(address), ...options], leaveSequence({ mouse: true }), context)
}

/** Whether this user, and so the console, can open it. */
function canBeOpened(path: string): boolean {
  try {
    const descriptor = openSync(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK)
    const isSame = identityOf(descriptor) === identityOf(0)
    closeSync(descriptor)
    return isSame
  } catch {
    return false
  }
}

/** Until the console has left the terminal. */
async function follow(
  open: (handlers: { onMessage(message: FromConsole): void; onClose(): void }) => ClientLink | Promise<ClientLink>,
  context: CliContext,
  howItEnded: () => Promise<string>,
): Promise<number> {
  const { stdout, stderr } = context
  const over = Promise.withResolvers<number>()
  const closed = Promise.withResolvers<void>()
  /** The terminal has modes that the console set. */
  let isDrawnOn = false
  let hasLeft = false
  const restore = async (): Promise<number> => {
    // Its settings are restored by Node when this process ends.
    if (isDrawnOn) stdout.write(leaveSequence({ mouse: true }))
    const how = await howItEnded()
    stderr.write(`muster: the console ended unexpectedly${how === '' ? '' : ` (${how})`}\n`)
    return EXIT.failed
  }
  const link = await open({
    onMessage(message) {
      if (message.type === 'attached') isDrawnOn = true
      else if (message.type === 'print') stderr.write(message.text)
      else if (message.type === 'suspended') {
        isDrawnOn = false
        process.kill(process.pid, 'SIGSTOP')
      } else if (message.type === 'refused') {
        hasLeft = true
        over.reject(new MusterError('unreachable', `cannot attach the console: ${message.reason}`))
      } else if (message.type === 'left') {
        hasLeft = true
        stdout.write(message.text)
        if (!message.hasEnded) return over.resolve(message.code)
        // Its process must end before this one reports it.
        const limit = setTimeout(closed.resolve, END_LIMIT_MS)
        void closed.promise.then(() => {
          clearTimeout(limit)
          over.resolve(message.code)
        })
      }
    },
    onClose() {
      closed.resolve()
      if (!hasLeft) void restore().then(over.resolve)
    },
  })
  const listeners: readonly (readonly [NodeJS.Signals, () => void])[] = [
    ['SIGWINCH', () => link.send({ type: 'resize' })],
    ['SIGTSTP', () => link.send({ type: 'suspend' })],
    [
      'SIGCONT',
      () => {
        try {
          waitForForeground(context.stdin)
        } catch {
          // A terminal that has gone sends SIGHUP, too.
          return
        }
        link.send({ type: 'continue' })
      },
    ],
    ...SIGNALS.map((name) => [name, () => link.send({ type: 'signal', name })] as const),
  ]
  for (const [signal, listener] of listeners) process.on(signal, listener)
  try {
    return await over.promise
  } finally {
    hasLeft = true
    for (const [signal, listener] of listeners) process.off(signal, listener)
    link.close()
  }
}
