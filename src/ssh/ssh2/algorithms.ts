/** What the ssh2 transport offers. Group exchange blocks the event loop for 1.5 s: it comes last, unless ssh_config puts it first. */
import type { Algorithms as Ssh2Algorithms } from 'ssh2'
import { type AlgorithmChoice, type Algorithms, HOST_KEYS, MACS } from '../../inventory/ssh-config/algorithms.ts'

const KEY_EXCHANGES = [
  'curve25519-sha256',
  'curve25519-sha256@libssh.org',
  'ecdh-sha2-nistp256',
  'diffie-hellman-group14-sha256',
  'diffie-hellman-group16-sha512',
] as const

const LAST_RESORT_KEY_EXCHANGES = [
  'ecdh-sha2-nistp384',
  'ecdh-sha2-nistp521',
  'diffie-hellman-group18-sha512',
  'diffie-hellman-group-exchange-sha256',
] as const

const CIPHERS = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'chacha20-poly1305@openssh.com',
  'aes128-ctr',
  'aes256-ctr',
] as const

/** `known`: host key algorithms of keys in known_hosts. As with ssh they come first, unless ssh_config orders the list. */
export function algorithmsFor(
  allowed: Algorithms | undefined,
  known: readonly string[],
  isLastResort: boolean,
): Ssh2Algorithms {
  const hostKeys = allowed?.hostKeys?.names ?? HOST_KEYS
  const isKnown = (name: string) => allowed?.hostKeys?.isOrdered !== true && known.includes(name)
  const serverHostKey = [...hostKeys.filter(isKnown), ...hostKeys.filter((name) => !isKnown(name))]
  return {
    kex: keyExchanges(allowed?.keyExchanges, isLastResort),
    serverHostKey,
    cipher: permitted(CIPHERS, allowed?.ciphers),
    hmac: permitted(MACS, allowed?.macs),
    compress: ['none'],
  } as Ssh2Algorithms
}

function keyExchanges(choice: AlgorithmChoice | undefined, isLastResort: boolean): readonly string[] {
  if (choice?.isOrdered) return choice.names
  const usual = permitted(KEY_EXCHANGES, choice)
  const last = permitted(LAST_RESORT_KEY_EXCHANGES, choice)
  return (isLastResort && last.length > 0) || usual.length === 0 ? last : usual
}

/** In our order: all are safe, and it is the order of their costs. */
function permitted(names: readonly string[], choice: AlgorithmChoice | undefined): readonly string[] {
  return choice === undefined
    ? [...names]
    : choice.isOrdered
      ? choice.names
      : names.filter((name) => choice.names.includes(name))
}
