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
    ...option('ControlMaster', 'yes'),
    ...option('ControlPath', controlPath),
    ...option('ControlPersist', 'no'),
    ...option('PermitLocalCommand', 'yes'),
    ...option('LocalCommand', `echo ${loginMarker(token)}`),
    ...option('RemoteCommand', 'none'),
    ...option('RequestTTY', 'no'),
    // The phases of the login are read from the messages of this level.
    ...option('LogLevel', 'DEBUG1'),
    ...option('BatchMode', 'no'),
    ...option('ForkAfterAuthentication', 'no'),
    // Forwards of the user's configuration belong to the user's own ssh: a second one could not listen.
    ...option('ClearAllForwardings', 'yes'),
    ...endpointOptions(endpoint, sshFile),
    '--',
    endpoint.alias ?? endpoint.host,
  ]
}

/** A client of the control socket. The proxy command, which it runs only without a master, makes it fail instead of connecting. */
export function clientArguments(
  endpoint: Endpoint,
  controlPath: string,
  options: readonly string[],
  command?: string,
): readonly string[] {
  return [
    ...option('ControlMaster', 'no'),
    ...option('ControlPath', controlPath),
    ...option('ProxyCommand', 'false'),
    ...option('BatchMode', 'yes'),
    ...option('PermitLocalCommand', 'no'),
    ...option('RemoteCommand', 'none'),
    ...option('ClearAllForwardings', 'yes'),
    ...option('EscapeChar', 'none'),
    // Of the master and its client, both have to want it.
    ...option('ForwardAgent', yesNo(endpoint.forwardAgent)),
    ...options,
    '--',
    endpoint.alias ?? endpoint.host,
    ...(command === undefined ? [] : [command]),
  ]
}

export function option(name: string, value: string): readonly string[] {
  return ['-o', `${name}=${value}`]
}

function endpointOptions(endpoint: Endpoint, sshFile: string): readonly string[] {
  // Else the user's own and the system's.
  const options: string[] = endpoint.sshConfigFile === undefined ? [] : ['-F', endpoint.sshConfigFile]
  const set = (name: string, value: string | undefined) => {
    if (value !== undefined) options.push(...option(name, value))
  }
  set('HostName', endpoint.address)
  set('Port', String(endpoint.port))
  set('User', endpoint.user)
  for (const file of endpoint.identityFiles) set('IdentityFile', quoted(file))
  set('IdentitiesOnly', yesNo(endpoint.identitiesOnly))
  set('IdentityAgent', endpoint.agentSocket === undefined ? 'none' : quoted(endpoint.agentSocket))
  set('ForwardAgent', yesNo(endpoint.forwardAgent))
  // Its tokens are expanded already.
  set('ProxyCommand', (jumpCommand(endpoint, sshFile) ?? endpoint.proxyCommand)?.replaceAll('%', '%%'))
  if (endpoint.knownHostsFiles.length > 0) set('UserKnownHostsFile', endpoint.knownHostsFiles.map(quoted).join(' '))
  if (endpoint.globalKnownHostsFiles.length > 0) {
    set('GlobalKnownHostsFile', endpoint.globalKnownHostsFiles.map(quoted).join(' '))
  }
  set('HostKeyAlias', endpoint.hostKeyAlias)
  set('StrictHostKeyChecking', endpoint.strictHostKeyChecking)
  set('HashKnownHosts', yesNo(endpoint.hashKnownHosts))
  set('ConnectTimeout', String(Math.max(1, Math.ceil(connectLimits(endpoint).stepMs / 1000))))
  set('ServerAliveInterval', String(Math.ceil(endpoint.keepAliveIntervalMs / 1000)))
  set('ServerAliveCountMax', String(Math.max(1, endpoint.keepAliveMaxMissed)))
  if (endpoint.authentications.length > 0) {
    set('PreferredAuthentications', preferredAuthentications(endpoint.authentications))
  }
  return options
}

/** GSSAPI and host-based logins are why an endpoint is here: they are not taken away. */
function preferredAuthentications(authentications: readonly string[]): string {
  const others = ['gssapi-with-mic', 'hostbased'].filter((method) => !authentications.includes(method))
  return [...others, ...authentications].join(',')
}

/** Through the last jump host, and those before it. Not ProxyJump: ssh would not pass on keys and known_hosts of the inventory. */
function jumpCommand(endpoint: Endpoint, sshFile: string): string | undefined {
  const last = endpoint.jump.at(-1)
  if (last === undefined) return undefined
  const jump = { ...last, jump: endpoint.jump.slice(0, -1) }
  const args = [
    ...['-W', socketAddress(endpoint)],
    ...option('ControlMaster', 'no'),
    ...option('ControlPath', 'none'),
    ...option('BatchMode', 'no'),
    ...option('PermitLocalCommand', 'no'),
    ...option('RemoteCommand', 'none'),
    ...endpointOptions(jump, sshFile),
    '--',
    jump.alias ?? jump.host,
  ]
  return [sshFile, ...args].map(shellQuote).join(' ')
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
