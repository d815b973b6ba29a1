/**
 * The console's own process, in a session of its own. It has the terminal of one client at a time, continues when that is taken
 * away, and gets another from `muster attach`. When a client dies, it notices at once and restores the terminal.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, fstatSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { Writable } from 'node:stream'
import tty from 'node:tty'
import { sleep, systemClock } from '../../base/clock.ts'
import { fileReason } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { untilText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ColourDepth } from '../../ui/compositor/colours.ts'
import type { ConsoleTerminal, DetachableConsole, Detachment } from '../../ui/open-console.tsx'
import type { HostProcess } from '../../ui/tty/terminal-session.ts'
import { ConsoleSocket } from './console-socket.ts'
import { DetachedTime } from './detached-time.ts'
import {
  DISPLAY_VARIABLES,
  identityOf,
  type SessionDescription,
  TERMINAL_VARIABLES,
  type TerminalEnvironment,
  type ToConsole,
} from './messages.ts'
import { acceptLink, type ConsoleLink, inheritedLink } from './proven-link.ts'
import { markOf, nameOf } from './session-directory.ts'

/** What the client that started this process passed to it (`console-client.ts`). */
const INPUT = 3
const OUTPUT = 4
const LINK = 5

/** The most clients that have not proved themselves yet or only ask; more are refused. */
const MOST_GUESTS = 64

type Environment = Readonly<Record<string, string | undefined>>

export type HoldOptions = {
  readonly cluster: string
  /** As in SessionDescription, for the hosts that are open now. */
  opened(hosts: readonly string[]): readonly string[]
  /** Whether the console continues when its terminal is lost. */
  readonly isKept: boolean
  /** How long it continues without a terminal. */
  readonly keepMs: number
  colourDepth(environment: Environment): ColourDepth
  onWarning(message: string): void
}

export type HeldConsole = ReturnType<typeof holdConsole>

type Client = Pick<Streams, 'close' | 'yieldSettings'> & { readonly link: ConsoleLink; readonly terminal: string }

