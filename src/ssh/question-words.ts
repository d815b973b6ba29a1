/** What is shown of a question, in the console and on a terminal. */
import { printable } from '../base/printable.ts'
import type { CredentialRequest } from './questions.ts'

/** A server's words are marked as such, so that it cannot ask for a password of something else. */
export function wordsOf({ kind, instruction, prompts }: Pick<CredentialRequest, 'kind' | 'instruction' | 'prompts'>) {
  const isServer = kind === 'keyboard-interactive'
  const marked = (mark: string, text: string) => (isServer && text !== '' ? `${mark} ${text}` : text)
  return {
    instruction: marked('The server says:', printable(instruction)),
    prompts: prompts.map(({ text }) => marked('The server asks:', printable(text.trim())) || 'Answer:'),
  }
}
