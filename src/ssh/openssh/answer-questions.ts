/** Hands the questions of one login to the user, and never guesses an answer. */

import { Secret } from '../../base/secret.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { HostKeyReviewer } from '../host-keys.ts'
import { remoteText } from '../ssh2/failures.ts'
import type { ConnectContext } from '../transport.ts'
import { type AskpassQuestion, parseAskpassQuestion } from './askpass-question.ts'
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