/** Of the process that `console-client.ts` started. */
export function holdConsole(
  environment: Record<string, string | undefined>,
  terminal: string,
  /** Ends a console that is not open yet. */
  interrupt: () => void,
) {
  const startedMs = Date.now()
  let options: HoldOptions | undefined
  let console: DetachableConsole | undefined
  let client: Client | undefined
  let detached: DetachedTime | undefined
  /** The last `--keep` or `--no-keep` of an attach. */
  let keepChoice: boolean | undefined
  let own: ConsoleSocket | undefined
  let hasLeft = false
  let farewell = ''
  /** When the last terminal has been given back. */
  let given = Promise.resolve()
  const guests = new Set<ConsoleLink>()

  const first = openStreams(INPUT, OUTPUT)
  const link: ConsoleLink = inheritedLink(new Socket({ fd: LINK, readable: true, writable: true }), {
    onMessage: (message) => handle(link, message),
    onClose: () => lose(link),
  })
  client = { ...first, link, terminal }
  // Nothing may read from the other end any more.
  process.stderr.on('error', () => {})
  // The terminal session handles it before this listener; one that is ignored is for a console without a terminal.
  process.on('SIGHUP', () => {
    if (console === undefined) interrupt()
  })

  const hostProcess = {
    pid: process.pid,
    stderr: { write: (text: string) => client?.link.send({ type: 'print', text }) },
    on: (event: string, listener: () => void) => process.on(event, listener),
    off: (event: string, listener: () => void) => process.off(event, listener),
    listeners: (event: string) => process.listeners(event as 'exit'),
    removeAllListeners: (event: string) => process.removeAllListeners(event),
    // The terminal session stops itself: it is the client that the user's shell waits for.
    kill: () => client?.link.send({ type: 'suspended' }),
    exit(code: number) {
      leave(code)
      // The link writes a turn later.
      void given.finally(() => setImmediate(() => process.exit(code)))
    },
  } as unknown as HostProcess

  /** The last words to the client, which ends with this code. */
  const release = (code: number, text: string, hasEnded = false): void => {
    const from = client
    client = undefined
    from?.link.send({ type: 'left', code, text, hasEnded })
    // The sockets close with this process, which the client notices.
    if (hasEnded) from?.link.keepsProgram(false)
    else from?.link.finish()
    given = from?.close() ?? given
  }

  const leave = (code: number): void => {
    if (hasLeft) return
    hasLeft = true
    endDetachment()
    own?.[Symbol.dispose]()
    for (const guest of guests) guest.keepsProgram(false)
    release(code, farewell, true)
  }

  /** The client is gone without a message: it was killed, or its terminal disappeared. */
  const lose = (from: ConsoleLink): void => {
    if (client?.link !== from) return
    client.yieldSettings()
    // As the signal would: before the console is open, it ends this process.
    process.emit('SIGHUP', 'SIGHUP')
  }

  /** The terminal is given back by now. */
  const goOn = (): void => {
    detached = new DetachedTime(options?.keepMs ?? 0, () => console?.quit())
    mark()
  }

  /** The socket works without this file, for example on a full disk. */
  const mark = (): void => {
    const address = own?.address
    if (address !== undefined) attempt(() => writeFileSync(markOf(address), '', { mode: 0o600 }))
  }

  const endDetachment = (): void => {
    detached?.[Symbol.dispose]()
    const address = own?.address
    if (detached && address !== undefined) attempt(() => rmSync(markOf(address), { force: true }))
    detached = undefined
  }

  const describe = (): SessionDescription => {
    const { hosts, shells } = console?.describe() ?? { hosts: [], shells: 0 }
    return {
      name: sessionName(),
      pid: process.pid,
      cluster: options?.cluster ?? '',
      hosts: foldHostSet(hosts),
      hostCount: hosts.length,
      shells,
      startedMs,
      opened: options?.opened(hosts) ?? [],
      ...(client === undefined ? {} : { terminal: client.terminal }),
      ...(detached === undefined ? {} : { detachedMs: detached.sinceMs, endsAtMs: detached.endsAtMs }),
    }
  }

  const sessionName = (): string => (own?.address === undefined ? '' : nameOf(own.address))

  const attach = (
    to: ConsoleLink,
    { terminal, identity, environment: given, keep }: ToConsole & { type: 'attach' },
  ): void => {
    if (console === undefined || options === undefined)
      return to.send({ type: 'refused', reason: 'it is starting or ending' })
    const theirs = terminalEnvironmentOf(given)
    let streams: Streams
    try {
      streams = openTerminal(terminal, identity)
    } catch (error) {
      return to.send({ type: 'refused', reason: `its terminal cannot be opened: ${fileReason(error)}` })
    }
    if (client !== undefined) {
      console.detach()
      release(
        0,
        `The console has moved to another terminal, ${printable(terminal)}. \`muster attach ${sessionName()}\` brings it back.\n`,
      )
    }
    endDetachment()
    client = { ...streams, link: to, terminal }
    // Whoever typed it could not see which hosts get keys.
    const hasDropped = streams.dropTyped()
    takeEnvironment(environment, theirs)
    const onOwnPane = (host: string): void => {
      if (client?.link !== to) return
      console?.detach()
      goOn()
      const text = `muster: this is ${printable(host)}'s pane in that console, which is now detached.\n`
      release(1, `${text}To bring it back, run on another terminal: muster attach ${sessionName()}\n`)
    }
    console.attach(
      { ...streams, environment: theirs, colourDepth: options.colourDepth(theirs), process: hostProcess },
      onOwnPane,
      hasDropped,
    )
    to.send({ type: 'attached' })
    if (typeof keep === 'boolean') {
      keepChoice = keep
      console.notice(keep ? KEPT : NOT_KEPT)
    }
  }

  const handle = (from: ConsoleLink, message: ToConsole): void => {
    if (message.type === 'attach') return attach(from, message)
    if (message.type === 'describe') return from.send({ type: 'description', session: describe() })
    if (message.type === 'end') return end()
    if (client?.link !== from) return
    if (message.type === 'resize') process.emit('SIGWINCH', 'SIGWINCH')
    else if (message.type === 'suspend') process.emit('SIGTSTP', 'SIGTSTP')
    else if (message.type === 'continue') {
      process.emit('SIGCONT', 'SIGCONT')
      from.send({ type: 'attached' })
    } else if (message.type === 'signal' && SIGNALS.has(message.name)) process.emit(message.name, message.name)
  }

  const end = (): void => {
    farewell = 'This console was ended by `muster sessions --end`.\n'
    if (console === undefined) interrupt()
    else console.quit()
  }

  const accept = (socket: Socket, token: Buffer): void => {
    if (guests.size >= MOST_GUESTS) return void socket.destroy()
    const guest: ConsoleLink = acceptLink(socket, token, {
      onMessage: (message) => handle(guest, message),
      onClose: () => {
        guests.delete(guest)
        lose(guest)
      },
    })
    guests.add(guest)
  }

  /** Why it cannot, or undefined. */
  const detach = (cause: string | undefined): string | undefined => {
    if (own?.address === undefined) return 'there is no socket for `muster attach`; the Log says why'
    console?.detach()
    goOn()
    const until = untilText(detached?.endsAtMs ?? 0, Date.now())
    const why = cause === undefined ? '' : `: ${cause}`
    const text = `Detached${why}. \`muster attach ${sessionName()}\` brings it back until ${until}.\n`
    release(cause === undefined ? 0 : 1, text)
    return undefined
  }

  const detachment: Detachment = {
    open(opened) {
      console = opened
      return {
        [Symbol.dispose]: () => {
          console = undefined
        },
      }
    },
    detach(cause) {
      own?.check()
      if (own?.opening === undefined) return detach(cause)
      // Asked for in the first moments, or the socket was removed: detach as soon as there is one.
      void own.opening.then(() => {
        if (client === undefined) return
        const reason = console && detach(cause)
        if (reason !== undefined) console?.notice(`cannot detach: ${reason}`)
      })
      return undefined
    },
    lose() {
      if (!(keepChoice ?? options?.isKept) || own?.address === undefined || console === undefined) return false
      own.check()
      console.detach()
      goOn()
      release(HANG_UP_CODE, '')
      return true
    },
  }

  return {
    stdin: first.stdin,
    stdout: first.stdout,
    /** Messages go to the client, which has the terminal when this process has not. */
    stderr: new Writable({
      decodeStrings: false,
      write(chunk: string | Buffer, _encoding, done) {
        client?.link.send({ type: 'print', text: chunk.toString() })
        done()
      },
    }),
    /** Other clients find the console from now on; for `openConsole`. */
    hold(held: HoldOptions): { readonly detachment: Detachment; readonly process: HostProcess } {
      options = held
      client?.link.send({ type: 'attached' })
      own = new ConsoleSocket({
        environment,
        cluster: held.cluster,
        accept,
        onOpen: () => detached && mark(),
        onError(error) {
          const { path } = error as NodeJS.ErrnoException
          const place = path === undefined ? '' : `${printable(path)}: `
          held.onWarning(`this console cannot be detached: ${place}${fileReason(error)}`)
        },
      })
      return { detachment, process: hostProcess }
    },
    /** Everything has ended: the client ends with this code. */
    leave,
    /** Ends this process. */
    fail(text: string) {
      client?.link.send({ type: 'print', text })
      hostProcess.exit(1)
    },
  }
}

