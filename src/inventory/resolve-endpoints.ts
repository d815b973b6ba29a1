/** How each host is reached: hosts.yaml over ssh_config over defaults. */
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'
import { currentAccount } from '../base/account.ts'
import { getOrMake } from '../base/collections.ts'
import { defined } from '../base/defined.ts'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Endpoint, Host } from './host.ts'
import { isAddress, isUserName, matchesGlob, parseHostSpec } from './host-name.ts'
import { bareName, foldHostSet } from './host-set.ts'
import type { Inventory } from './inventory.ts'
import { knownByAuthority, LEAST_RSA_BITS, type ReadAuthorities, readAuthorities } from './known-hosts/parse.ts'
import { algorithmsOf } from './ssh-config/algorithms.ts'
import { createLibrarySource } from './ssh-config/library-source.ts'
import { authenticationsOf, needsOpenSsh, type ReadSmallFile, readSmallFile } from './ssh-config/openssh-only.ts'
import { createOpenSshSource, findProgram } from './ssh-config/openssh-source.ts'
import {
  expandPath,
  expandTokens,
  isYes,
  type LocalUser,
  NO_ANSWER,
  parseSeconds,
  type SshConfigAnswer,
  type SshConfigQuestion,
  type SshConfigSource,
  type SshConfigValues,
  settingOf,
  splitPaths,
  type TokenValues,
} from './ssh-config/source.ts'

/** What is wrong with the route to a host; many hosts may share it. */
class EndpointProblem extends Error {}

type EndpointSettings = {
  readonly env: Readonly<Record<string, string | undefined>>
  /** `ssh -F`: read this ssh_config alone. */
  readonly sshConfigFile?: string
  /** Wins over ConnectTimeout. */
  readonly connectTimeoutMs?: number
  /** Used if ssh_config sets none; 10 s unless given. */
  readonly usualConnectTimeoutMs?: number
  /** Forward the agent to every host that does not say otherwise in hosts.yaml. */
  readonly forwardAgent?: boolean
}

/** The machine and the settings that endpoints are made for. */
type Surroundings = EndpointSettings & {
  readonly localUser: LocalUser
  exists(path: string): boolean
  readonly read: ReadSmallFile
  readonly authorities: ReadAuthorities
}

const CONNECT_TIMEOUT_MS = 10_000
const KEEP_ALIVE_INTERVAL_MS = 5_000
const KEEP_ALIVE_MAX_MISSED = 3
const STRICTNESS = new Map<string | undefined, Endpoint['strictHostKeyChecking']>(
  Object.entries({ yes: 'yes', true: 'yes', no: 'no', off: 'no', false: 'no', 'accept-new': 'accept-new' } as const),
)
const DEFAULT_IDENTITY = /^~\/\.ssh\/id_(?:rsa|ecdsa|ecdsa_sk|ed25519|ed25519_sk|xmss|dsa)$/

/** This machine, under a name that hosts.yaml need not declare. */
export function localEndpoint(name: string, settings: Pick<EndpointSettings, 'connectTimeoutMs'> = {}): Endpoint {
  return createLocalEndpoint({ name, number: 0 }, { ...settings, localUser: currentUser() })
}

function createLocalEndpoint(host: Host, surroundings: Pick<Surroundings, 'localUser' | 'connectTimeoutMs'>): Endpoint {
  return {
    host: host.name,
    number: host.number,
    transport: 'local',
    address: 'localhost',
    port: 0,
    user: surroundings.localUser.name,
    identityFiles: [],
    identitiesOnly: false,
    forwardAgent: false,
    jump: [],
    knownHostsFiles: [],
    globalKnownHostsFiles: [],
    strictHostKeyChecking: 'ask',
    hashKnownHosts: false,
    connectTimeoutMs: surroundings.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    keepAliveIntervalMs: 0,
    keepAliveMaxMissed: KEEP_ALIVE_MAX_MISSED,
    authentications: [],
    ...defined({ shell: host.shell }),
  }
}

