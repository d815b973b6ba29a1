/**
 * Which algorithms the ssh2 transport offers. Measured: every choice below costs 2–4 ms of CPU a connection, while
 * group-exchange blocks the event loop for 1.5 s in JavaScript; it is offered only after all else was refused.
 */
import type { Algorithms } from 'ssh2'

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

const HOST_KEYS = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
] as const

const CIPHERS = [
  'aes128-gcm@openssh.com',
  'aes256-gcm@openssh.com',
  'chacha20-poly1305@openssh.com',
  'aes128-ctr',
  'aes256-ctr',
] as const

const MACS = [
  'hmac-sha2-256-etm@openssh.com',
  'hmac-sha2-512-etm@openssh.com',
  'hmac-sha2-256',
  'hmac-sha2-512',
] as const

/** `preferred`: host key algorithms to offer first; those that this transport does not know are left out. */
export function algorithmsFor(preferred: readonly string[], isLastResort: boolean): Algorithms {
  const known = HOST_KEYS.filter((name) => preferred.includes(name))
  const first = known.toSorted((a, b) => preferred.indexOf(a) - preferred.indexOf(b))
  return {
    kex: isLastResort ? [...LAST_RESORT_KEY_EXCHANGES] : [...KEY_EXCHANGES],
    serverHostKey: [...first, ...HOST_KEYS.filter((name) => !known.includes(name))],
    cipher: [...CIPHERS],
    hmac: [...MACS],
    compress: ['none'],
  }
}
