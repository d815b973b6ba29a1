/**
 * Two judges of one case: the system's ssh and Muster. Each gets files of its own, made from the same text, and logs in;
 * what is compared is whether the host was trusted, why not, and what was written into known_hosts.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { MusterError } from '../../../../src/base/errors.ts'
import { inventoryFromTarget } from '../../../../src/inventory/inventory.ts'
import { resolveEndpoints } from '../../../../src/inventory/resolve-endpoints.ts'
import { createHostKeyVerifier } from '../../../../src/ssh/known-hosts/verifier.ts'
import { ConnectError, type ConnectFailure, type Transport } from '../../../../src/ssh/transport.ts'
import { watchedContext } from '../../../support/ssh-context.ts'
import { NAME, type Servers } from './servers.ts'

export type Case = {
  /** One sentence about the host or its files. */
  readonly name: string
  /** Of UserKnownHostsFile and GlobalKnownHostsFile; undefined: the file is missing. */
  readonly user?: string
  readonly global?: string
  /** Further files of the case, by name; one that ends with a slash is a directory. */
  readonly files?: Readonly<Record<string, string>>
  /** Lines of ssh_config before the usual ones; `DIR` is where the files of the case are. */
  readonly config?: readonly string[]
  /** Default: one with an Ed25519, an ECDSA and an RSA key. */
  readonly server?: string
  /** What ssh does. */
  readonly ssh: string
  /** What Muster does instead, and the words with which docs/hosts-yaml.md says so. */
  readonly muster?: { readonly verdict: string; readonly documented: string }
  /** The transport that has to be chosen. Default: ssh2. */
  readonly transport?: 'openssh'
}

function writeFiles(each: Case, directory: string, servers: Servers): string {
  mkdirSync(directory)
  const write = (name: string, content: string | undefined) => {
    if (content === undefined) return
    if (name.endsWith('/')) mkdirSync(join(directory, name))
    else writeFileSync(join(directory, name), servers.fill(content).replaceAll('DIR', directory))
  }
  write('user', each.user)
  write('global', each.global)
  for (const [name, content] of Object.entries(each.files ?? {})) write(name, content)
  const usual = [
    'Host *',
    `HostName ${NAME}`,
    'User root',
    `ProxyCommand ${servers.command(each.server ?? 'three')}`,
    'UserKnownHostsFile DIR/user',
    'GlobalKnownHostsFile DIR/global',
    'StrictHostKeyChecking yes',
    `IdentityFile ${servers.keyFile}`,
    'IdentitiesOnly yes',
    'IdentityAgent none',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
  ]
  write('config', [...(each.config ?? []), ...usual].join('\n'))
  return join(directory, 'config')
}

/** The name of each file that has gained lines, with what they say. */
function recordedSince(directory: string, before: ReadonlyMap<string, string>): string {
  return [...before]
    .flatMap(([name, old]) => {
      const path = join(directory, name)
      if (!existsSync(path) || statSync(path).isDirectory()) return []
      const now = readFileSync(path, 'latin1')
      if (now === old) return []
      if (!now.startsWith(old)) return [`${name} was rewritten`]
      const lines = now
        .slice(old.length)
        .split('\n')
        .filter((line) => line !== '')
      return lines.map((line) => {
        const [names = '', type = ''] = line.split(' ')
        return `, recorded ${names.startsWith('|1|') ? 'hashed' : names} ${type} in ${name}`
      })
    })
    .join('')
}

function snapshot(directory: string, each: Case): ReadonlyMap<string, string> {
  const names = ['user', 'global', 'first', 'second', ...Object.keys(each.files ?? {})]
  return new Map(
    [...new Set(names)]
      .filter((name) => !name.endsWith('/') && name !== 'config')
      .map((name) => [name, existsSync(join(directory, name)) ? readFileSync(join(directory, name), 'latin1') : '']),
  )
}

export async function verdictOfSsh(each: Case, directory: string, servers: Servers): Promise<string> {
  const config = writeFiles(each, directory, servers)
  const before = snapshot(directory, each)
  const child = spawn('ssh', ['-F', config, '-o', 'BatchMode=yes', 'node1', 'true'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  const said = await text(child.stderr)
  const status = await ended
  if (status === 0) return `accepted${recordedSince(directory, before)}`
  return classify(said)
}

export async function verdictOfMuster(
  each: Case,
  directory: string,
  servers: Servers,
  transports: Readonly<Record<string, Transport>>,
): Promise<{ readonly verdict: string; readonly transport: string }> {
  const config = writeFiles(each, directory, servers)
  const before = snapshot(directory, each)
  const inventory = inventoryFromTarget('node1')
  try {
    const [endpoint] = await resolveEndpoints(inventory, inventory.hosts, { env: process.env, sshConfigFile: config })
    const transport = transports[endpoint?.transport ?? '']
    if (endpoint === undefined || transport === undefined) throw new Error('no endpoint')
    const context = watchedContext({ hostKeys: createHostKeyVerifier() })
    const verdict = await transport.connect(endpoint, context).then(
      (connection) => {
        connection.close()
        return `accepted${recordedSince(directory, before)}`
      },
      (error: unknown) => {
        if (error instanceof ConnectError) return classifyFailure(error.failure)
        throw error
      },
    )
    return { verdict, transport: endpoint.transport }
  } catch (error) {
    if (error instanceof MusterError) return { verdict: `configuration: ${error.message}`, transport: 'none' }
    throw error
  }
}

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/revoked/i, 'revoked'],
  [/Bad server host key: Invalid key length|RequiredRSASize asks for/, 'RSA key too short'],
  [/HOST IDENTIFICATION HAS CHANGED|host key has changed|key is not the one in known_hosts/, 'changed'],
  [/Unable to negotiate.*host key|no matching host key/i, 'no common host key algorithm'],
  [/Unable to negotiate.*key exchange|no matching key exchange|offers no key exchange/i, 'no common key exchange'],
  [/no matching|Unable to negotiate/i, 'no common algorithm'],
  [/is not in known_hosts|host key is known for|Host key verification failed|new host key was not accepted/, 'unknown'],
]

const classify = (said: string): string => PATTERNS.find(([pattern]) => pattern.test(said))?.[1] ?? `? ${said.trim()}`

function classifyFailure(failure: ConnectFailure): string {
  const verdict = PATTERNS.find(([pattern]) => pattern.test(failure.reason))?.[1]
  return verdict ?? (failure.kind === 'configuration' ? failure.kind : `${failure.kind}: ${failure.reason}`)
}