/** One host's endpoint: what ssh_config answered (hosts.yaml already won there), and our defaults. @throws EndpointProblem */
function createEndpoint(
  host: Host,
  question: SshConfigQuestion,
  values: SshConfigValues,
  jump: readonly Endpoint[],
  surroundings: Surroundings,
): Endpoint {
  const { env, localUser } = surroundings
  const { alias } = question
  const address = settingOf(values, 'hostname') ?? host.address ?? alias
  const user = settingOf(values, 'user') ?? localUser.name
  const port = Number(settingOf(values, 'port') ?? 22)
  if (!isAddress(address)) throw new EndpointProblem(`${printable(alias)}: ${printable(address)} is not an address`)
  if (!isUserName(user)) throw new EndpointProblem(`${printable(alias)}: ${printable(user)} is not a user name`)
  const hostKeyAlias = settingOf(values, 'hostkeyalias')
  const tokens: TokenValues = {
    alias,
    address,
    port,
    user,
    local: localUser,
    ...defined({ hostKeyAlias }),
    jump: settingOf(values, 'proxyjump') ?? '',
  }
  const paths = (lines: readonly string[]): string[] => lines.map((path) => expandPath(path, tokens, env))
  const identityFiles = identityFilesOf(question, values, tokens, surroundings)
  const proxyCommand = host.jump === undefined && jump.length === 0 ? settingOf(values, 'proxycommand') : undefined
  const knownHostsFiles = paths(splitPaths(values.get('userknownhostsfile')?.[0]))
  const globalKnownHostsFiles = paths(splitPaths(values.get('globalknownhostsfile')?.[0]))
  const jumpNeeds = jump.find((hop) => hop.needsOpenSsh !== undefined)
  const reason =
    needsOpenSsh(
      values,
      identityFiles.filter((path) => surroundings.exists(path)),
      paths(values.get('certificatefile') ?? []),
      surroundings.read,
    ) ??
    knownByAuthority(tokens, [...knownHostsFiles, ...globalKnownHostsFiles], surroundings.authorities) ??
    (jumpNeeds && `its jump host ${jumpNeeds.host}: ${jumpNeeds.needsOpenSsh}`)
  // ForwardAgent may also name a socket or a variable, which means yes.
  const isForwarding = ![undefined, 'no', 'false'].includes(settingOf(values, 'forwardagent'))
  const requiredRsaBits = Number(settingOf(values, 'requiredrsasize'))
  return {
    host: host.name,
    number: host.number,
    transport: host.transport ?? (reason === undefined ? 'ssh2' : 'openssh'),
    address,
    port,
    user,
    identityFiles,
    identitiesOnly: isYes(values, 'identitiesonly', false),
    forwardAgent: host.forwardAgent ?? (surroundings.forwardAgent || isForwarding),
    jump,
    knownHostsFiles,
    globalKnownHostsFiles,
    strictHostKeyChecking: STRICTNESS.get(settingOf(values, 'stricthostkeychecking')) ?? 'ask',
    hashKnownHosts: isYes(values, 'hashknownhosts', false),
    connectTimeoutMs:
      surroundings.connectTimeoutMs ??
      milliseconds(values, 'connecttimeout') ??
      surroundings.usualConnectTimeoutMs ??
      CONNECT_TIMEOUT_MS,
    // ssh -G prints 0 both for 'unset' and for 'off'; a console needs to know about dead connections.
    keepAliveIntervalMs: milliseconds(values, 'serveraliveinterval') || KEEP_ALIVE_INTERVAL_MS,
    keepAliveMaxMissed:
      Number(settingOf(values, 'serveralivecountmax') ?? KEEP_ALIVE_MAX_MISSED) || KEEP_ALIVE_MAX_MISSED,
    authentications: authenticationsOf(values),
    ...defined({
      alias: alias === host.name ? undefined : alias,
      agentSocket: agentSocketOf(values, tokens, surroundings),
      proxyCommand: proxyCommand === undefined ? undefined : expandTokens(proxyCommand, tokens),
      hostKeyAlias,
      algorithms: algorithmsOf(values),
      requiredRsaBits: requiredRsaBits > LEAST_RSA_BITS ? requiredRsaBits : undefined,
      persistMs: host.persistMs || undefined,
      shell: host.shell ?? settingOf(values, 'remotecommand'),
      environment: environmentOf(values, env),
      sshConfigFile: surroundings.sshConfigFile,
      needsOpenSsh: reason,
    }),
  }
}

/**
 * In the order of ssh: those of ssh_config and the default ones only if they exist (or their public half, which
 * selects a key of the agent). Those of hosts.yaml are kept even if they are missing, so that this is reported.
 */
