/** Private key files, read and decrypted once for all hosts (decrypting takes 0.2 s). Decrypted keys stay in memory, passphrases do not. */
import { readFile, stat } from 'node:fs/promises'
import type { ParsedKey } from 'ssh2'
import { messageOf } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Secret } from '../base/secret.ts'
import { utils } from './ssh2/library.ts'

/** Asks for the passphrase; undefined: declined. */
export type AskPassphrase = (isRetry: boolean) => Promise<Secret | undefined>

export type Identity = { readonly path: string } & (
  | { readonly kind: 'missing' }
  | { readonly kind: 'problem'; readonly reason: string; readonly hint: string }
  /** Only the public half is here: the private one may be in the agent. */
  | { readonly kind: 'public'; readonly publicKey: ParsedKey }
  | { readonly kind: 'plain'; readonly publicKey: ParsedKey; readonly privateKey: ParsedKey }
  /** `publicKey` undefined: an old format that hides even that. */
  | { readonly kind: 'encrypted'; readonly publicKey: ParsedKey | undefined }
)

export type Unlocked =
  | { readonly kind: 'key'; readonly privateKey: ParsedKey }
  | { readonly kind: 'declined' }
  | { readonly kind: 'wrong' }

type Gone = { readonly kind: 'gone' }

const MAX_PASSPHRASE_TRIES = 3
const OPENSSH_BEGIN = '-----BEGIN OPENSSH PRIVATE KEY-----'
const OPENSSH_MAGIC = 'openssh-key-v1\0'

type Cached = { readonly version: string; readonly identity: Promise<Identity> }

export class IdentityFiles {
  readonly #identities = new Map<string, Cached>()
  readonly #unlocked = new Map<string, ParsedKey>()
  readonly #unlocking = new Map<string, Promise<Unlocked | Gone>>()

  async load(path: string): Promise<Identity> {
    try {
      const { mtimeMs, ctimeMs, size, ino } = await stat(path)
      const version = `${mtimeMs} ${ctimeMs} ${size} ${ino}`
      const cached = this.#identities.get(path)
      if (cached?.version === version) return await cached.identity
      this.#unlocked.delete(path)
      const identity = readIdentity(path)
      this.#identities.set(path, { version, identity })
      return await identity
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'ENOTDIR') return problem(path, `cannot be read: ${messageOf(error)}`)
      const publicKey = await readPublicHalf(path)
      return publicKey === undefined ? { path, kind: 'missing' } : { path, kind: 'public', publicKey }
    }
  }

  /** The private key of an encrypted file. Hosts that ask at the same time share one question and one decryption. */
  async unlock(path: string, ask: AskPassphrase, signal: AbortSignal): Promise<Unlocked> {
    for (;;) {
      const privateKey = this.#unlocked.get(path)
      if (privateKey !== undefined) return { kind: 'key', privateKey }
      const running = this.#unlocking.get(path) ?? this.#start(path, ask, signal)
      const unlocked = await running
      if (unlocked.kind !== 'gone') return unlocked
      // The host that asked went away: the question is asked again for one that still waits.
      if (signal.aborted) return { kind: 'declined' }
    }
  }

  #start(path: string, ask: AskPassphrase, signal: AbortSignal): Promise<Unlocked | Gone> {
    const running = this.#decrypt(path, ask, signal).finally(() => this.#unlocking.delete(path))
    this.#unlocking.set(path, running)
    return running
  }

  async #decrypt(path: string, ask: AskPassphrase, signal: AbortSignal): Promise<Unlocked | Gone> {
    const text = await readFile(path, 'utf8')
    for (let attempt = 0; attempt < MAX_PASSPHRASE_TRIES; attempt += 1) {
      const passphrase = await ask(attempt > 0)
      // An empty one means `not this key`, as with ssh.
      if (passphrase === undefined || passphrase.reveal() === '') return { kind: signal.aborted ? 'gone' : 'declined' }
      const key = parse(text, passphrase.reveal())
      if (key instanceof Error) continue
      this.#unlocked.set(path, key)
      return { kind: 'key', privateKey: key }
    }
    return { kind: 'wrong' }
  }
}

async function readIdentity(path: string): Promise<Identity> {
  const info = await stat(path)
  if (!info.isFile()) return problem(path, 'is not a file')
  const text = await readFile(path, 'utf8')
  const key = parse(text)
  if (!(key instanceof Error) && !key.isPrivateKey()) return { path, kind: 'public', publicKey: key }
  // The rule of sshkey_perm_ok (authfile.c): only the owner's own files are held to it.
  if (info.uid === process.getuid?.() && (info.mode & 0o077) !== 0) {
    const mode = (info.mode & 0o777).toString(8).padStart(4, '0')
    return problem(
      path,
      `is accessible to others (mode ${mode}) and therefore not used`,
      `chmod 600 ${printable(path)}`,
    )
  }
  if (!(key instanceof Error)) return { path, kind: 'plain', publicKey: key, privateKey: key }
  if (/passphrase/i.test(key.message)) {
    return { path, kind: 'encrypted', publicKey: publicKeyInside(text) ?? (await readPublicHalf(path)) }
  }
  const hasKey = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text)
  return problem(path, hasKey ? `cannot be used: ${printable(key.message)}` : 'is not a private key')
}

/** A file that lacks its private half still names a key of the agent. */
async function readPublicHalf(path: string): Promise<ParsedKey | undefined> {
  try {
    const key = parse(await readFile(`${path}.pub`, 'utf8'))
    return key instanceof Error ? undefined : key
  } catch {
    return undefined
  }
}

/** The public half that the openssh-key-v1 format (PROTOCOL.key) keeps in the clear. */
function publicKeyInside(text: string): ParsedKey | undefined {
  const begin = text.indexOf(OPENSSH_BEGIN)
  const end = text.indexOf('-----END', begin)
  if (begin < 0 || end < 0) return undefined
  const bytes = Buffer.from(text.slice(begin + OPENSSH_BEGIN.length, end), 'base64')
  if (bytes.subarray(0, OPENSSH_MAGIC.length).toString('latin1') !== OPENSSH_MAGIC) return undefined
  let position = OPENSSH_MAGIC.length
  const readString = (): Buffer => {
    const length = bytes.readUInt32BE(position)
    position += 4 + length
    return bytes.subarray(position - length, position)
  }
  try {
    for (let field = 0; field < 3; field += 1) readString() // cipher, key derivation, its options
    position += 4 // number of keys
    const key = utils.parseKey(readString())
    return key instanceof Error ? undefined : key
  } catch {
    return undefined
  }
}

function parse(text: string, passphrase?: string): ParsedKey | Error {
  try {
    const key: ParsedKey | Error | ParsedKey[] = utils.parseKey(text, passphrase)
    const first = Array.isArray(key) ? key[0] : key
    return first ?? new Error('the file holds no key')
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

/** Whether a certificate lies next to the key, which ssh would offer first. */
export function hasCertificate(path: string): Promise<boolean> {
  return stat(`${path}-cert.pub`).then(
    () => true,
    () => false,
  )
}

function problem(path: string, reason: string, hint?: string): Identity {
  return { path, kind: 'problem', reason, hint: hint ?? `Fix or remove ${printable(path)}.` }
}
