/** SSH servers on this machine's loopback for the demo and for tests: real SSH and PTYs, no root, and nothing left behind. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { appendFile, writeFile } from 'node:fs/promises'
import { createServer, type Server as NetServer, type Socket } from 'node:net'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { accountName } from '../../base/account.ts'
import { MusterError } from '../../base/errors.ts'
import type { PtySpawner } from '../../base/pty.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { createPrivateDirectory } from '../private-directory.ts'
import { generateEd25519KeyPair } from './ed25519-key-pair.ts'
import { ChildProcesses, type EmbeddedAuthentication, type ServeContext, serveConnection } from './serve-connection.ts'
import { type HostCommand, type HostHome, writeHostHome } from './write-host-home.ts'

const SHELLS = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash', '/opt/homebrew/bin/bash', '/bin/sh']
/** Of this process's environment, what a shell on the machine itself would have too. */
const INHERITED = ['LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TERMINFO', 'TERMINFO_DIRS']
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/**
 * Ends programs that left their groups, found by the HOME in their environment: TERM, then KILL; then removes the empty control
 * groups of the demo's jobs. For sh; $1: the homes.
 */
const END_LEFT_PROGRAMS = `n=0
while p=$(grep -lszF "HOME=$1/" /proc/[0-9]*/environ | tr -dc '0-9\\n'); [ -n "$p" ] && [ $n -lt 40 ]; do
  if [ $n -lt 20 ]; then kill $p; else kill -KILL $p; fi
  n=$((n+1)); sleep 0.05
done 2>/dev/null
for f in "$1"/*/.local/state/muster/jobs/*/cgroup; do
  read -r g <"$f" && case $g in *..*) ;; /sys/fs/cgroup/*/*) rmdir "$g/main" "$g"; rmdir "\${g%/*}";; esac
done 2>/dev/null
`

export type EmbeddedHostsOptions = {
  readonly count: number
  readonly spawnPty: PtySpawner
  /** Default m1…mN. */
  readonly names?: readonly string[]
  /** Default: public key only. */
  readonly authentications?: readonly EmbeddedAuthentication[]
  /** What `password` and `keyboard-interactive` accept; without it they accept nothing. */
  readonly password?: string
  readonly commands?: readonly HostCommand[]
}

export type EmbeddedHosts = Awaited<ReturnType<typeof startEmbeddedHosts>>

