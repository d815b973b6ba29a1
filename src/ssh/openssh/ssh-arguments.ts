/** The arguments of the system's ssh for an endpoint. They win over the user's configuration, which otherwise applies. */
import { shellQuote } from '../../base/shell-quote.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'

/** What the master prints once it is authenticated and its control socket is there. */
export function loginMarker(token: string): string {
  return `muster-login-${token}`
}

/** The connection itself: no session of its own, everything else goes through its control socket. */
export function masterArguments(
  endpoint: Endpoint,
  controlPath: string,
  token: string,
  sshFile = 'ssh',
): readonly string[] {
  return [
    '-N',
    '-n',
    ...optionsOf({ ControlMaster: 'yes', ControlPath: controlPath, ControlPersist: 'no', RequestTTY: 'no' }),
    ...optionsOf({ PermitLocalCommand: 'yes', LocalCommand: `echo ${loginMarker(token)}`, RemoteCommand: 'none' }),
    // The phases of the login are read from the messages of this level.
    ...optionsOf({ LogLevel: 'DEBUG1', BatchMode: 'no', ForkAfterAuthentication: 'no' }),
    // Forwards of the user's configuration belong to the user's own ssh: a second one could not listen.
    ...option('ClearAllForwardings', 'yes'),
    ...endpointOptions(endpoint, controlPath, sshFile),
    '--',
    endpoint.alias ?? endpoint.host,
  ]
}

/** What the ssh of the jump host at `index` of `endpoint.jump` logs, so that its words are never taken for the target's. */
export function jumpLogFile(controlPath: string, index: number): string {
  return `${controlPath}-jump${index}`
}

/** A client of the control socket. The proxy command, which it runs only without a master, makes it fail instead of connecting. */
export function clientArguments(
  endpoint: Endpoint,
  controlPath: string,
  options: readonly string[],
  command?: string,
): readonly string[] {
  return [
    ...optionsOf({ ...NO_COMMANDS, ControlPath: controlPath, ProxyCommand: 'false', BatchMode: 'yes' }),
    ...optionsOf({ ClearAllForwardings: 'yes', EscapeChar: 'none' }),
    // Of the master and its client, both have to want it.
    ...option('ForwardAgent', yesNo(endpoint.forwardAgent)),
    ...options,
    '--',
    endpoint.alias ?? endpoint.host,
    ...(command === undefined ? [] : [command]),
  ]
}

/** Makes the master of the control socket forward `FROM:TO`, or end that. Forwards of the user's configuration stay out. */
export function forwardArguments(
  endpoint: Endpoint,
  controlPath: string,
  command: 'forward' | 'cancel',
  way: '-L' | '-R',
  forward: string,
): readonly string[] {
  const options = optionsOf({ ...NO_COMMANDS, ControlPath: controlPath, BatchMode: 'yes' })
  return ['-F', 'none', ...options, '-O', command, way, forward, '--', endpoint.alias ?? endpoint.host]
}

export function option(name: string, value: string): readonly string[] {
  return ['-o', `${name}=${value}`]
}

const NO_COMMANDS = { ControlMaster: 'no', PermitLocalCommand: 'no', RemoteCommand: 'none' }

function endpointOptions(endpoint: Endpoint, controlPath: string, sshFile: string): readonly string[] {
  const { knownHostsFiles, globalKnownHostsFiles, authentications } = endpoint
  const files = (all: readonly string[]) => (all.length === 0 ? undefined : all.map(quoted).join(' '))
  return [
    // Else the user's own and the system's.
    ...(endpoint.sshConfigFile === undefined ? [] : ['-F', endpoint.sshConfigFile]),
    ...optionsOf({ HostName: endpoint.address, Port: String(endpoint.port), User: endpoint.user }),
    ...endpoint.identityFiles.flatMap((file) => option('IdentityFile', quoted(file))),
    ...optionsOf({
      IdentitiesOnly: yesNo(endpoint.identitiesOnly),
      IdentityAgent: endpoint.agentSocket === undefined ? 'none' : quoted(endpoint.agentSocket),
      ForwardAgent: yesNo(endpoint.forwardAgent),
      // Its tokens are expanded already.
      ProxyCommand: (jumpCommand(endpoint, controlPath, sshFile) ?? endpoint.proxyCommand)?.replaceAll('%', '%%'),
      UserKnownHostsFile: files(knownHostsFiles),
      GlobalKnownHostsFile: files(globalKnownHostsFiles),
      HostKeyAlias: endpoint.hostKeyAlias,
      StrictHostKeyChecking: endpoint.strictHostKeyChecking,
      HashKnownHosts: yesNo(endpoint.hashKnownHosts),
      ConnectTimeout: String(Math.max(1, Math.ceil(connectLimits(endpoint).stepMs / 1000))),
      ServerAliveInterval: String(Math.ceil(endpoint.keepAliveIntervalMs / 1000)),
      ServerAliveCountMax: String(Math.max(1, endpoint.keepAliveMaxMissed)),
      PreferredAuthentications: authentications.length === 0 ? undefined : preferredAuthentications(authentications),
    }),
  ]
}

function optionsOf(values: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : option(name, value)))
}

/** GSSAPI and host-based logins are why an endpoint is here: they are not taken away. */
function preferredAuthentications(authentications: readonly string[]): string {
  const others = ['gssapi-with-mic', 'hostbased'].filter((method) => !authentications.includes(method))
  return [...others, ...authentications].join(',')
}

/**
 * Through the last jump host, and those before it. Not ProxyJump: ssh would not pass on keys and known_hosts of the inventory.
 * Its log is a file of its own, without the banner, which ssh prints on stderr.
 */
function jumpCommand(endpoint: Endpoint, controlPath: string, sshFile: string): string | undefined {
  const last = endpoint.jump.at(-1)
  if (last === undefined) return undefined
  const jump = { ...last, jump: endpoint.jump.slice(0, -1) }
  const args = [
    ...['-E', jumpLogFile(controlPath, jump.jump.length), ...option('LogLevel', 'INFO')],
    ...['-W', socketAddress(endpoint)],
    ...optionsOf({ ...NO_COMMANDS, ControlPath: 'none', BatchMode: 'no' }),
    ...endpointOptions(jump, controlPath, sshFile),
    '--',
    jump.alias ?? jump.host,
  ]
  // Not every login shell knows `2>`.
  return ['sh', '-c', `exec ${[sshFile, ...args].map(shellQuote).join(' ')} 2>/dev/null`].map(shellQuote).join(' ')
}

export function socketAddress({ address, port }: { readonly address: string; readonly port: number }): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`
}

function yesNo(value: boolean): string {
  return value ? 'yes' : 'no'
}

/** A file name in an option: quoted against spaces, tokens and environment references made literal. */
function quoted(file: string): string {
  return `"${file.replaceAll('%', '%%').replaceAll('"', '\\"')}"`
}
