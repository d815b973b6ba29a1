/** One host's login: what is offered after each refusal, what the user is asked, and why nothing was accepted. It keeps no secret. */
import type { AnyAuthMethod, ParsedKey, Prompt } from 'ssh2'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { tooShortRsa } from '../../inventory/known-hosts/parse.ts'
import {
  type AgentKey,
  type FileKey,
  hasCertificate,
  type Identity,
  type IdentityFiles,
  type KeyOffer,
  listAgentKeys,
  nextMethod,
  orderKeys,
  type Signer,
  SingleKeyAgent,
} from '../identity-files.ts'
import type { Answered, CredentialAsker } from '../questions.ts'
import { sshWords } from '../ssh-words.ts'
import type { ConnectFailure } from '../transport.ts'
import { describeEndpoint, remoteText } from './failures.ts'

/** NumberOfPasswordPrompts of ssh_config(5): over all methods, so that no account is locked. */
const MAX_SECRET_TRIES = 3
const INTERACTIVE = ['keyboard-interactive', 'password']
/** Rounds of one keyboard-interactive conversation: a server that asks on and on is not followed. */
const MAX_ROUNDS = 10
/** Questions of one round: a password, a code, a new password twice. */
const MAX_PROMPTS = 16

export type AuthContext = {
  readonly endpoint: Endpoint
  readonly credentials: CredentialAsker
  readonly identities: IdentityFiles
  readonly signal: AbortSignal
  /** Runs a question while the phase's time limit is stopped. */
  asking<T>(question: () => Promise<T>): Promise<T>
  /** The login is over in the middle of a method, so that nothing is sent any more: why, or undefined for `failure()`. */
  giveUp(error?: unknown): void
}

type PreparedOffer = { readonly label: string; readonly publicKey: ParsedKey; readonly sign: Signer }

export class AuthSequence {
  readonly #context: AuthContext
  readonly #refused: string[] = []
  readonly #notes: string[] = []
  #problem: { readonly reason: string; readonly hint: string } | undefined
  #offers: AsyncIterator<PreparedOffer> | undefined
  #areKeysExhausted = false
  #current: string | undefined
  #accepted: readonly string[] = []
  #secretTries = 0
  #wasAskedInteractively = false
  #isInteractiveExhausted = false
  #unanswered: 'declined' | 'nobody' | undefined
  #isPasswordExpired = false
  #roundsWithoutPrompts = 0

  constructor(context: AuthContext) {
    this.#context = context
  }

