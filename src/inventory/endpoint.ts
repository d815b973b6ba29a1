/** Merges hosts.yaml and ssh_config into the endpoint of a host: pure, except that it checks which key files exist. */
import { defined } from '../base/defined.ts'
import { printable } from '../base/printable.ts'
import type { Endpoint, Host } from './host.ts'
import { isAddress, isUserName, matchesGlob } from './host-name.ts'
import { knownByAuthority, LEAST_RSA_BITS, type ReadAuthorities } from './known-hosts/parse.ts'
import { algorithmsOf } from './ssh-config/algorithms.ts'
import { authenticationsOf, needsOpenSsh, type ReadSmallFile } from './ssh-config/openssh-only.ts'
import {
  expandPath,
  expandTokens,
  isYes,
  type LocalUser,
  parseSeconds,
  type SshConfigQuestion,
  type SshConfigValues,
  settingOf,
  splitPaths,
  type TokenValues,
} from './ssh-config/source.ts'

/** What is wrong with the route to a host; many hosts may share it. */
export class EndpointProblem extends Error {}

export type EndpointSettings = {
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
export type Surroundings = EndpointSettings & {
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

export function createLocalEndpoint(host: Host, surroundings: Surroundings): Endpoint {
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
export function createEndpoint(
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
