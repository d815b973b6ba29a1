/** Settings of ssh_config that only the system's ssh supports. */
import { readBoundedSync } from '../../base/read-bounded.ts'
import { lacksAlgorithms } from './algorithms.ts'
import { isYes, type SshConfigValues, settingOf } from './source.ts'

const BUILT_IN_METHODS: readonly string[] = ['publickey', 'keyboard-interactive', 'password']
const MAX_KEY_FILE_BYTES = 64 * 1024

/** Reads a small file; undefined if it is missing or not readable. */
export type ReadSmallFile = (path: string) => Buffer | undefined

export const readSmallFile: ReadSmallFile = (path) => {
  try {
    return readBoundedSync(path, MAX_KEY_FILE_BYTES)
  } catch {
    return undefined
  }
}

/** A FIDO security key: its public half says so, beside the file or inside it (PROTOCOL.key, PROTOCOL.u2f). */
function isSecurityKey(path: string, read: ReadSmallFile): boolean {
  const publicKey = read(`${path}.pub`)?.toString('latin1')
  if (publicKey !== undefined) return /^sk-(?:ssh|ecdsa)-/.test(publicKey.trimStart())
  const text = read(path)?.toString('latin1') ?? ''
  const body = /-----BEGIN OPENSSH PRIVATE KEY-----([\sA-Za-z0-9+/=]+)-----END/.exec(text)?.[1] ?? ''
  return /sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com/.test(Buffer.from(body, 'base64').toString('latin1'))
}

/** The authentications of `publickey`, `keyboard-interactive` and `password` that may be tried, in order. */
export function authenticationsOf(values: SshConfigValues): readonly string[] {
  const preferred = settingOf(values, 'preferredauthentications')?.split(',') ?? BUILT_IN_METHODS
  const isInteractive = !isYes(values, 'batchmode', false)
  const isAllowed: Readonly<Record<string, boolean>> = {
    publickey: !['no', 'false'].includes(settingOf(values, 'pubkeyauthentication') ?? 'yes'),
    'keyboard-interactive': isInteractive && isYes(values, 'kbdinteractiveauthentication', true),
    password: isInteractive && isYes(values, 'passwordauthentication', true),
  }
  return preferred.map((method) => method.trim()).filter((method) => isAllowed[method] ?? false)
}

/** Why this host needs the system's ssh, as a clause, or undefined. `identityFiles` are those that exist. */
export function needsOpenSsh(
  values: SshConfigValues,
  identityFiles: readonly string[],
  certificateFiles: readonly string[],
  read: ReadSmallFile,
): string | undefined {
  const set = (keyword: string): string => settingOf(values, keyword) ?? ''
  if (set('pkcs11provider')) return `its key is on a token (PKCS11Provider ${set('pkcs11provider')})`
  if (set('knownhostscommand')) return 'its host keys come from a program (KnownHostsCommand)'
  if (set('revokedhostkeys')) return 'it has a list of revoked keys (RevokedHostKeys)'
  if (isYes(values, 'proxyusefdpass', false)) return 'its proxy hands over a socket (ProxyUseFdpass)'
  if (!['', 'any'].includes(set('addressfamily')))
    return `ssh_config restricts its address family (AddressFamily ${set('addressfamily')})`
  if (set('bindaddress')) return `ssh_config sets the local address for it (BindAddress ${set('bindaddress')})`
  if (set('bindinterface')) return `ssh_config sets the local interface for it (BindInterface ${set('bindinterface')})`
  if (/[/$]/.test(set('forwardagent'))) return 'it forwards a specific agent socket (ForwardAgent)'
  if (authenticationsOf(values).length === 0)
    return `it allows only ${set('preferredauthentications') || 'methods'} that the built-in transport does not know`
  const algorithms = lacksAlgorithms(values)
  if (algorithms !== undefined) return algorithms
  const certificates = [...certificateFiles, ...identityFiles.map((path) => `${path}-cert.pub`)]
  const certificate = certificates.find((path) => read(path))
  if (certificate !== undefined) return `it logs in with a certificate (${certificate})`
  const areOnTokens = identityFiles.length > 0 && identityFiles.every((path) => isSecurityKey(path, read))
  return areOnTokens ? `its key is a security key (${identityFiles.join(', ')})` : undefined
}