  /** The next thing to try, or false. `accepted`: what the server still takes, null before its first refusal. */
  async next(accepted: readonly string[] | null, isPartial: boolean): Promise<AnyAuthMethod | false> {
    const { endpoint } = this.#context
    if (accepted === null) return { type: 'none', username: endpoint.user }
    this.#accepted = accepted
    this.#noteRefusal(isPartial)
    for (;;) {
      if (this.isUnanswered) return false
      const method = nextMethod(endpoint.authentications, accepted, (name) => this.#isExhausted(name))
      if (method === undefined) return false
      const attempt = await this.#attempt(method)
      if (attempt !== undefined) return attempt
    }
  }

  /** The server asks for a new password, which only an interactive ssh can give. */
  notePasswordExpired(): void {
    this.#isPasswordExpired = true
  }

  /** What the server says without asking anything, printable; undefined: nothing, or it said too much. */
  wordsWithoutPrompts(name: string, instructions: string): string | undefined {
    this.#roundsWithoutPrompts += 1
    return (this.#roundsWithoutPrompts <= MAX_ROUNDS && instructionOf(name, instructions)) || undefined
  }

  /** Something went wrong with an offered key: for the failure's text. */
  note(text: string): void {
    this.#notes.push(remoteText(text))
  }

  /** A question was dismissed, or there is no user to ask: the login is over. */
  get isUnanswered(): boolean {
    return this.#unanswered !== undefined
  }

  async failure(): Promise<ConnectFailure> {
    const { endpoint } = this.#context
    const target = describeEndpoint(endpoint)
    const failed = (kind: ConnectFailure['kind'], reason: string, hint: string) =>
      ({ kind, phase: 'authentication', reason, hint }) as const
    if (this.#isPasswordExpired) {
      const hint = `Change it with: ssh ${sshWords(endpoint)}`
      return failed('authentication', `the password of ${target} has expired`, hint)
    }
    if (this.#unanswered === 'declined')
      return failed('declined', `the question for ${target} was dismissed`, 'Reconnect to be asked again.')
    const refused = this.#refused.length === 0 ? undefined : `refused: ${this.#refused.join(', ')}`
    const tried =
      this.#unanswered === 'nobody'
        ? [refused, 'it asks for a password, and there is no terminal to ask on'].filter(Boolean).join('; ')
        : (refused ?? 'no key or password to offer')
    const takes = this.#accepted.length === 0 ? '' : `; the server accepts ${remoteText(this.#accepted.join(', '))}`
    const notes = this.#notes.length === 0 ? '' : `; ${this.#notes.join('; ')}`
    const because = (first: string) => `cannot log in to ${target}: ${first}${tried}${takes}${notes}`
    if (this.#problem !== undefined)
      return failed('configuration', because(`${this.#problem.reason}; `), this.#problem.hint)
    return failed('authentication', because(''), await this.#hint())
  }

  async #hint(): Promise<string> {
    const { endpoint } = this.#context
    for (const path of endpoint.identityFiles) {
      if (await hasCertificate(path)) {
        return `Set \`transport: openssh\` for this host: ${printable(path)}-cert.pub is a certificate, which the built-in transport cannot offer.`
      }
    }
    const words = sshWords(endpoint)
    if (!this.#accepted.some((method) => endpoint.authentications.includes(method))) {
      return `Set \`transport: openssh\` if \`ssh ${words}\` can log in: this transport knows ${endpoint.authentications.join(', ')}.`
    }
    return `Check the user name, or install your key with: ssh-copy-id ${words}`
  }

  #isExhausted(method: string): boolean {
    if (method === 'publickey') return this.#areKeysExhausted
    if (method === 'keyboard-interactive' && this.#isInteractiveExhausted) return true
    return !INTERACTIVE.includes(method) || this.#secretTries >= MAX_SECRET_TRIES
  }

  #noteRefusal(isPartial: boolean): void {
    const current = this.#current
    this.#current = undefined
    if (current === undefined) return
    // A server that asks nothing will not ask the next time either.
    if (current === 'keyboard-interactive' && !this.#wasAskedInteractively) this.#isInteractiveExhausted = true
    if (isPartial) {
      this.#secretTries = 0
      return
    }
    if (!this.#refused.includes(current)) this.#refused.push(current)
  }

  async #attempt(method: string): Promise<AnyAuthMethod | undefined> {
    const { endpoint, credentials, signal } = this.#context
    const username = endpoint.user
    if (method === 'publickey') {
      this.#offers ??= this.#keyOffers()
      const offer = await this.#offers.next()
      if (offer.done === true) {
        this.#areKeysExhausted = true
        return undefined
      }
      this.#current = `key ${printable(offer.value.label)}`
      return { type: 'agent', username, agent: new SingleKeyAgent(offer.value.publicKey, offer.value.sign) }
    }
    if (method === 'password') {
      const isRetry = this.#secretTries > 0
      const secret = await this.#ask(() => credentials.password(endpoint, isRetry, signal))
      if (secret === undefined) return undefined
      this.#secretTries += 1
      this.#current = 'password'
      return { type: 'password', username, password: secret.reveal() }
    }
    this.#current = 'keyboard-interactive'
    this.#wasAskedInteractively = false
    return this.#keyboardInteractive()
  }

  /** Undefined: no answer, and the login is over. */
  #ask<T extends object>(question: () => Promise<Answered<T>>): Promise<T | undefined> {
    return this.#context.asking(async () => {
      const answer = await question()
      if (typeof answer === 'object') return answer
      this.#unanswered = answer ?? 'declined'
      return undefined
    })
  }

  /** RFC 4256: the server's questions to the user, and the answers back. */
  #keyboardInteractive(): AnyAuthMethod {
    const wasWrong = this.#secretTries > 0
    const asked = new Set<string>()
    let rounds = 0
    const answer = async (
      name: string,
      instructions: string,
      prompts: readonly Prompt[],
    ): Promise<string[] | undefined> => {
      this.#wasAskedInteractively = true
      rounds += 1
      const isOver = this.#secretTries >= MAX_SECRET_TRIES
      if (rounds > MAX_ROUNDS || prompts.length > MAX_PROMPTS || isOver) return []
      const texts = prompts.map(({ prompt, echo }) => ({ text: remoteText(prompt), isEchoed: echo === true }))
      // The same question again within one conversation means that the answer was wrong.
      const question = JSON.stringify(texts)
      const isRepeated = asked.has(question)
      if (isRepeated || rounds === 1) this.#secretTries += 1
      asked.add(question)
      const { endpoint, credentials, signal } = this.#context
      const secrets = await this.#ask(() =>
        credentials.keyboardInteractive(
          endpoint,
          instructionOf(name, instructions),
          texts,
          wasWrong || isRepeated,
          signal,
        ),
      )
      return secrets?.map((secret) => secret.reveal())
    }
    return {
      type: 'keyboard-interactive',
      username: this.#context.endpoint.user,
      prompt: (name, instructions, _language, prompts, finish) => {
        // An empty answer is an answer, too: a server could accept it.
        answer(name, instructions, prompts).then(
          (answers) => (answers === undefined ? this.#context.giveUp() : finish(answers)),
          (error: unknown) => this.#context.giveUp(error),
        )
      },
    }
  }

  async *#keyOffers(): AsyncGenerator<PreparedOffer, void, undefined> {
    const { endpoint, identities } = this.#context
    const [loaded, agentKeys] = await Promise.all([
      Promise.all(endpoint.identityFiles.map((path) => identities.load(path))),
      this.#agentKeys(),
    ])
    for (const identity of loaded) {
      if (identity.kind !== 'problem') continue
      this.#problem ??= { reason: `${printable(identity.path)} ${identity.reason}`, hint: identity.hint }
    }
    const files = loaded.flatMap(asFileKey)
    const names = agentKeys.map((key) => ({ publicKey: nameOf(key.publicKey), comment: key.comment }))
    for (const offer of orderKeys(files, names, endpoint.identitiesOnly)) {
      const prepared = await this.#prepare(offer, loaded, agentKeys)
      if (prepared === undefined) continue
      const isTooShort = tooShortRsa(prepared.publicKey.getPublicSSH(), endpoint.requiredRsaBits)
      if (isTooShort === undefined) yield prepared
      else this.note(`${prepared.label} ${isTooShort}`)
    }
  }

