/**
 * What the tables of host keys are played against: sshd in inetd mode as a ProxyCommand, so that a host may have any name
 * and any port, and each kind of server is one configuration file. Nothing listens and nothing has to be stopped.
 */
import { spawnSync } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeKey, publicLine } from '../../../support/openssh-server.ts'
import { findProgram } from '../../../support/requirements.ts'

export const NAME = 'node1.example.org'

export type Servers = {
  readonly directory: string
  readonly keyFile: string
  /** `sshd -i` with the configuration of this name. */
  command(server: string): string
  /** Puts keys, hashed names and long text where a table has `{…}`. */
  fill(text: string): string
  stop(): void
}

/** Host keys by name; `stranger…` are keys that no server has. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  ed25519: ['ed25519'],
  ecdsa: ['ecdsa'],
  rsa: ['rsa', '-b', '2048'],
  stranger: ['ed25519'],
  'stranger-ecdsa': ['ecdsa'],
  'stranger-rsa': ['rsa', '-b', '2048'],
  authority: ['ed25519'],
  'other-authority': ['ed25519'],
}

/** Lines of sshd_config by name of the server, `HostKey` for each key. */
const SERVERS: Readonly<Record<string, readonly string[]>> = {
  three: ['HostKey {ed25519}', 'HostKey {ecdsa}', 'HostKey {rsa}'],
  ed25519: ['HostKey {ed25519}'],
  ecdsa: ['HostKey {ecdsa}'],
  rsa: ['HostKey {rsa}'],
  certified: ['HostKey {ed25519}', 'HostCertificate {ed25519}-cert.pub'],
  'certified rsa': ['HostKey {ed25519}', 'HostKey {rsa}', 'HostCertificate {rsa}-cert.pub'],
  'other name': ['HostKey {ed25519}', 'HostCertificate {other-name}-cert.pub'],
  expired: ['HostKey {ed25519}', 'HostCertificate {expired}-cert.pub'],
  'sha-1': ['HostKey {rsa}', 'HostKeyAlgorithms ssh-rsa'],
  'group 16': ['HostKey {ed25519}', 'KexAlgorithms diffie-hellman-group16-sha512'],
  'group exchange': ['HostKey {ed25519}', 'KexAlgorithms diffie-hellman-group-exchange-sha256'],
  'post-quantum': ['HostKey {ed25519}', 'KexAlgorithms sntrup761x25519-sha512@openssh.com'],
  'aes256-ctr': ['HostKey {ed25519}', 'Ciphers aes256-ctr', 'MACs hmac-sha2-512'],
}

export function prepareServers(): Servers {
  const directory = mkdtempSync(join(tmpdir(), 'muster-verdicts-'))
  const file = (name: string) => join(directory, name)
  for (const [name, [type = '', ...options]] of Object.entries(KEYS)) makeKey(file(name), type, '', options)
  makeKey(file('user_key'))
  writeFileSync(file('authorized_keys'), publicLine(file('user_key')), { mode: 0o600 })
  certify(directory, 'ed25519', 'ed25519', NAME)
  certify(directory, 'rsa', 'rsa', NAME)
  certify(directory, 'ed25519', 'other-name', 'another.example.org')
  certify(directory, 'ed25519', 'expired', NAME, ['-V', '20200101:20200201'])
  mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  for (const [name, lines] of Object.entries(SERVERS)) {
    const config = [
      ...lines.map((line) => line.replace(/\{(.*?)\}/g, (_, key: string) => file(key))),
      `AuthorizedKeysFile ${file('authorized_keys')}`,
      'PidFile none',
      'UsePAM no',
      'UseDNS no',
      'StrictModes no',
      'PermitRootLogin yes',
      `SetEnv HOME=${directory}`,
      'PasswordAuthentication no',
    ]
    writeFileSync(configFile(directory, name), `${config.join('\n')}\n`)
  }
  const lines = new Map(Object.keys(KEYS).map((name) => [name, publicLine(file(name)).trim()]))
  const sshd = findProgram('sshd') ?? 'sshd'
  return {
    directory,
    keyFile: file('user_key'),
    command: (server) => `${sshd} -i -E ${file('log')} -f ${configFile(directory, server)}`,
    fill: (text) =>
      text.replace(/\{([^{}]+)\}/g, (whole, word: string) => lines.get(word) ?? special(word, lines) ?? whole),
    stop: () => rmSync(directory, { recursive: true, force: true }),
  }
}

const configFile = (directory: string, server: string) => join(directory, `sshd-${server.replaceAll(' ', '-')}.conf`)

/** `hash NAME` as HashKnownHosts writes it; `long N`; `blob KEY`, the base64 of a key alone; `cut KEY`, without its end. */
function special(word: string, lines: ReadonlyMap<string, string>): string | undefined {
  const [kind, argument = ''] = word.split(' ')
  const blob = lines.get(argument)?.split(' ')[1] ?? ''
  switch (kind) {
    case 'hash': {
      const salt = randomBytes(20)
      return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(argument).digest('base64')}`
    }
    case 'long':
      return 'x'.repeat(Number(argument))
    case 'blob':
      return blob
    case 'cut':
      return blob.slice(0, 40)
    case 'unpadded':
      return blob.replace(/=+$/, '')
    default:
      return undefined
  }
}

function certify(
  directory: string,
  key: string,
  name: string,
  principal: string,
  options: readonly string[] = [],
): void {
  const file = (each: string) => join(directory, each)
  if (name !== key) spawnSync('cp', [`${file(key)}.pub`, `${file(name)}.pub`])
  const { status, stderr } = spawnSync(
    'ssh-keygen',
    ['-q', '-s', file('authority'), '-I', name, '-h', '-n', principal, ...options, `${file(name)}.pub`],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`ssh-keygen: ${stderr}`)
}
