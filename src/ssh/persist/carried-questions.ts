/** Questions of a connection, carried from the keeper to the program that wants it. The keeper decides and remembers nothing. */
import { type ErrorCode, MusterError, messageOf } from '../../base/errors.ts'
import { Secret } from '../../base/secret.ts'
import type { HostKeyVerdict } from '../host-keys.ts'
import type { Askers } from '../transport.ts'
import type { Question, WireError } from './messages.ts'

/** The keeper's side. `ask` resolves to what `answerQuestion` gave there; undefined when the program has gone. */
export function carriedQuestions(ask: (what: Question, signal?: AbortSignal) => Promise<unknown>): Askers {
  const nobody: HostKeyVerdict = { ok: false, reason: 'the program that asked has gone', hint: 'Connect again.' }
  return {
    hostKeys: {
      async verify(endpoint, key, signal) {
        const what: Question = { kind: 'verify', endpoint, key: Buffer.from(key).toString('base64') }
        return ((await ask(what, signal)) as HostKeyVerdict | undefined) ?? nobody
      },
      async preferredAlgorithms(endpoint) {
        return ((await ask({ kind: 'algorithms', endpoint })) as readonly string[] | undefined) ?? []
      },
    },
    credentials: {
      passphrase: async (keyFile, endpoint, isRetry, signal) =>
        secrets(await ask({ kind: 'passphrase', keyFile, endpoint, isRetry }, signal))?.[0],
      password: async (endpoint, isRetry, signal) =>
        secrets(await ask({ kind: 'password', endpoint, isRetry }, signal))?.[0],
      keyboardInteractive: async (endpoint, instruction, prompts, isRetry, signal) =>
        secrets(await ask({ kind: 'interactive', endpoint, instruction, prompts, isRetry }, signal)),
    },
  }
}

/** The program's side: what goes back over the socket. */
export async function answerQuestion(
  what: Question,
  { hostKeys, credentials }: Askers,
  signal: AbortSignal,
): Promise<unknown> {
  const { endpoint } = what
  switch (what.kind) {
    case 'verify':
      return await hostKeys.verify(endpoint, Buffer.from(what.key, 'base64'), signal)
    case 'algorithms':
      return await hostKeys.preferredAlgorithms(endpoint)
    case 'passphrase':
      return revealed(await credentials.passphrase(what.keyFile, endpoint, what.isRetry, signal))
    case 'password':
      return revealed(await credentials.password(endpoint, what.isRetry, signal))
    case 'interactive': {
      const { instruction, prompts, isRetry } = what
      const answers = await credentials.keyboardInteractive(endpoint, instruction, prompts, isRetry, signal)
      return answers?.map((answer) => answer.reveal())
    }
  }
}

export function wireError(error: unknown): WireError {
  const message = messageOf(error)
  if (!(error instanceof MusterError)) return { message }
  return { message, code: error.code, ...(error.hint === undefined ? {} : { hint: error.hint }) }
}

export function fromWireError({ message, code, hint }: WireError): Error {
  if (code === undefined) return new Error(message)
  return new MusterError(code as ErrorCode, message, hint === undefined ? {} : { hint })
}

const revealed = (answer: Secret | undefined) => (answer === undefined ? undefined : [answer.reveal()])

const secrets = (answer: unknown) =>
  Array.isArray(answer) ? answer.map((text) => new Secret(String(text))) : undefined