const KEPT = 'this console continues, detached, when its terminal is lost'
const NOT_KEPT = 'this console ends when its terminal is lost'
const HANG_UP_CODE = 129
const SIGNALS: ReadonlySet<string> = new Set(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'])

function attempt(change: () => void): void {
  try {
    change()
  } catch {
    // Continues without it.
  }
}

type Streams = Pick<ConsoleTerminal, 'stdin' | 'stdout'> & {
  /** Whether anything was typed and not yet read. */
  dropTyped(): boolean
  /** Resolves when the terminal has its settings again and is closed. */
  close(): Promise<void>
  /** After the client was killed: settings that the waiting shell makes for its own prompt stay. */
  yieldSettings(): void
}

/** The time a shell needs to notice that its program was killed. */
const SHELL_MS = 100

function openStreams(input: number, output: number): Streams {
  const stdin = new tty.ReadStream(input)
  // The console has a handle of its own and takes from this one the size and the descriptor.
  const stdout = Object.assign(new tty.WriteStream(output), { fd: output })
  const setRawMode = stdin.setRawMode.bind(stdin)
  let isYielded = false
  for (const stream of [stdin, stdout]) stream.on('error', () => {})
  return {
    stdin,
    stdout,
    dropTyped() {
      // Otherwise only whole lines can be read.
      setRawMode(true)
      const buffer = Buffer.alloc(4096)
      let count = 0
      // At its end there is EAGAIN.
      attempt(() => {
        for (let read = -1; read !== 0; count += read) read = readSync(input, buffer)
      })
      setRawMode(false)
      return count > 0
    },
    yieldSettings() {
      stdin.setRawMode = () => stdin
      isYielded = true
    },
    async close() {
      let settings: string | undefined
      if (isYielded) {
        await sleep(systemClock, SHELL_MS)
        // Shells need signals from the keyboard; the console turned them off.
        if (/\s-isig\b/.test(stty(input, '-a'))) setRawMode(false)
        else settings = stty(input, '-g').trim()
      }
      stdin.destroy()
      stdout.destroy()
      if (settings) {
        // Closing it restored the settings from before the console.
        await once(stdin, 'close')
        stty(input, settings)
      }
      // Closed with its stream.
      for (const descriptor of new Set([input, output])) attempt(() => closeSync(descriptor))
    },
  }
}

function stty(descriptor: number, argument: string): string {
  return spawnSync('stty', [argument], { stdio: [descriptor, 'pipe', 'ignore'], encoding: 'utf8' }).stdout ?? ''
}

/** Throws unless the path is a terminal that this user may use. */
function openTerminal(path: string, identity: string): Streams {
  if (typeof path !== 'string' || !path.startsWith('/dev/')) throw new Error('not the path of a terminal')
  const open = () => openSync(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK)
  const input = open()
  if (!tty.isatty(input) || !fstatSync(input).isCharacterDevice()) {
    closeSync(input)
    throw new Error('not a terminal')
  }
  if (identityOf(input) !== identity) {
    closeSync(input)
    throw new Error('where the console runs, this path is another terminal')
  }
  return openStreams(input, open())
}

/** Gives later shells and logins the variables of the new terminal. */
function takeEnvironment(environment: Record<string, string | undefined>, theirs: TerminalEnvironment): void {
  if (theirs.SSH_AUTH_SOCK?.startsWith('/')) environment.SSH_AUTH_SOCK = theirs.SSH_AUTH_SOCK
  for (const name of DISPLAY_VARIABLES) {
    if (theirs[name] === undefined) delete environment[name]
    else environment[name] = theirs[name]
  }
}

function terminalEnvironmentOf(given: unknown): TerminalEnvironment {
  const record = typeof given === 'object' && given !== null ? (given as Record<string, unknown>) : {}
  return Object.fromEntries(
    TERMINAL_VARIABLES.flatMap((name) => {
      const value = record[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}
