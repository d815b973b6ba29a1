/**
 * The hosts of the benchmark: in a network and mount namespace of the benchmark's own an sshd for each or for all, on
 * port 22 of an address of 127.0.0.0/8 for each, named in /etc/hosts, and one ssh_config. So each program is used as on
 * any cluster.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { makeKey, publicLine } from '../../support/openssh-server.ts'
import { findProgram } from '../../support/requirements.ts'
import { endProcesses, withDescendants } from '../support/processes.ts'
import type { ControlGroup } from './control-group.ts'

const INSIDE = 'MUSTER_BENCH_NAMESPACE'
const DEADLINE_MS = 30_000

/** Runs this program again inside namespaces of its own; resolves to its exit code. Undefined: this is it. */
export async function enterNamespace(): Promise<number | undefined> {
  if (process.env[INSIDE] !== undefined) return undefined
  const args = ['--mount', '--net', '--propagation', 'private', process.execPath, ...process.execArgv]
  const child = spawn('unshare', [...args, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: '1' },
  })
  return await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

export interface Hosts extends AsyncDisposable {
  /** node001, node002, … */
  readonly names: readonly string[]
  /** The processes that listen; those that serve connections are their children. */
  readonly listeners: readonly number[]
}

export type HostsOptions = {
  readonly count: number
  /** Its CPU time is that of the servers. */
  readonly group: ControlGroup
  /** One sshd answers for all addresses, as a thousand of them would need more memory than the machine has. */
  readonly isOneServer?: boolean
}

export async function startHosts(
  directory: string,
  { count, group, isOneServer = false }: HostsOptions,
): Promise<Hosts> {
  const file = (name: string) => join(directory, name)
  const width = Math.max(3, String(count).length)
  const names = Array.from({ length: count }, (_, index) => `node${String(index + 1).padStart(width, '0')}`)
  const addressOf = (index: number) => `127.1.${Math.floor(index / 250)}.${(index % 250) + 1}`
  mkdirSync(file('home'))
  makeKey(file('host_key'))
  makeKey(file('user_key'))
  const hostKey = publicLine(file('host_key'))
  writeFileSync(file('authorized_keys'), publicLine(file('user_key')), { mode: 0o600 })
  writeFileSync(file('known_hosts'), names.map((name, index) => `${name},${addressOf(index)} ${hostKey}`).join(''))
  // All hosts share one set of start-up files; an account has none here.
  writeFileSync(
    file('sshd_config'),
    `HostKey ${file('host_key')}
AuthorizedKeysFile ${file('authorized_keys')}
PidFile none
UsePAM no
UseDNS no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
PrintMotd no
PrintLastLog no
SetEnv HOME=${file('home')}
LogLevel ERROR
${isOneServer ? `MaxStartups ${2 * count}\n` : ''}`,
  )
  writeFileSync(
    file('ssh_config'),
    `Host node*
  User root
  IdentityFile ${file('user_key')}
  IdentitiesOnly yes
  UserKnownHostsFile ${file('known_hosts')}
  StrictHostKeyChecking yes
`,
  )
  const lines = names.map((name, index) => `${addressOf(index)} ${name}\n`).join('')
  writeFileSync(file('hosts'), `127.0.0.1 localhost\n${lines}`)
  mount('--bind', file('hosts'), '/etc/hosts')
  mount('--bind', file('ssh_config'), '/etc/ssh/ssh_config')
  const own = join(homedir(), '.ssh')
  if (existsSync(own)) mount('-t', 'tmpfs', 'tmpfs', own)
  run('ip', 'link', 'set', 'lo', 'up')
  mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })

  const [shell = '', ...words] = [...group.prefix(), findProgram('sshd') ?? '/usr/sbin/sshd', '-D']
  const addresses = isOneServer ? ['0.0.0.0'] : names.map((_, index) => addressOf(index))
  const servers: ChildProcess[] = addresses.map((address) =>
    spawn(shell, [...words, '-f', file('sshd_config'), '-o', `ListenAddress=${address}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  )
  const deadline = performance.now() + DEADLINE_MS
  for (const address of addresses) await untilItListens(address, deadline)
  const listeners = servers.flatMap(({ pid }) => pid ?? [])
  return {
    names,
    listeners,
    async [Symbol.asyncDispose]() {
      await endProcesses(listeners.flatMap(withDescendants))
    },
  }
}

async function untilItListens(host: string, deadlineMs: number): Promise<void> {
  for (;;) {
    const isThere = await new Promise<boolean>((resolve) => {
      const socket = connect({ host, port: 22 })
      socket.once('data', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('close', () => resolve(false))
    }).finally(() => {})
    if (isThere) return
    if (performance.now() > deadlineMs) throw new Error(`the sshd of ${host} does not answer`)
    await delay(20)
  }
}

function mount(...args: string[]): void {
  run('mount', ...args)
}

function run(program: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`)
}