export async function startEmbeddedHosts(options: EmbeddedHostsOptions) {
  const names = options.names ?? Array.from({ length: options.count }, (_, index) => `m${index + 1}`)
  const { commands = [] } = options
  const user = accountName()
  const path = process.env.PATH ?? DEFAULT_PATH
  const shellFile = SHELLS.find((file) => existsSync(file)) ?? '/bin/sh'
  const privateDirectory = await createPrivateDirectory('muster-demo-', undefined, END_LEFT_PROGRAMS)
  const directory = privateDirectory.path
  const identity = generateEd25519KeyPair('muster-demo')
  const clientKey = ssh2.utils.parseKey(identity.privateKeyText)
  if (clientKey instanceof Error) throw clientKey
  const byName = new Map<string, EmbeddedHost>()

  const hosts = names.map((name) => {
    const host = new EmbeddedHost({
      name,
      spawnPty: options.spawnPty,
      authentications: options.authentications ?? ['publickey'],
      password: options.password,
      clientKey,
      environment: (home) => environmentOf(name, user, path, home),
      portOf: (other) => byName.get(other)?.port,
    })
    byName.set(name, host)
    return host
  })

  let isClosed = false
  const killChildren = () => {
    for (const host of hosts) host.killChildren()
  }
  process.on('exit', killChildren)

  const close = async () => {
    if (isClosed) return
    isClosed = true
    await Promise.all(hosts.map((host) => host.close()))
    await endLeftPrograms(directory)
    process.off('exit', killChildren)
    privateDirectory[Symbol.dispose]()
  }

  const identityFile = join(directory, 'identity')
  const knownHostsFile = join(directory, 'known_hosts')
  try {
    await Promise.all(
      hosts.map(async (host, index) => {
        await host.start()
        const { name, port, publicKeyLine } = host
        const number = index + 1
        host.setHome(
          await writeHostHome({
            parent: directory,
            name,
            number,
            port,
            publicKeyLine,
            user,
            shellFile,
            path,
            commands,
          }),
        )
      }),
    )
    const knownHosts = hosts.map((host) => `[${host.address}]:${host.port} ${host.publicKeyLine}\n`).join('')
    await Promise.all([
      writeFile(identityFile, identity.privateKeyText, { mode: 0o600 }),
      writeFile(knownHostsFile, knownHosts, { mode: 0o600 }),
    ])
  } catch (error) {
    await close()
    throw new MusterError('internal', 'The embedded hosts could not be started.', { cause: error })
  }

  return {
    hosts,
    user,
    /** Temporary, private, removed by `close`. Each host's home is a directory of it. */
    directory,
    identityFile,
    knownHostsFile,
    host(name: string) {
      const host = byName.get(name)
      if (host === undefined) throw new MusterError('usage', `There is no embedded host named ${name}.`)
      return host
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** How to reach them: the generated key, the true host keys, nothing of the user's own SSH configuration. */
export function embeddedEndpoints(embedded: EmbeddedHosts): Endpoint[] {
  return embedded.hosts.map((host, index) => ({
    host: host.name,
    number: index + 1,
    transport: 'ssh2',
    address: host.address,
    port: host.port,
    user: embedded.user,
    identityFiles: [embedded.identityFile],
    identitiesOnly: true,
    forwardAgent: false,
    jump: [],
    knownHostsFiles: [embedded.knownHostsFile],
    globalKnownHostsFiles: [],
    strictHostKeyChecking: 'yes',
    hashKnownHosts: false,
    connectTimeoutMs: 10_000,
    keepAliveIntervalMs: 15_000,
    keepAliveMaxMissed: 3,
    authentications: ['publickey', 'keyboard-interactive', 'password'],
  }))
}

function environmentOf(name: string, user: string, path: string, home: HostHome): Readonly<Record<string, string>> {
  const inherited = INHERITED.flatMap((key) => {
    const value = process.env[key]
    return value === undefined ? [] : [[key, value] as const]
  })
  return {
    ...Object.fromEntries(inherited),
    PATH: `${home.binDirectory}:${path}`,
    HOME: home.directory,
    USER: user,
    LOGNAME: user,
    SHELL: home.shellFile,
    HOST: name,
    HOSTNAME: name,
    ENV: join(home.directory, '.shrc'),
    BASH_SILENCE_DEPRECATION_WARNING: '1',
    MUSTER_HOST_KEYS: home.hostKeyFile,
    // Embedded hosts do not have the GPUs of this machine.
    MUSTER_HARDWARE: home.directory,
  }
}

async function endLeftPrograms(directory: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', END_LEFT_PROGRAMS, 'sh', directory], { cwd: '/', stdio: 'ignore' })
  await once(child, 'close').catch(() => {})
}

const ADDRESS = '127.0.0.1'
const GRACE_MS = 1_000
const SOFTWARE = 'muster_demo'

type Setup = Pick<ServeContext, 'name' | 'spawnPty' | 'authentications' | 'password' | 'clientKey' | 'portOf'> & {
  environment(home: HostHome): Readonly<Record<string, string>>
}

/** It owns its connections and children, and ends them all. */
class EmbeddedHost {
  readonly name: string
  readonly address = ADDRESS
  readonly publicKeyLine: string
  readonly #setup: Setup
  readonly #ssh: ssh2.Server
  readonly #sockets = new Set<Socket>()
  readonly #children = new ChildProcesses()
  #home: HostHome | undefined
  #listener: NetServer | undefined
  #port = 0
  #acceptedCount = 0

  constructor(setup: Setup) {
    this.name = setup.name
    this.#setup = setup
    const key = generateEd25519KeyPair(this.name)
    this.publicKeyLine = key.publicKeyLine
    this.#ssh = new ssh2.Server({ hostKeys: [key.privateKeyText], ident: SOFTWARE })
    // It comes when the client's first line was read, and names the socket by the client's port only.
    this.#ssh.on('connection', (client, { port }) => {
      const socket = [...this.#sockets].find(({ remotePort }) => remotePort === port)
      if (socket === undefined) client.end()
      else serveConnection(client, socket, this.#context())
    })
  }

  /** Stays the same over `stop` and `start`. */
  get port(): number {
    return this.#port
  }

  get connectionCount(): number {
    return this.#sockets.size
  }

  get acceptedCount(): number {
    return this.#acceptedCount
  }

  /** Where its shells live; before the first connection. */
  setHome(home: HostHome): void {
    this.#home = home
  }

  /** As a crash of the host would. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async start(): Promise<void> {
    if (this.#listener !== undefined) return
    const listener = createServer((socket) => this.#accept(socket))
    listener.on('error', () => {})
    await once(listener.listen(this.#port, ADDRESS), 'listening')
    this.#listener = listener
    const address = listener.address()
    if (address !== null && typeof address === 'object') this.#port = address.port
  }

  async stop(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    this.dropConnections()
    if (listener !== undefined) await new Promise<void>((resolve) => listener.close(() => resolve()))
  }

  async close(): Promise<void> {
    await this.stop()
    await this.#children.end(GRACE_MS)
  }

  /** The last moment of the process: nothing can be waited for. */
  killChildren(): void {
    this.#children.signalAll('SIGKILL')
  }

  #accept(socket: Socket): void {
    this.#acceptedCount += 1
    socket.setNoDelay(true)
    this.#sockets.add(socket)
    // Every shell of the connection listens for its own.
    socket.setMaxListeners(0)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
    this.#ssh.injectSocket(socket)
  }

  #context(): ServeContext {
    const home = this.#home
    if (home === undefined) throw new Error(`The embedded host ${this.name} has no home yet.`)
    return {
      ...this.#setup,
      home,
      environment: this.#setup.environment(home),
      // The log is a convenience: the host also works when its home is gone.
      log: (line) => void appendFile(home.logFile, `${new Date().toISOString()} ${line}\n`).catch(() => {}),
      children: this.#children,
    }
  }
}
