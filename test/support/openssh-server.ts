/** A real sshd of the test's own on 127.0.0.1: its own keys, configuration and directory, gone after `stop`. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { Endpoint } from '../../src/inventory/host.ts'
import { findProgram } from './requirements.ts'
import { waitUntil } from './wait-until.ts'

export type OpenSshServer = {
  readonly directory: string
  readonly port: number
  /** A key that the server accepts. */
  readonly keyFile: string
  readonly knownHosts: string
  /** What sshd wrote to its log so far. */
  log(): string
  endpoint(changes?: Partial<Endpoint>): Endpoint
  /** Ids of the processes that serve logged-in or half-open connections. */
  children(): readonly number[]
  /** Ends what serves connections; new ones are taken. */
  killChildren(): Promise<void>
  /** Ends the listener and everything it serves. */
  stop(): Promise<void>
}

export type OpenSshServerOptions = {
  /** Lines of sshd_config. */
  readonly config?: readonly string[]
  readonly hostKeyTypes?: readonly string[]
}

export async function startOpenSshServer(options: OpenSshServerOptions = {}): Promise<OpenSshServer> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-sshd-'))
  const types = options.hostKeyTypes ?? ['ed25519']
  const file = (name: string) => join(directory, name)
  for (const type of types) makeKey(file(`host_${type}`), type)
  makeKey(file('user_key'), 'ed25519')
  writeFileSync(file('authorized_keys'), publicLine(file('user_key')), { mode: 0o600 })
  // As late as can be: until sshd has bound it, another program may take it.
  const port = await freePort()
  const config = [
    // The first value counts, so what the test wants comes first.
    ...(options.config ?? []),
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    ...types.map((type) => `HostKey ${file(`host_${type}`)}`),
    `AuthorizedKeysFile ${file('authorized_keys')}`,
    'PidFile none',
    'UsePAM no',
    'UseDNS no',
    'StrictModes no',
    'PermitRootLogin yes',
    // Shells start without the start-up files of whoever runs the tests.
    `SetEnv HOME=${directory}`,
    'PasswordAuthentication no',
    'LogLevel VERBOSE',
  ]
  writeFileSync(file('sshd_config'), `${config.join('\n')}\n`)
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  // Into a file: what sshd wrote before it answered is there when the answer comes.
  const log = () => (existsSync(file('log')) ? readFileSync(file('log'), 'utf8') : '')
  const sshd = spawn(findProgram('sshd') ?? 'sshd', ['-D', '-E', file('log'), '-f', file('sshd_config')], {
    stdio: 'ignore',
  })
  await waitUntil(() => hasEnded(sshd) || log().includes('Server listening'), 'sshd to listen')
  if (hasEnded(sshd)) throw new Error(`sshd ended with ${sshd.exitCode}: ${log()}`)
  const hostLine = (type: string) => `[127.0.0.1]:${port} ${publicLine(file(`host_${type}`))}`
  writeFileSync(file('known_hosts'), types.map(hostLine).join(''))

  return {
    directory,
    port,
    keyFile: file('user_key'),
    knownHosts: file('known_hosts'),
    log,
    endpoint: (changes = {}) => ({
      host: 'm1',
      number: 1,
      transport: 'ssh2',
      address: '127.0.0.1',
      port,
      user: userInfo().username,
      identityFiles: [file('user_key')],
      identitiesOnly: true,
      forwardAgent: false,
      jump: [],
      knownHostsFiles: [file('known_hosts')],
      globalKnownHostsFiles: [],
      strictHostKeyChecking: 'yes',
      hashKnownHosts: false,
      connectTimeoutMs: 60_000,
      keepAliveIntervalMs: 0,
      keepAliveMaxMissed: 3,
      authentications: ['publickey', 'keyboard-interactive', 'password'],
      ...changes,
    }),
    children: () => childrenOf(sshd.pid),
    async killChildren() {
      // All at once, the servers before their shells: nobody has time to say goodbye.
      for (const pid of descendantsOf(sshd.pid).toReversed()) end(pid)
      await endDescendants(sshd.pid)
    },
    async stop() {
      await endDescendants(sshd.pid)
      await ended(sshd)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
/** An unencrypted key unless `passphrase` is given, at `path` and `path.pub`. */
export function makeKey(path: string, type = 'ed25519', passphrase = '', options: readonly string[] = []): void {
  const { status, stderr } = spawnSync(
    'ssh-keygen',
    ['-q', '-t', type, '-N', passphrase, '-C', 'test key', ...options, '-f', path],
    {
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(`ssh-keygen: ${stderr}`)
}

/** `ssh-ed25519 AAAA…` of the public half, with its line feed. */
export function publicLine(path: string): string {
  const { stdout } = spawnSync('ssh-keygen', ['-y', '-P', '', '-f', path], { encoding: 'utf8' })
  return stdout.trim().split(' ').slice(0, 2).join(' ').concat('\n')
}

/** An ssh-agent of the test's own with these keys. */
export async function startAgent(directory: string, keyFiles: readonly string[]) {
  const socket = join(mkdtempSync(join(directory, 'agent-')), 'sock')
  const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: ['ignore', 'pipe', 'ignore'] })
  const said = await Promise.race([once(agent.stdout, 'data'), once(agent, 'exit').then(() => undefined)])
  if (said === undefined) throw new Error('ssh-agent did not start')
  for (const keyFile of keyFiles) {
    const { status, stderr } = spawnSync('ssh-add', ['-q', keyFile], {
      env: { ...process.env, SSH_AUTH_SOCK: socket },
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`ssh-add: ${stderr}`)
  }
  return { socket, stop: () => ended(agent) }
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function ended(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

/** Leaves first: each parent then takes note of its child, so that no zombie is left to init. */
async function endDescendants(pid: number | undefined): Promise<void> {
  await waitUntil(() => {
    const pids = descendantsOf(pid)
    for (const leaf of pids.filter((candidate) => childrenOf(candidate).length === 0)) end(leaf)
    for (const child of pids) end(child, 'SIGCONT')
    return pids.length === 0
  }, 'the processes of sshd to end')
}

function descendantsOf(pid: number | undefined): readonly number[] {
  return childrenOf(pid).flatMap((child) => [...descendantsOf(child), child])
}

function childrenOf(pid: number | undefined): readonly number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  return stdout.split('\n').flatMap((line) => {
    const [child, parent] = line.trim().split(/\s+/).map(Number)
    return child !== undefined && parent === pid ? [child] : []
  })
}

function end(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended by itself.
  }
}
