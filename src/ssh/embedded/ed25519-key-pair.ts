/** Fresh Ed25519 keys as OpenSSH files. Of those that ssh2 makes itself, one of 300 is broken: it loses a leading zero. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'

export type KeyPair = {
  /** An unencrypted OpenSSH private key file (openssh-portable, PROTOCOL.key). */
  readonly privateKeyText: string
  /** `ssh-ed25519 AAAA…`, as in authorized_keys and, after a name, in known_hosts. */
  readonly publicKeyLine: string
}

const ALGORITHM = 'ssh-ed25519'
const CIPHER_BLOCK = 8

export function generateEd25519KeyPair(comment = ''): KeyPair {
  const { privateKey } = generateKeyPairSync('ed25519')
  const { x, d } = privateKey.export({ format: 'jwk' })
  const point = Buffer.from(x ?? '', 'base64url')
  const seed = Buffer.from(d ?? '', 'base64url')
  const publicKey = Buffer.concat([field(ALGORITHM), field(point)])
  const check = randomBytes(4)
  const secretPart = padded(
    Buffer.concat([check, check, publicKey, field(Buffer.concat([seed, point])), field(comment)]),
  )
  const file = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    field('none'), // cipher
    field('none'), // key derivation
    field(''), // its options
    uint32(1), // keys
    field(publicKey),
    field(secretPart),
  ])
  const lines = file.toString('base64').match(/.{1,70}/g) ?? []
  return {
    privateKeyText: ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join(
      '\n',
    ),
    publicKeyLine: `${ALGORITHM} ${publicKey.toString('base64')}`,
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function field(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content)
  return Buffer.concat([uint32(bytes.length), bytes])
}

/** Filled up to the cipher's block with 1, 2, 3, … */
function padded(bytes: Buffer): Buffer {
  const missing = (CIPHER_BLOCK - (bytes.length % CIPHER_BLOCK)) % CIPHER_BLOCK
  return Buffer.concat([bytes, Buffer.from(Array.from({ length: missing }, (_, index) => index + 1))])
}
