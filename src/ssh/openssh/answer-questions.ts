/** Parses the questions of the system's ssh (readpassphrase prompts of openssh-portable) and hands them to the user. Guesses no answer. */
import { Secret } from '../../base/secret.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { HostKeyReviewer, NewHostKey } from '../questions.ts'
import { remoteText } from '../ssh2/failures.ts'
import type { ConnectContext } from '../transport.ts'
import type { Answerer } from './askpass-server.ts'

export type AnswerOptions = {
  readonly endpoint: Endpoint
  readonly context: ConnectContext
  readonly reviewer: HostKeyReviewer | undefined
  onOpen(): void
  onAnswered(): void
  onDeclined(what: 'host-key' | 'credentials'): void
}

/** Jump hosts ask too, in words that name them. */
function askedBy(user: string, endpoint: Endpoint): Endpoint {
  const names = (each: Endpoint) => [each.hostKeyAlias, each.address, each.host].map((name) => `${each.user}@${name}`)
  return [endpoint, ...endpoint.jump].find((each) => names(each).includes(user)) ?? endpoint
}

export function answerQuestions(options: AnswerOptions): Answerer {
  const { endpoint, context, reviewer } = options
  const { credentials, signal } = context
  /** How often each kind was asked: the second time, the answer before was wrong. */
  const asked = new Map<string, number>()

  const isRetry = (what: string): boolean => {
    const times = asked.get(what) ?? 0
    asked.set(what, times + 1)
    return times > 0
  }

  const ask = async (question: AskpassQuestion): Promise<Secret | undefined> => {
    switch (question.kind) {
      case 'host-key': {
        const accepted = (await reviewer?.review([question.key], signal)) ?? new Set<string>()
        return accepted.has(question.key.host) ? new Secret('yes') : undefined
      }
      case 'passphrase':
        return credentials.passphrase(question.keyFile, endpoint, isRetry(`passphrase ${question.keyFile}`), signal)
      case 'password':
        return credentials.password(askedBy(question.user, endpoint), isRetry(`password ${question.user}`), signal)
      case 'prompt': {
        const prompts = [{ text: remoteText(question.text), isEchoed: question.isEchoed }]
        const again = isRetry(`prompt ${question.text}`)
        return (await credentials.keyboardInteractive(endpoint, '', prompts, again, signal))?.[0]
      }
      case 'notice':
        return new Secret('')
      case 'refuse':
        return undefined
    }
  }

  return async (text, promptKind) => {
    const question = parseAskpassQuestion(endpoint.host, text, promptKind)
    options.onOpen()
    try {
      const answer = await ask(question)
      if (answer === undefined) options.onDeclined(question.kind === 'host-key' ? 'host-key' : 'credentials')
      return answer
    } finally {
      options.onAnswered()
    }
  }
}

export type AskpassQuestion =
  | { readonly kind: 'host-key'; readonly key: NewHostKey }
  | { readonly kind: 'passphrase'; readonly keyFile: string }
  /** `user`: `user@host`, as ssh names the account. */
  | { readonly kind: 'password'; readonly user: string }
  | { readonly kind: 'prompt'; readonly text: string; readonly isEchoed: boolean }
  /** Nothing to answer: touch the security key. */
  | { readonly kind: 'notice'; readonly text: string }
  /** An answer of ours was not understood: never answered by guessing. */
  | { readonly kind: 'refuse' }

/** `promptKind` is SSH_ASKPASS_PROMPT (ssh(1), ENVIRONMENT): `confirm`, `none`, or not set. */
export function parseAskpassQuestion(host: string, text: string, promptKind: string | undefined): AskpassQuestion {
  if (promptKind === 'none') return { kind: 'notice', text }
  // A server's questions begin like this (since OpenSSH 8.5).
  if (/^\([^()\s]*@[^()\s]*\) /.test(text)) return { kind: 'prompt', text, isEchoed: promptKind === 'confirm' }
  if (text.startsWith("Please type 'yes'")) return { kind: 'refuse' }
  if (/\(yes\/no(\/\[fingerprint\])?\)\?/.test(text)) {
    const key = newHostKey(host, text)
    return key === undefined ? { kind: 'refuse' } : { kind: 'host-key', key }
  }
  const passphrase = /^Enter passphrase for (?:key )?'?(.*?)'?: ?$/.exec(text)
  if (passphrase?.[1] !== undefined) return { kind: 'passphrase', keyFile: passphrase[1] }
  const password = /^([^()\n]*)'s password: ?$/.exec(text)
  if (password?.[1] !== undefined) return { kind: 'password', user: password[1] }
  return { kind: 'prompt', text, isEchoed: promptKind === 'confirm' }
}

function newHostKey(host: string, text: string): NewHostKey | undefined {
  const lookupName = /^The authenticity of host '([^'\s]+)/m.exec(text)?.[1]
  const [, algorithm, fingerprint] = /^(\S+) key fingerprint is (\S+?)\.?$/m.exec(text) ?? []
  if (lookupName === undefined || algorithm === undefined || fingerprint === undefined) return undefined
  return { host, lookupName, algorithm, fingerprint }
}