function identityFilesOf(
  question: SshConfigQuestion,
  values: SshConfigValues,
  tokens: TokenValues,
  surroundings: Surroundings,
): string[] {
  const files = new Set<string>()
  for (const written of values.get('identityfile') ?? []) {
    if (written === 'none') continue
    const path = expandPath(written, tokens, surroundings.env)
    const isOurs = question.identityFiles?.includes(written) ?? false
    const isThere = surroundings.exists(path) || (!DEFAULT_IDENTITY.test(written) && surroundings.exists(`${path}.pub`))
    if (isOurs || isThere) files.add(path)
  }
  return [...files]
}

function agentSocketOf(values: SshConfigValues, tokens: TokenValues, { env }: Surroundings): string | undefined {
  const written = values.get('identityagent')?.[0]
  if (written === 'none') return undefined
  if (written === undefined || written === '' || written === 'SSH_AUTH_SOCK') return env.SSH_AUTH_SOCK || undefined
  if (/^\$\w+$/.test(written)) return env[written.slice(1)] || undefined
  return expandPath(written, tokens, env)
}

function milliseconds(values: SshConfigValues, keyword: string): number | undefined {
  const seconds = parseSeconds(settingOf(values, keyword) ?? '')
  return seconds === undefined ? undefined : seconds * 1000
}

function environmentOf(values: SshConfigValues, env: Surroundings['env']): Record<string, string> | undefined {
  const result: Record<string, string> = {}
  const patterns = (values.get('sendenv') ?? []).flatMap((line) => line.split(/\s+/))
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && patterns.some((pattern) => matchesGlob(pattern, name))) result[name] = value
  }
  for (const setting of values.get('setenv') ?? []) {
    const equals = setting.indexOf('=')
    if (equals > 0) result[setting.slice(0, equals)] = setting.slice(equals + 1)
  }
  return Object.keys(result).length > 0 ? result : undefined
}

export type EndpointOptions = EndpointSettings & {
  readonly signal?: AbortSignal
  /** Replaced in tests. */
  readonly source?: SshConfigSource
  readonly localUser?: LocalUser
  readonly files?: Partial<Pick<Surroundings, 'exists' | 'read' | 'authorities'>>
}

const MAX_HOPS = 16
const MAX_ROUNDS = 32

const currentUser = (): LocalUser => ({ ...currentAccount(), hostName: hostname() })

/** `ssh -G` if ssh is installed, otherwise a library that reads the same files. */
export function createSshConfigSource({ env, sshConfigFile, localUser }: EndpointOptions): SshConfigSource {
  const ssh = findProgram('ssh', env.PATH)
  const file = defined({ configFile: sshConfigFile })
  return ssh === undefined
    ? createLibrarySource({ ...file, localUser: localUser ?? currentUser() })
    : createOpenSshSource({ ...file, ssh, env })
}

function remembered<T>(look: (path: string) => T): (path: string) => T {
  const known = new Map<string, { readonly value: T }>()
  return (path) => getOrMake(known, path, () => ({ value: look(path) })).value
}

class EndpointResolver {
  readonly #inventory: Inventory
  readonly #byName: ReadonlyMap<string, Host>
  readonly #options: EndpointOptions
  readonly #answers = new Map<string, SshConfigAnswer>()
  readonly #questions = new Map<string, SshConfigQuestion>()
  readonly #surroundings: Surroundings

