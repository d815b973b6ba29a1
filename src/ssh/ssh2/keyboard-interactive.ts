/** Keyboard-interactive (RFC 4256): the server's questions to the user and the answers back. Server text is printable. */
import type { KeyboardInteractiveAuthMethod, Prompt } from 'ssh2'
import type { AuthContext } from './auth-sequence.ts'
import { remoteText } from './failures.ts'

export type InteractiveProgress = {
  /** Answers that were refused so far. */
  tries(): number
  /** Whether the user may be asked once more. */
  isOver(): boolean
  onAsked(): void
  onAnswered(): void
  onDeclined(): void
}

/** Rounds of one conversation: a server that asks on and on is not followed. */
const MAX_ROUNDS = 10
/** Questions of one round: a password, a code, a new password twice. */
const MAX_PROMPTS = 16

export function keyboardInteractive(
  context: AuthContext,
  progress: InteractiveProgress,
): KeyboardInteractiveAuthMethod {
  const { endpoint, credentials, signal } = context
  const triesBefore = progress.tries()
  const asked = new Set<string>()
  let rounds = 0

  const answer = async (name: string, instructions: string, prompts: readonly Prompt[]): Promise<string[]> => {
    progress.onAsked()
    rounds += 1
    if (rounds > MAX_ROUNDS || prompts.length > MAX_PROMPTS || progress.isOver()) return []
    const texts = prompts.map(({ prompt, echo }) => ({ text: remoteText(prompt), isEchoed: echo === true }))
    const instruction = [name, instructions]
      .map(remoteText)
      .filter((text) => text !== '')
      .join(': ')
    // The same question again within one conversation means that the answer was wrong.
    const question = JSON.stringify(texts)
    const isRetry = triesBefore > 0 || asked.has(question)
    if (asked.has(question) || rounds === 1) progress.onAnswered()
    asked.add(question)
    const secrets = await context.asking(() =>
      credentials.keyboardInteractive(endpoint, instruction, texts, isRetry, signal),
    )
    if (secrets === undefined) {
      progress.onDeclined()
      return []
    }
    return secrets.map((secret) => secret.reveal())
  }

  return {
    type: 'keyboard-interactive',
    username: endpoint.user,
    prompt: (name, instructions, _language, prompts, finish) => {
      answer(name, instructions, prompts).then(finish, () => {
        progress.onDeclined()
        finish([])
      })
    },
  }
}
