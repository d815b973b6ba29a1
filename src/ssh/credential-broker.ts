/** Hosts with the same question and password scope share one dialog. A wrong answer goes to no other host, so that a typing error does not lock accounts. */

import { type Clock, systemClock } from '../base/clock.ts'
import { literalPattern } from '../base/literal-pattern.ts'
import { printable } from '../base/printable.ts'
import type { Secret } from '../base/secret.ts'
import type { Endpoint } from '../inventory/host.ts'
import {
  type Answered,
  type CredentialAsker,
  type CredentialDialog,
  type CredentialPrompt,
  type CredentialRequest,
  only,
} from './questions.ts'
import { remoteText } from './ssh2/failures.ts'

/** A dialog opens once no further host asked the same for this long … */
const QUIET_MS = 200
/** … and not later than this after the first. */
const PATIENCE_MS = 1500
/** A password is forgotten when it was not needed for this long. */
const REMEMBER_MS = 20_000

export type CredentialBrokerOptions = {
  /** Undefined: there is no user to ask. */
  readonly dialog?: CredentialDialog
  readonly clock?: Clock
  /** Host names for a title: `m[8-10]`. */
  formatHosts?(hosts: readonly string[]): string
}

type Question = {
  readonly key: string
  readonly kind: CredentialRequest['kind']
  readonly instruction: string
  readonly prompts: readonly CredentialPrompt[]
  readonly isGathered: boolean
  /** Whether the answer also holds for a host that asks a little later: not so for a one-time code. */
  readonly isLasting: boolean
  title(hosts: string): string
}

type Answer = { readonly id: number; readonly secrets: readonly Secret[] }

type Member = { readonly host: string; readonly signal: AbortSignal; settle(answer: Answered<Answer>): void }

type Group = {
  readonly question: Question
  readonly abort: AbortController
  readonly firstAtMs: number
  readonly members: Set<Member>
  isRetry: boolean
  timer: Disposable | undefined
  /** Ends the gathering; undefined once it has ended. */
  finishGathering: (() => void) | undefined
}

export class CredentialBroker implements CredentialAsker, Disposable {
  readonly #dialog: CredentialDialog | undefined
  readonly #clock: Clock
  readonly #formatHosts: (hosts: readonly string[]) => string
  readonly #groups = new Map<string, Group>()
  readonly #remembered = new Map<string, { readonly answer: Answer; timer: Disposable }>()
  /** By question and host, the id of the answer that the host was given last: never the answer itself. */
  readonly #given = new Map<string, number>()
  #dialogIsFree: Promise<unknown> = Promise.resolve()
  #lastId = 0

  constructor(options: CredentialBrokerOptions = {}) {
    this.#dialog = options.dialog
    this.#clock = options.clock ?? systemClock
    this.#formatHosts = options.formatHosts ?? listHosts
  }

