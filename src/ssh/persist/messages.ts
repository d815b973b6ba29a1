/** The control messages between a program and the keeper: data only. Both sides are the same user's, of one version. */

import { type ErrorCode, MusterError, messageOf } from '../../base/errors.ts'
import { Secret } from '../../base/secret.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { type Answered, type CredentialPrompt, type HostKeyVerdict, only } from '../questions.ts'
import type {
  Askers,
  ChannelEnd,
  ConnectFailure,
  ConnectPhase,
  ExecOptions,
  ShellOptions,
  ShellSize,
} from '../transport.ts'

/** Goes up with every change of this file; it is part of the socket's name, so versions do not meet. */
export const PROTOCOL = 6

/** What a connection in the making asks the program that wants it. */
export type Question =
  | { readonly kind: 'verify'; readonly endpoint: Endpoint; readonly key: string }
  | { readonly kind: 'algorithms'; readonly endpoint: Endpoint }
  | { readonly kind: 'passphrase'; readonly keyFile: string; readonly endpoint: Endpoint; readonly isRetry: boolean }
  | { readonly kind: 'password'; readonly endpoint: Endpoint; readonly isRetry: boolean }
  | {
      readonly kind: 'interactive'
      readonly endpoint: Endpoint
      readonly instruction: string
      readonly prompts: readonly CredentialPrompt[]
      readonly isRetry: boolean
    }

export type OpenRequest =
  | ({ readonly kind: 'shell' } & ShellOptions)
  | { readonly kind: 'exec'; readonly command: string; readonly options?: ExecOptions }

/** A warm connection as `muster hosts --persisted` shows it. Times in ms since the epoch. */
export type WarmConnection = Pick<Endpoint, 'host' | 'user' | 'address' | 'port'> & {
  readonly sinceMs: number
  /** Programs that use it now. */
  readonly users: number
  /** When it ends if it stays unused; undefined while it is used. */
  readonly endsAtMs?: number
}

/** Which warm connections are meant, whatever keys and ways they were made with. */
export type WarmName = Pick<WarmConnection, 'user' | 'address' | 'port'>

/** What a program asks the keeper to do in its place, and where it would have done it. */
export type KeeperWork = {
  /** Of the command line. */
  readonly words: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly workingDirectory: string
  /** Which code it is: a keeper with other code leaves the work to the program. */
  readonly build: string
  readonly terminal: WorkTerminal
}

/** Which streams are terminals. `stdin`: and the program may read it. */
export type WorkTerminal = {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  /** 0: unknown. */
  readonly columns: number
  readonly rows: number
}

/** The channels of the program's own streams. It opens no other channels. */
export const WORK_CHANNELS = { stdout: 1, stderr: 2 } as const

export type ToKeeper =
  | { readonly type: 'hello'; readonly protocol: number; readonly nonce: string }
  | { readonly type: 'proof'; readonly proof: string }
  | { readonly type: 'connect'; readonly id: number; readonly endpoint: Endpoint; readonly persistMs: number }
  | { readonly type: 'release'; readonly id: number }
  | { readonly type: 'answer'; readonly question: number; readonly answer?: unknown; readonly error?: WireError }
  | { readonly type: 'open'; readonly id: number; readonly channel: number; readonly what: OpenRequest }
  | { readonly type: 'resize'; readonly channel: number; readonly size: ShellSize }
  | { readonly type: 'signal'; readonly channel: number; readonly name: string }
  | { readonly type: 'end-stdin'; readonly channel: number }
  | { readonly type: 'close'; readonly channel: number }
  | { readonly type: 'list'; readonly id: number }
  | { readonly type: 'stop'; readonly id: number; readonly names?: readonly WarmName[] }
  | { readonly type: 'work'; readonly request: KeeperWork }
  | { readonly type: 'interrupt'; readonly reason: string }
  /** Enter was pressed on the program's terminal. */
  | { readonly type: 'enter' }
  | { readonly type: 'terminal-size'; readonly columns: number; readonly rows: number }
  /** The program was stopped, as with Ctrl-Z, and continued. */
  | { readonly type: 'continued' }
  /** Nothing more can be written to the program's stdout. */
  | { readonly type: 'unwritable'; readonly message: string; readonly code?: string }

