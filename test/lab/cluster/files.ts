/** The files of a lab: keys, what the hosts share in /etc, each host's home and sshd_config, and the client's side. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateEd25519KeyPair } from '../../../src/ssh/embedded/ed25519-key-pair.ts'

export type HostPlan = {
  readonly name: string
  readonly address: string
  /** sshd_config(5) keywords over Debian's defaults. */
  readonly sshdOptions: Readonly<Record<string, string>>
  /** Appended to the ~/.bashrc of the host. */
  readonly bashrc: string
  /** Directories of this machine that the host sees read-only: where they are there, and where they come from. */
  readonly mounts: Readonly<Record<string, string>>
  /** The host whose home directory it has; undefined: one of its own. */
  readonly homeOf?: string | undefined
}

export type ClientPlan = {
  /** Whether the client knows the hosts' keys already. */
  readonly knownHosts: 'all' | 'none'
  /** Lines in front of the client's ~/.ssh/config. */
  readonly sshConfig: readonly string[]
}

const PASSWD = `root:x:0:0:root:%HOME%:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
sshd:x:110:65534::/run/sshd:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`

const PROFILE = `export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LANG=C.UTF-8
`

const BASHRC = `PS1='\\h:\\w\\$ '
HISTFILE=
`

const SSHD_CONFIG = `AddressFamily inet
ListenAddress 0.0.0.0
HostKey /run/lab/ssh_host_ed25519_key
PidFile /run/sshd.pid
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
PrintLastLog no
SetEnv MUSTER_HARDWARE=/run/lab
LogLevel VERBOSE
Subsystem sftp internal-sftp
`

/** Writes everything below `directory`; returns the path of hosts.yaml. */
export function writeLabFiles(directory: string, hosts: readonly HostPlan[], client: ClientPlan): string {
  const home = join(directory, 'home')
  const names = hosts.map(({ address, name }) => `${address} ${name}\n`)
  const etcHosts = ['127.0.0.1 localhost\n', ...names].join('')
  writeShared(directory, home, etcHosts)
  const clientKey = generateEd25519KeyPair('lab')
  const hostKeys = hosts.map((host) =>
    writeHost(join(directory, 'hosts', host.name), host, clientKey.publicKeyLine, etcHosts),
  )

  const ssh = makeDirectory(join(home, '.ssh'), 0o700)
  writeFileSync(join(ssh, 'id_ed25519'), clientKey.privateKeyText, { mode: 0o600 })
  writeFileSync(join(ssh, 'id_ed25519.pub'), `${clientKey.publicKeyLine}\n`)
  writeFileSync(join(ssh, 'config'), ['# The client of the lab.', ...client.sshConfig, ''].join('\n'), { mode: 0o600 })
  if (client.knownHosts === 'all') {
    const lines = hosts.map(({ name, address }, index) => `${name},${address} ${hostKeys[index]}\n`)
    writeFileSync(join(ssh, 'known_hosts'), lines.join(''), { mode: 0o600 })
  }
  const hostsFile = join(directory, 'hosts.yaml')
  writeFileSync(hostsFile, formatHostsYaml(hosts))
  return hostsFile
}

function writeShared(directory: string, home: string, etcHosts: string): void {
  const etc = makeDirectory(join(directory, 'etc'), 0o755)
  writeFileSync(join(etc, 'passwd'), PASSWD.replace('%HOME%', home))
  writeFileSync(join(etc, 'hosts'), etcHosts)
  writeFileSync(join(etc, 'resolv.conf'), '')
  writeFileSync(join(etc, 'profile'), PROFILE)
}

/** Returns the host's public key. */
function writeHost(directory: string, host: HostPlan, clientPublicKey: string, etcHosts: string): string {
  const home = join(directory, 'home')
  if (host.homeOf === undefined) makeDirectory(home, 0o700)
  else {
    makeDirectory(directory, 0o755)
    symlinkSync(join(directory, '..', host.homeOf, 'home'), home)
  }
  const ssh = makeDirectory(join(home, '.ssh'), 0o700)
  const key = generateEd25519KeyPair(host.name)
  // sshd takes the first value of a keyword, so what the test asks for stands first.
  const options = Object.entries(host.sshdOptions).map(([keyword, value]) => `${keyword} ${value}\n`)
  writeFileSync(join(directory, 'ssh_host_ed25519_key'), key.privateKeyText, { mode: 0o600 })
  writeFileSync(join(directory, 'ssh_host_ed25519_key.pub'), `${key.publicKeyLine}\n`)
  writeFileSync(join(directory, 'sshd_config'), options.join('') + SSHD_CONFIG)
  const mounts = Object.entries(host.mounts).map(([place, source]) => `${place} ${source}\n`)
  writeFileSync(join(directory, 'mounts'), mounts.join(''))
  writeFileSync(join(directory, 'passwd'), PASSWD.replace('%HOME%', '/root'))
  writeFileSync(join(directory, 'hosts'), etcHosts)
  writeFileSync(join(ssh, 'authorized_keys'), `${clientPublicKey}\n`, { mode: 0o600 })
  writeFileSync(join(home, '.bashrc'), BASHRC + host.bashrc)
  writeFileSync(join(home, '.bash_profile'), '. ~/.bashrc\n')
  writeFileSync(join(home, '.hushlogin'), '')
  return key.publicKeyLine
}

function formatHostsYaml(hosts: readonly HostPlan[]): string {
  const lines = hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`)
  return `cluster: lab\ndefaults: { user: root }\nhosts:\n${lines.join('')}`
}

function makeDirectory(path: string, mode: number): string {
  mkdirSync(path, { recursive: true, mode })
  return path
}