  async #agentKeys(): Promise<readonly AgentKey[]> {
    const { agentSocket } = this.#context.endpoint
    if (agentSocket === undefined) return []
    try {
      return await listAgentKeys(agentSocket)
    } catch (error) {
      this.note(`the agent at ${agentSocket} does not answer: ${messageOf(error)}`)
      return []
    }
  }

  async #prepare(
    offer: KeyOffer,
    identities: readonly Identity[],
    agentKeys: readonly AgentKey[],
  ): Promise<PreparedOffer | undefined> {
    const { label } = offer
    if (offer.from === 'agent') {
      const key = agentKeys.find(({ publicKey }) => nameOf(publicKey) === offer.publicKey)
      return key === undefined ? undefined : { label, publicKey: key.publicKey, sign: key.sign }
    }
    const identity = identities.find(({ path }) => path === offer.path)
    if (identity?.kind === 'plain') {
      const { privateKey } = identity
      return { label, publicKey: privateKey, sign: async (data, hash) => signWith(privateKey, data, hash) }
    }
    if (identity?.kind !== 'encrypted') return undefined
    // Like ssh: the passphrase is asked for only once the server said that it would take the key.
    const publicKey = identity.publicKey ?? (await this.#unlock(identity.path).catch(() => undefined))
    if (publicKey === undefined) return undefined
    return { label, publicKey, sign: async (data, hash) => signWith(await this.#unlock(identity.path), data, hash) }
  }

  async #unlock(path: string): Promise<ParsedKey> {
    const { endpoint, credentials, identities, signal } = this.#context
    const unlocked = await this.#context.asking(() =>
      identities.unlock(path, (isRetry) => credentials.passphrase(path, endpoint, isRetry, signal), signal),
    )
    if (unlocked.kind === 'key') return unlocked.privateKey
    const reason = NOT_UNLOCKED[unlocked.kind]
    this.note(`${path}: ${reason}`)
    throw new Error(reason)
  }
}

const instructionOf = (...words: readonly string[]): string =>
  words
    .map(remoteText)
    .filter((text) => text !== '')
    .join(': ')

const NOT_UNLOCKED = {
  declined: 'no passphrase was given',
  nobody: 'there is no terminal to ask for its passphrase on',
  wrong: 'the passphrase was wrong',
}

function asFileKey(identity: Identity): FileKey[] {
  if (identity.kind === 'missing' || identity.kind === 'problem') return []
  const { path, kind, publicKey } = identity
  const name = publicKey && nameOf(publicKey)
  return [{ path, isEncrypted: kind === 'encrypted', isPrivate: kind !== 'public', publicKey: name }]
}

function nameOf(key: ParsedKey): string {
  return key.getPublicSSH().toString('base64')
}

function signWith(key: ParsedKey, data: Buffer, hash: string | undefined): Buffer {
  const signature: Buffer | Error = key.sign(data, hash)
  if (signature instanceof Error) throw signature
  return signature
}