type WireError = { readonly message: string; readonly code?: string; readonly hint?: string }

export type FromKeeper =
  | { readonly type: 'hello'; readonly protocol: number; readonly nonce: string; readonly proof: string }
  | { readonly type: 'phase'; readonly id: number; readonly phase: ConnectPhase }
  /** What the server says during a login, and what it printed before it, also of a login that another program has made. */
  | { readonly type: 'words' | 'banner'; readonly id: number; readonly text: string }
  | { readonly type: 'ask'; readonly id: number; readonly question: number; readonly what: Question }
  | { readonly type: 'withdraw'; readonly question: number }
  | { readonly type: 'connected'; readonly id: number }
  /** `isFull` in it: the keeper has no room for another connection. */
  | { readonly type: 'failed'; readonly id: number; readonly failure: ConnectFailure }
  /** The keeper may open only so many files, and keeps fewer connections than it was asked to. */
  | { readonly type: 'crowded'; readonly limit: number }
  | { readonly type: 'lost'; readonly id: number; readonly reason: string }
  | { readonly type: 'opened'; readonly channel: number }
  | { readonly type: 'not-opened'; readonly channel: number; readonly failure: ConnectFailure }
  | { readonly type: 'end'; readonly channel: number; readonly end: ChannelEnd }
  | { readonly type: 'warm'; readonly id: number; readonly connections: readonly WarmConnection[] }
  /** The work has begun; what it prints follows, and then `done`. */
  | { readonly type: 'accepted' }
  /** The program has to do the work itself; nothing was done and nothing printed. */
  | { readonly type: 'declined' }
  | { readonly type: 'done'; readonly exitCode: number }

/** The keeper's side. `ask` resolves to what `answerQuestion` gave there; undefined when the program has gone. */
export function carriedQuestions(ask: (what: Question, signal?: AbortSignal) => Promise<unknown>): Askers {
  const unanswered: HostKeyVerdict = { ok: false, reason: 'the program that asked has gone', hint: 'Connect again.' }
  return {
    hostKeys: {
      async verify(endpoint, key, signal) {
        const what: Question = { kind: 'verify', endpoint, key: Buffer.from(key).toString('base64') }
        return ((await ask(what, signal)) as HostKeyVerdict | undefined) ?? unanswered
      },
      async preferredAlgorithms(endpoint) {
        return ((await ask({ kind: 'algorithms', endpoint })) as readonly string[] | undefined) ?? []
      },
    },
    credentials: {
      passphrase: async (keyFile, endpoint, isRetry, signal) =>
        only(secrets(await ask({ kind: 'passphrase', keyFile, endpoint, isRetry }, signal))),
      password: async (endpoint, isRetry, signal) =>
        only(secrets(await ask({ kind: 'password', endpoint, isRetry }, signal))),
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
      return revealed(listed(await credentials.passphrase(what.keyFile, endpoint, what.isRetry, signal)))
    case 'password':
      return revealed(listed(await credentials.password(endpoint, what.isRetry, signal)))
    case 'interactive': {
      const { instruction, prompts, isRetry } = what
      return revealed(await credentials.keyboardInteractive(endpoint, instruction, prompts, isRetry, signal))
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

const listed = (answer: Answered<Secret>) => (answer instanceof Secret ? [answer] : answer)

const revealed = (answer: Answered<readonly Secret[]>) =>
  typeof answer === 'string' ? answer : answer?.map((secret) => secret.reveal())

const secrets = (answer: unknown): Answered<readonly Secret[]> => {
  if (answer === 'nobody') return answer
  return Array.isArray(answer) ? answer.map((text) => new Secret(String(text))) : undefined
}