  constructor(inventory: Inventory, options: EndpointOptions) {
    this.#inventory = inventory
    this.#byName = new Map(inventory.hosts.map((host) => [host.name, host]))
    this.#options = options
    const { files } = options
    this.#surroundings = {
      ...options,
      localUser: options.localUser ?? currentUser(),
      // Hundreds of hosts ask about the same few files.
      exists: remembered(files?.exists ?? existsSync),
      read: remembered(files?.read ?? readSmallFile),
      authorities: remembered(files?.authorities ?? readAuthorities),
    }
  }

  async resolve(hosts: readonly Host[]): Promise<readonly Endpoint[]> {
    const source = this.#options.source ?? createSshConfigSource(this.#options)
    // Jump hosts are known only when ssh_config has answered for the hosts behind them: one round per hop.
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const problems = new Map<string, string[]>()
      const endpoints = hosts.map((host) => {
        try {
          return this.#endpoint(host, [])
        } catch (error) {
          if (!(error instanceof EndpointProblem)) throw error
          getOrMake(problems, error.message, (): string[] => []).push(host.name)
          return undefined
        }
      })
      if (this.#questions.size === 0) {
        if (problems.size > 0) {
          const lines = [...problems].map(([reason, names]) => `${foldHostSet(names)}: ${reason}`)
          throw new MusterError('configuration', lines.join('\n'), {
            hint: 'Check with `ssh -G HOST`; jump hosts and addresses may also come from hosts.yaml.',
          })
        }
        return endpoints.filter((endpoint) => endpoint !== undefined)
      }
      const asked = [...this.#questions]
      this.#questions.clear()
      const answers = await source.ask(
        asked.map(([, question]) => question),
        this.#options.signal,
      )
      asked.forEach(([key], index) => {
        this.#answers.set(key, answers[index] ?? NO_ANSWER)
      })
    }
    throw new MusterError('configuration', 'the chain of jump hosts is endless')
  }

  #questionOf(host: Host): SshConfigQuestion {
    const alias = host.sshAlias ?? bareName(host.name)
    const base = this.#inventory.file === undefined ? '.' : dirname(this.#inventory.file)
    const { address, port, user } = host
    const identityFiles = host.identityFiles?.map((path) => (/^[~/$%]/.test(path) ? path : resolve(base, path)))
    return { alias, ...defined({ address, port, user, identityFiles }) }
  }

  /** Undefined: ssh must be asked first. `trail`: the hosts that are reached through this one. */
  #endpoint(host: Host, trail: readonly string[]): Endpoint | undefined {
    if (host.transport === 'local') {
      if (trail.length > 0) throw new EndpointProblem(`jump host ${printable(host.name)} has transport: local`)
      return createLocalEndpoint(host, this.#surroundings)
    }
    const question = this.#questionOf(host)
    const key = JSON.stringify(question)
    const answer = this.#answers.get(key)
    if (answer === undefined) {
      this.#questions.set(key, question)
      return undefined
    }
    if (!answer.ok) throw new EndpointProblem(answer.reason)
    const jump = this.#jumpOf(host, question.alias, answer.values, [...trail, host.name])
    return jump && createEndpoint(host, question, answer.values, jump, this.#surroundings)
  }

  #jumpOf(
    host: Host,
    alias: string,
    values: SshConfigValues,
    trail: readonly string[],
  ): readonly Endpoint[] | undefined {
    if (trail.length > MAX_HOPS)
      throw new EndpointProblem(`more than ${MAX_HOPS} jump hosts: ${printable(trail.join(' → '))}`)
    const configured = settingOf(values, 'proxyjump')?.split(',') ?? []
    const hops = (host.jump ?? configured).map((hop) => hop.trim())
    const hopHosts = hops.map((hop) => this.#hopHost(hop))
    // `Host *` with a ProxyJump means the jump host too: it does not jump over itself.
    if (host.jump === undefined && hopHosts.some(({ name }) => name === host.name || name === alias)) return []
    const chain: Endpoint[] = []
    let isComplete = true
    for (const [index, hop] of hopHosts.entries()) {
      if (trail.includes(hop.name)) {
        throw new EndpointProblem(`jump hosts form a loop: ${printable([...trail, hop.name].join(' → '))}`)
      }
      // A later hop is reached through the one before it, whatever its own route would be.
      const endpoint = this.#endpoint(index === 0 ? hop : { ...hop, jump: [] }, trail)
      isComplete &&= endpoint !== undefined
      if (endpoint === undefined) continue
      const { proxyCommand: _, ...direct } = endpoint
      const isFirst = index === 0 && endpoint.jump.length === 0
      chain.push(...endpoint.jump, { ...(isFirst ? endpoint : direct), jump: [] })
    }
    return isComplete ? chain : undefined
  }

  #hopHost(hop: string): Host {
    const spec = parseHostSpec(hop)
    if (spec === undefined) throw new EndpointProblem(`${printable(hop)} is not a jump host`)
    const { host: name, ...login } = spec
    return { ...(this.#byName.get(hop) ?? this.#byName.get(name) ?? { name, number: 0 }), ...login }
  }
}

/**
 * Resolves hosts into endpoints, in their order, with one parallel round of `ssh -G` per hop.
 * @throws MusterError `configuration` with a line for each problem, the hosts that have it folded.
 */
export async function resolveEndpoints(
  inventory: Inventory,
  hosts: readonly Host[],
  options: EndpointOptions,
): Promise<readonly Endpoint[]> {
  return new EndpointResolver(inventory, options).resolve(hosts)
}
