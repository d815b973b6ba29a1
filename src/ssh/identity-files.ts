/** Private key files, read and decrypted once for all hosts (decrypting takes 0.2 s). Decrypted keys stay in memory, passphrases do not. */
import { readFile, stat } from 'node:fs/promises'
import type { ParsedKey } from 'ssh2'
import { getOrMake } from '../base/collections.ts'
import { fileReason } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Secret } from '../base/secret.ts'
import type { Answered } from './questions.ts'
import { BaseAgent, OpenSSHAgent, utils } from './ssh2/library.ts'

type AskPassphrase = (isRetry: boolean) => Promise<Answered<Secret>>

export type Identity = { readonly path: string } & (
  | { readonly kind: 'missing' }
  | { readonly kind: 'problem'; readonly reason: string; readonly hint: string }
  /** Only the public half is here: the private one may be in the agent. */
  | { readonly kind: 'public'; readonly publicKey: ParsedKey }
  | { readonly kind: 'plain'; readonly publicKey: ParsedKey; readonly privateKey: ParsedKey }
  /** `publicKey` undefined: an old format that hides even that. */
  | { readonly kind: 'encrypted'; readonly publicKey: ParsedKey | undefined }
)

type Unlocked =
  | { readonly kind: 'key'; readonly privateKey: ParsedKey }
  | { readonly kind: 'declined' | 'nobody' | 'wrong' }

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
      if (code !== 'ENOENT' && code !== 'ENOTDIR') return problem(path, `cannot be read: ${fileReason(error)}`)
      const publicKey = await readPublicHalf(path)
      return publicKey === undefined ? { path, kind: 'missing' } : { path, kind: 'public', publicKey }
    }
  }

  /** The private key of an encrypted file. Hosts that ask at the same time share one question and one decryption. */
  async unlock(path: string, ask: AskPassphrase, signal: AbortSignal): Promise<Unlocked> {
    for (;;) {
      const privateKey = this.#unlocked.get(path)
      if (privateKey !== undefined) return { kind: 'key', privateKey }
      const unlocked = await getOrMake(this.#unlocking, path, () =>
        this.#decrypt(path, ask, signal).finally(() => this.#unlocking.delete(path)),
      )
      if (unlocked.kind !== 'gone') return unlocked
      // The host that asked went away: the question is asked again for one that still waits.
      if (signal.aborted) return { kind: 'declined' }
    }
  }

  async #decrypt(path: string, ask: AskPassphrase, signal: AbortSignal): Promise<Unlocked | Gone> {
    const text = await readFile(path, 'utf8')
    for (let attempt = 0; attempt < MAX_PASSPHRASE_TRIES; attempt += 1) {
      const passphrase = await ask(attempt > 0)
      if (passphrase === 'nobody') return { kind: 'nobody' }
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

export type Signer = (data: Buffer, hash: string | undefined) => Promise<Buffer>

export type AgentKey = {
  readonly publicKey: ParsedKey
  readonly comment: string
  readonly sign: Signer
}

/** Keys in the agent's order; rejects when it cannot be reached. Certificates and hardware keys are left out. */
export async function listAgentKeys(socket: string): Promise<readonly AgentKey[]> {
  const agent = new OpenSSHAgent(socket)
  const keys = await new Promise<readonly ParsedKey[]>((resolve, reject) => {
    agent.getIdentities((error, found) => {
      if (error) reject(error)
      else resolve((found ?? []) as unknown as readonly ParsedKey[])
    })
  })
  return keys.map((publicKey) => ({
    publicKey,
    comment: publicKey.comment,
    sign: (data, hash) =>
      new Promise((resolve, reject) => {
        const options = hash === undefined ? {} : { hash: hash as 'sha256' | 'sha512' }
        agent.sign(publicKey, data, options, (error, signature) => {
          if (error || signature === undefined) reject(error ?? new Error('the agent gave no signature'))
          else resolve(signature)
        })
      }),
  }))
}

/** One key as an agent of its own: so that ssh2 offers it alone, and waits for its signature however long that takes. */
export class SingleKeyAgent extends BaseAgent {
  readonly #publicKey: ParsedKey
  readonly #sign: Signer

  constructor(publicKey: ParsedKey, sign: Signer) {
    super()
    this.#publicKey = publicKey
    this.#sign = sign
  }

  override getIdentities(callback: (error: Error | null, keys?: ParsedKey[]) => void): void {
    callback(null, [this.#publicKey])
  }

  override sign(_key: unknown, data: Buffer, ...rest: unknown[]): void {
    const callback = rest.at(-1) as (error: Error | null, signature?: Buffer) => void
    const options = (rest.length > 1 ? rest[0] : undefined) as { hash?: string } | undefined
    this.#sign(data, options?.hash).then(
      (signature) => callback(null, signature),
      (error: Error) => callback(error),
    )
  }
}

/** What the order needs to know of a key file. `publicKey` is any text that equal keys share. */
export type FileKey = {
  readonly path: string
  readonly isEncrypted: boolean
  /** Whether the file has the private half; without it only the agent can use the key. */
  readonly isPrivate: boolean
  /** Undefined: an encrypted file in an old format that does not show it. */
  readonly publicKey: string | undefined
}

type AgentKeyName = { readonly publicKey: string; readonly comment: string }

export type KeyOffer =
  | { readonly from: 'agent'; readonly publicKey: string; readonly label: string }
  | { readonly from: 'file'; readonly path: string; readonly label: string }

/** As ssh (sshconnect2.c), but files that need no question come before the agent's other keys: sshd takes only MaxAuthTries keys. */
export function orderKeys(
  files: readonly FileKey[],
  agentKeys: readonly AgentKeyName[],
  identitiesOnly: boolean,
): readonly KeyOffer[] {
  const inAgent = new Set(agentKeys.map(({ publicKey }) => publicKey))
  const named = new Set(files.map(({ publicKey }) => publicKey))
  const fromFile = (file: FileKey): KeyOffer => ({ from: 'file', path: file.path, label: file.path })
  const isInAgent = (file: FileKey) => file.publicKey !== undefined && inAgent.has(file.publicKey)
  const ready = files.flatMap((file): KeyOffer[] => {
    if (file.publicKey !== undefined && inAgent.has(file.publicKey)) {
      return [{ from: 'agent', publicKey: file.publicKey, label: file.path }]
    }
    return file.isPrivate && !file.isEncrypted ? [fromFile(file)] : []
  })
  const others = identitiesOnly
    ? []
    : agentKeys
        .filter(({ publicKey }) => !named.has(publicKey))
        .map(({ publicKey, comment }): KeyOffer => ({ from: 'agent', publicKey, label: `agent key ${comment}`.trim() }))
  const locked = files.filter((file) => file.isPrivate && file.isEncrypted && !isInAgent(file))
  const shown = locked.filter(({ publicKey }) => publicKey !== undefined)
  const hidden = locked.filter(({ publicKey }) => publicKey === undefined)
  return unique([...ready, ...others, ...shown.map(fromFile), ...hidden.map(fromFile)])
}

function unique(offers: readonly KeyOffer[]): readonly KeyOffer[] {
  const seen = new Set<string>()
  return offers.filter((offer) => {
    const name = offer.from === 'agent' ? `agent ${offer.publicKey}` : `file ${offer.path}`
    if (seen.has(name)) return false
    seen.add(name)
    return true
  })
}

/** The next method: the first of the wanted ones that the server accepts and that still has something to try. */
export function nextMethod(
  wanted: readonly string[],
  accepted: readonly string[],
  isExhausted: (method: string) => boolean,
): string | undefined {
  return wanted.find((method) => accepted.includes(method) && !isExhausted(method))
}
