/** Hosts to measure against: an sshd for each on its own port of 127.0.0.1, all with one configuration, gone after disposal. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { makeKey, publicLine } from '../../support/openssh-server.ts'
import { findProgram } from '../../support/requirements.ts'
import { endProcesses, withDescendants } from '../support/processes.ts'

/** Shells greet with this; nothing else on the screen has it. */
export const PROMPT = 'Ω'

export interface Servers extends AsyncDisposable {
  /** m1, m2, …: known to `sshConfig` and to `hostsYaml(n)`. */
  readonly names: readonly string[]
  readonly sshConfig: string
  readonly ports: readonly number[]
  readonly userKey: string
  hostsYaml(count: number): string
  /** The terminals of the shells that were opened since the last call, by host; waits until `hosts` have one. */
  takeTerminals(hosts: readonly string[]): Record<string, string>
}

/** What runs on the hosts: a shell whose echo the kernel makes, or one whose line editor echoes in writes of its own. */
export const SHELLS = { sh: '/bin/sh -i', bash: 'bash --norc --noprofile -i' } as const
export type ShellName = keyof typeof SHELLS

export async function startServers(directory: string, count: number, shell: ShellName): Promise<Servers> {
  const file = (name: string) => join(directory, name)
  mkdirSync(file('terminals'))
  mkdirSync(file('home'))
  makeKey(file('host_key'))
  makeKey(file('user_key'))
  writeFileSync(file('authorized_keys'), publicLine(file('user_key')), { mode: 0o600 })
  // Without anybody's start-up files; it says on which terminal it runs.
  writeFileSync(
    file('shell'),
    `#!/bin/sh
set -- $SSH_CONNECTION
tty >${file('terminals')}/$4.new && mv ${file('terminals')}/$4.new ${file('terminals')}/$4
PS1='${PROMPT} ' PS2= ENV= HISTFILE= INPUTRC=/dev/null exec ${SHELLS[shell]}
`,
  )
  chmodSync(file('shell'), 0o755)
  writeFileSync(
    file('sshd_config'),
    `ListenAddress 127.0.0.1
HostKey ${file('host_key')}
AuthorizedKeysFile ${file('authorized_keys')}
PidFile none
UsePAM no
UseDNS no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
PrintMotd no
PrintLastLog no
MaxStartups 2000
MaxSessions 500
SetEnv HOME=${file('home')} BASH_ENV= ENV=
ForceCommand ${file('shell')}
LogLevel ERROR
`,
  )
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const ports = await freePorts(count)
  const program = findProgram('sshd') ?? '/usr/sbin/sshd'
  const children: ChildProcess[] = ports.map((port) =>
    spawn(program, ['-D', '-f', file('sshd_config'), '-p', String(port)], { stdio: 'ignore' }),
  )
  const names = ports.map((_, index) => `m${index + 1}`)
  const hostKey = publicLine(file('host_key'))
  writeFileSync(file('known_hosts'), ports.map((port) => `[127.0.0.1]:${port} ${hostKey}`).join(''))
  writeFileSync(
    file('ssh_config'),
    [
      ...ports.map((port, index) => `Host m${index + 1}\n  Port ${port}`),
      `Host *
  HostName 127.0.0.1
  User ${userInfo().username}
  IdentityFile ${file('user_key')}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile ${file('known_hosts')}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  UpdateHostKeys no
`,
    ].join('\n'),
  )

  return {
    names,
    sshConfig: file('ssh_config'),
    ports,
    userKey: file('user_key'),
    hostsYaml(hosts) {
      const path = file(`hosts-${hosts}.yaml`)
      const lines = ports
        .slice(0, hosts)
        .map((port, index) => `  m${index + 1}: { address: 127.0.0.1, port: ${port} }\n`)
      writeFileSync(path, `cluster: bench\nhosts:\n${lines.join('')}`)
      return path
    },
    takeTerminals(hosts) {
      const terminals: Record<string, string> = {}
      for (const host of hosts) {
        const path = join(file('terminals'), String(ports[names.indexOf(host)]))
        if (!existsSync(path)) continue
        terminals[host] = readFileSync(path, 'utf8').trim()
        rmSync(path)
      }
      return terminals
    },
    async [Symbol.asyncDispose]() {
      await endProcesses(children.flatMap(({ pid }) => (pid === undefined ? [] : withDescendants(pid))))
    },
  }
}

/** Ports of 127.0.0.1 that were free a moment ago, all different. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  return await Promise.all(
    servers.map(async (server) => {
      const address = server.address()
      server.close()
      await once(server, 'close')
      if (address === null || typeof address === 'string') throw new Error('no port')
      return address.port
    }),
  )
}