  async passphrase(keyFile: string, { host }: Endpoint, isRetry: boolean, signal: AbortSignal) {
    const question = secretQuestion('passphrase', keyFile, () => `Passphrase of ${printable(keyFile)}`)
    return only(await this.#ask(question, host, isRetry, signal))
  }

  async password({ user, host, passwordScope }: Endpoint, isRetry: boolean, signal: AbortSignal) {
    const title = (hosts: string) => `Password of ${printable(user)} on ${hosts}`
    const question = secretQuestion('password', inScope(user, passwordScope), title)
    return only(await this.#ask(question, host, isRetry, signal))
  }

  keyboardInteractive(
    ...[endpoint, instruction, prompts, isRetry, signal]: Parameters<CredentialAsker['keyboardInteractive']>
  ) {
    return this.#ask(interactiveQuestion(endpoint, instruction, prompts), endpoint.host, isRetry, signal)
  }

  async #ask(
    question: Question,
    host: string,
    isRetry: boolean,
    signal: AbortSignal,
  ): Promise<Answered<readonly Secret[]>> {
    if (this.#dialog === undefined) return 'nobody'
    if (signal.aborted) return undefined
    const givenKey = `${question.key}\n${host}`
    const remembered = this.#remembered.get(question.key)
    const wasWrong = isRetry && remembered?.answer.id === this.#given.get(givenKey)
    if (wasWrong) this.#forget(question.key)
    const answer =
      remembered !== undefined && !wasWrong
        ? this.#recall(question, remembered.answer)
        : await this.#join(question, host, isRetry, signal)
    if (answer === undefined || answer === 'nobody') return answer
    this.#given.set(givenKey, answer.id)
    return answer.secrets
  }

  [Symbol.dispose](): void {
    for (const key of [...this.#remembered.keys()]) this.#forget(key)
    for (const group of [...this.#groups.values()]) {
      group.abort.abort()
      this.#settle(group, undefined)
    }
  }

  #join(question: Question, host: string, isRetry: boolean, signal: AbortSignal): Promise<Answered<Answer>> {
    const same = this.#groups.get(question.key)
    // A one-time code goes only to hosts that the dialog named.
    const isTooLate = same?.finishGathering === undefined && !(question.isLasting && same?.question.isLasting)
    const group = same === undefined || isTooLate ? this.#open(question) : same
    group.isRetry ||= isRetry
    return new Promise((resolve) => {
      const onAbort = () => {
        member.settle(undefined)
        if (group.members.size > 0) return
        group.abort.abort()
        this.#settle(group, undefined)
      }
      const member: Member = {
        host,
        signal,
        settle: (answer) => {
          signal.removeEventListener('abort', onAbort)
          group.members.delete(member)
          resolve(answer)
        },
      }
      signal.addEventListener('abort', onAbort)
      group.members.add(member)
      this.#schedule(group)
    })
  }

  #open(question: Question): Group {
    const gathered = Promise.withResolvers<void>()
    const group: Group = {
      question,
      abort: new AbortController(),
      firstAtMs: this.#clock.now(),
      members: new Set(),
      isRetry: false,
      timer: undefined,
      finishGathering: gathered.resolve,
    }
    this.#groups.set(question.key, group)
    group.abort.signal.addEventListener('abort', () => gathered.resolve(), { once: true })
    // One dialog at a time; the group takes in more hosts while it waits for its turn.
    this.#dialogIsFree = this.#dialogIsFree.then(async () => {
      await gathered.promise
      await this.#show(group)
    })
    return group
  }

  #schedule(group: Group): void {
    const open = group.finishGathering
    if (open === undefined) return
    group.timer?.[Symbol.dispose]()
    if (!group.question.isGathered) {
      open()
      return
    }
    const patienceMs = Math.max(0, group.firstAtMs + PATIENCE_MS - this.#clock.now())
    group.timer = this.#clock.after(Math.min(QUIET_MS, patienceMs), open)
  }

  async #show(group: Group): Promise<void> {
    group.finishGathering = undefined
    group.timer?.[Symbol.dispose]()
    if (this.#dialog === undefined || group.abort.signal.aborted) return
    const { question } = group
    const hosts = [...new Set([...group.members].map(({ host }) => host))]
    let secrets: Answered<readonly Secret[]>
    try {
      secrets = await this.#dialog.ask(
        {
          kind: question.kind,
          hosts,
          title: question.title(this.#formatHosts(hosts)),
          instruction: question.instruction,
          prompts: question.prompts,
          isRetry: group.isRetry,
        },
        group.abort.signal,
      )
    } catch {
      secrets = undefined
    }
    if (group.abort.signal.aborted) return
    if (secrets === undefined || secrets === 'nobody') return this.#settle(group, secrets)
    this.#lastId += 1
    const answer = { id: this.#lastId, secrets }
    if (question.isLasting) this.#recall(question, answer)
    this.#settle(group, answer)
  }

  #settle(group: Group, answer: Answered<Answer>): void {
    if (this.#groups.get(group.question.key) === group) this.#groups.delete(group.question.key)
    group.timer?.[Symbol.dispose]()
    for (const member of [...group.members]) member.settle(answer)
  }

  #recall(question: Question, answer: Answer): Answer {
    this.#forget(question.key)
    const timer = this.#clock.after(REMEMBER_MS, () => this.#forget(question.key))
    this.#remembered.set(question.key, { answer, timer })
    return answer
  }

  #forget(key: string): void {
    this.#remembered.get(key)?.timer[Symbol.dispose]()
    this.#remembered.delete(key)
  }
}

/** Identifies the password: hosts of different files may have users with the same name. */
const inScope = (user: string, scope: string | undefined): string => JSON.stringify([scope ?? null, user])

function secretQuestion(kind: 'passphrase' | 'password', of: string, title: Question['title']): Question {
  const text = kind === 'password' ? 'Password' : 'Passphrase'
  const prompts = [{ text, isEchoed: false }]
  return {
    key: `${kind}\n${of}`,
    kind,
    instruction: '',
    prompts,
    isGathered: kind === 'password',
    isLasting: true,
    title,
  }
}

/**
 * Whether the text is the usual question for a password: that word, perhaps with the user and a host. Any other question may be for a
 * one-time code, which only the hosts that were named get.
 */
function asksPassword(text: string, user: string): boolean {
  const account = `${literalPattern(user)}(?:@\\S{1,200})?`
  return new RegExp(
    `^\\s*(?:\\(${account}\\) ?)?(?:${account}'s )?password(?: for ${account})?\\s*[:：]?\\s*$`,
    'iu',
  ).test(text)
}

function interactiveQuestion(endpoint: Endpoint, instruction: string, prompts: readonly CredentialPrompt[]): Question {
  const user = printable(endpoint.user)
  const texts = [instruction, ...prompts.map(({ text, isEchoed }) => `${isEchoed}${text}`)]
  // `root@m8's password:` and `root@m9's password:` are the same question.
  const names = [endpoint.host, endpoint.address].filter((name) => name.length > 1)
  const generic = texts.map((text) => names.reduce((result, name) => result.replaceAll(name, '%h'), text))
  return {
    key: JSON.stringify(['keyboard-interactive', inScope(endpoint.user, endpoint.passwordScope), ...generic]),
    kind: 'keyboard-interactive',
    instruction: remoteText(instruction),
    prompts: prompts.map(({ text, isEchoed }) => ({ text: remoteText(text), isEchoed })),
    isGathered: true,
    isLasting:
      instruction.trim() === '' &&
      prompts.every(({ text, isEchoed }) => !isEchoed && asksPassword(text, endpoint.user)),
    title: (hosts) => `Login of ${user} on ${hosts}`,
  }
}

function listHosts(hosts: readonly string[]): string {
  const names = hosts.map(printable)
  return names.length <= 4 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`
}
