/** One client's connection to an embedded host. It behaves as sshd does, and reaches nothing beyond this machine's loopback. */
import { spawn } from 'node:child_process'
import { timingSafeEqual } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { connect, isIP, type Socket } from 'node:net'
import { join } from 'node:path'
import type {
  AuthContext,
  Connection,
  ParsedKey,
  PseudoTtyInfo,
  PublicKeyAuthContext,
  ServerChannel,
  Session,
} from 'ssh2'
import ssh2 from 'ssh2'
import { isRunning, signalGroup } from '../../base/processes.ts'
import type { Pty, PtySpawner } from '../../base/pty.ts'
import type { HostHome } from './write-host-home.ts'

const POLL_MS = 20

export class ChildProcesses {
  /** Leaders of process groups that have not ended. */
  readonly #pids = new Set<number>()
  #onGone: (() => void) | undefined

  /** To be called when the program is started, with a process id that is also its group's. */
  add(pid: number): void {
    this.#pids.add(pid)
  }

  /** To be called when the program has ended: its number may soon be another's. */
  remove(pid: number): void {
    this.#pids.delete(pid)
    if (this.#pids.size === 0) this.#onGone?.()
  }

  /** For a program that was told to end and whose end is not reported: polls until it is gone. */
  awaitEnd(pid: number): void {
    if (!this.#pids.has(pid)) return
    if (isRunning(pid)) setTimeout(() => this.awaitEnd(pid), POLL_MS).unref()
    else this.remove(pid)
  }

  signal(pid: number, signal: NodeJS.Signals): void {
    if (this.#pids.has(pid)) signalGroup(pid, signal)
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const pid of this.#pids) this.signal(pid, signal)
  }

  /** Hangs up on all, kills what is left after `graceMs`, and waits no longer than as much again. */
  async end(graceMs: number): Promise<void> {
    if (this.#pids.size === 0) return
    const gone = new Promise<void>((resolve) => {
      this.#onGone = resolve
    })
    this.signalAll('SIGHUP')
    // A stopped program gets the hang-up only when it continues.
    this.signalAll('SIGCONT')
    const kill = setTimeout(() => this.signalAll('SIGKILL'), graceMs)
    const giveUp = setTimeout(() => this.#onGone?.(), 2 * graceMs)
    await gone
    clearTimeout(kill)
    clearTimeout(giveUp)
  }
}

export type EmbeddedAuthentication = 'publickey' | 'password' | 'keyboard-interactive'

export type ServeContext = {
  readonly name: string
  readonly home: HostHome
  readonly environment: Readonly<Record<string, string>>
  readonly spawnPty: PtySpawner
  readonly authentications: readonly EmbeddedAuthentication[]
  readonly password: string | undefined
  readonly clientKey: ParsedKey
  portOf(name: string): number | undefined
  log(line: string): void
  /** What the host ends when it closes, whatever became of the connection. */
  readonly children: ChildProcesses
}

/** More than this in the socket, and the program that writes is held back. */
const SOCKET_BACKLOG_BYTES = 128 * 1024
const ACCEPTED_ENVIRONMENT = /^(LANG|LC_[A-Z]+|COLORTERM|MUSTER_[A-Z0-9_]+)$/

export function serveConnection(client: Connection, socket: Socket, context: ServeContext): void {
  // A connection that breaks is the client's business; the host only cleans up.
  client.on('error', () => {})
  client.setMaxListeners(0)
  client.on('authentication', (attempt) => authenticate(attempt, context))
  client.on('ready', () => {
    context.log(`accepted ${socket.remoteAddress ?? 'a client'} port ${socket.remotePort ?? 0}`)
    client.on('session', (accept) => serveSession(accept(), socket, context))
    client.on('tcpip', (accept, reject, info) => {
      const target = loopbackTarget(info.destIP, info.destPort, context)
      if (target === undefined) return reject()
      const upstream = connect(target)
      upstream.once('error', () => reject())
      upstream.once('connect', () => {
        const channel = accept()
        upstream.on('error', () => channel.close())
        channel.on('error', () => upstream.destroy())
        channel.on('close', () => upstream.destroy())
        channel.pipe(upstream).pipe(channel)
      })
      client.once('close', () => upstream.destroy())
    })
  })
  client.on('close', () => context.log('connection closed'))
}

function authenticate(attempt: AuthContext, context: ServeContext): void {
  const methods = [...context.authentications]
  const decide = (isRight: boolean) => (isRight ? attempt.accept() : attempt.reject(methods))
  if (!methods.some((method) => method === attempt.method)) decide(false)
  else if (attempt.method === 'publickey')
    decide([context.clientKey, ...authorizedKeys(context.home)].some((key) => isOwnerOf(attempt, key)))
  else if (attempt.method === 'password') decide(isPassword(attempt.password, context))
  else if (attempt.method === 'keyboard-interactive') {
    attempt.prompt([{ prompt: 'Password: ', echo: false }], context.name, '', (answers) => {
      decide(isPassword(answers[0] ?? '', context))
    })
  } else decide(false)
}

/** A request without a signature only asks whether the key would do (RFC 4252, section 7). */
function isOwnerOf({ key, blob, signature, hashAlgo }: PublicKeyAuthContext, known: ParsedKey): boolean {
  if (!key.data.equals(known.getPublicSSH())) return false
  return blob === undefined || signature === undefined || known.verify(blob, signature, hashAlgo) === true
}

const MOST_AUTHORIZED_BYTES = 64 * 1024

/** The keys of `~/.ssh/authorized_keys`; lines with options count as absent. */
function authorizedKeys({ directory }: HostHome): ParsedKey[] {
  const file = join(directory, '.ssh', 'authorized_keys')
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found?.isFile() || found.size > MOST_AUTHORIZED_BYTES) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => {
    const key = /^(ssh|ecdsa)-/.test(line) ? ssh2.utils.parseKey(line) : undefined
    return key === undefined || key instanceof Error ? [] : [key]
  })
}

function isPassword(given: string, { password }: ServeContext): boolean {
  if (password === undefined) return false
  const [a, b] = [Buffer.from(given), Buffer.from(password)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Only loopback: an embedded host by its name (at any port), or a loopback address. */
function loopbackTarget(host: string, port: number, context: ServeContext): { host: string; port: number } | undefined {
  const embedded = context.portOf(host)
  if (embedded !== undefined) return { host: '127.0.0.1', port: embedded }
  if (host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))) return { host, port }
  return undefined
}

function serveSession(session: Session, socket: Socket, context: ServeContext): void {
  const environment: Record<string, string> = { ...context.environment }
  let terminal: PseudoTtyInfo | undefined
  let size = { columns: 80, rows: 24 }
  let pty: Pty | undefined
  let pid: number | undefined

  session.on('env', (accept, reject, { key, val }) => {
    if (!ACCEPTED_ENVIRONMENT.test(key)) return reject?.()
    environment[key] = val
    accept?.()
  })
  session.on('pty', (accept, _reject, info) => {
    terminal = info
    size = sizeOf(info)
    accept?.()
  })
  session.on('window-change', (accept, _reject, info) => {
    size = sizeOf(info)
    pty?.resize(size.columns, size.rows)
    accept?.()
  })
  session.on('signal', (accept, _reject, { name }) => {
    if (pid !== undefined) context.children.signal(pid, `SIG${name}` as NodeJS.Signals)
    accept?.()
  })

  const runInPty = (channel: ServerChannel, args: readonly string[]) => {
    const term = terminalName(terminal)
    let isRunning = true
    context.log(`shell opened, ${term} ${size.columns}x${size.rows}`)
    const opened = context.spawnPty(
      {
        file: context.home.shellFile,
        args,
        columns: size.columns,
        rows: size.rows,
        term,
        environment: { ...environment, TERM: term },
        directory: context.home.directory,
      },
      {
        onData: (bytes) => {
          if (!sendTo(channel, socket, bytes)) opened.pause()
        },
        onDrain: () => channel.resume(),
        onExit: (end) => {
          isRunning = false
          context.children.remove(opened.pid)
          context.log('shell closed')
          finish(channel, 'code' in end ? end.code : end.signal)
        },
      },
    )
    pty = opened
    pid = opened.pid
    context.children.add(opened.pid)
    readFrom(channel, (bytes) => opened.write(bytes))
    const resume = () => opened.resume()
    channel.on('drain', resume)
    socket.on('drain', resume)
    const close = () => {
      socket.off('drain', resume)
      if (!isRunning) return
      isRunning = false
      opened.close()
      context.children.awaitEnd(opened.pid)
    }
    channel.once('close', close)
    socket.once('close', close)
  }

  const start = (channel: ServerChannel, args: readonly string[], argsInPty = args) => {
    channel.on('error', () => {})
    if (terminal === undefined) pid = runWithoutPty(channel, socket, args, environment, context)
    else runInPty(channel, argsInPty)
  }
  session.on('shell', (accept) => start(accept(), ['-s'], context.home.shellArguments))
  session.on('exec', (accept, _reject, { command }) => start(accept(), ['-c', command]))
}

/** A command in a process group of its own, so that a signal reaches all of it. */
function runWithoutPty(
  channel: ServerChannel,
  socket: Socket,
  args: readonly string[],
  environment: Record<string, string>,
  context: ServeContext,
): number | undefined {
  const child = spawn(context.home.shellFile, args, {
    cwd: context.home.directory,
    env: environment,
    detached: true,
    stdio: 'pipe',
  })
  const { pid } = child
  if (pid !== undefined) {
    context.children.add(pid)
    child.on('exit', () => context.children.remove(pid))
  }
  child.on('error', () => finish(channel, 127))
  child.on('close', (code, signal) => finish(channel, signal ?? code ?? 255))
  for (const [output, target] of [
    [child.stdout, channel],
    [child.stderr, channel.stderr],
  ] as const) {
    output.on('data', (bytes: Buffer) => {
      if (!sendTo(target, socket, bytes)) output.pause()
    })
    target.on('drain', () => output.resume())
    const resume = () => output.resume()
    socket.on('drain', resume)
    output.once('close', () => socket.off('drain', resume))
    channel.once('close', () => output.destroy())
  }
  child.stdin.on('error', () => {})
  child.stdin.on('drain', () => channel.resume())
  readFrom(channel, (bytes) => child.stdin.write(bytes))
  channel.once('end', () => child.stdin.end())
  channel.once('close', () => child.stdin.destroy())
  socket.once('close', () => {
    for (const stream of child.stdio) stream?.destroy()
  })
  return pid
}

/** False: hold the source back until `drain` of the channel or of the socket. */
function sendTo(channel: NodeJS.WritableStream, socket: Socket, bytes: Uint8Array): boolean {
  if (!channel.writable) return true
  return channel.write(bytes) && socket.writableLength < SOCKET_BACKLOG_BYTES
}

/** `take` returns false when the program does not read; the caller resumes the channel. */
function readFrom(channel: ServerChannel, take: (bytes: Buffer) => boolean): void {
  channel.on('data', (bytes: Buffer) => {
    if (!take(bytes)) channel.pause()
  })
}

function finish(channel: ServerChannel, end: number | string): void {
  if (!channel.writable) return
  // The overloads of `exit` want the two cases apart.
  if (typeof end === 'number') channel.exit(end)
  else channel.exit(end.replace(/^SIG/, ''))
  channel.end()
}

function sizeOf(info: { cols: number; rows: number }): { columns: number; rows: number } {
  const clamp = (value: number, fallback: number) => (value > 0 ? Math.min(value, 1000) : fallback)
  return { columns: clamp(info.cols, 80), rows: clamp(info.rows, 24) }
}

/** RFC 4254, section 6.2 carries TERM with the request; the library's types leave it out. */
function terminalName(info: PseudoTtyInfo | undefined): string {
  const { term } = (info ?? {}) as { term?: unknown }
  return typeof term === 'string' && /^[\w.+-]+$/.test(term) ? term : 'xterm-256color'
}
