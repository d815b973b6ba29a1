/** What a transport is called with, watched: phases, losses, and collected output. */
import { once } from 'node:events'
import { createHostKeyVerifier } from '../../src/ssh/known-hosts/verifier.ts'
import type { CredentialAsker, HostKeyVerifier } from '../../src/ssh/questions.ts'
import {
  type ChannelEnd,
  type ConnectContext,
  ConnectError,
  type ConnectFailure,
  type Connection,
  type ConnectPhase,
} from '../../src/ssh/transport.ts'

/** Nobody to ask. */
export const nobody: CredentialAsker = {
  passphrase: async () => undefined,
  password: async () => undefined,
  keyboardInteractive: async () => undefined,
}

export type WatchedContext = ConnectContext & {
  readonly phases: ConnectPhase[]
  readonly lost: Promise<string>
}

export function watchedContext(
  parts: { signal?: AbortSignal; hostKeys?: HostKeyVerifier; credentials?: CredentialAsker } = {},
): WatchedContext {
  const phases: ConnectPhase[] = []
  const { promise, resolve } = Promise.withResolvers<string>()
  return {
    signal: parts.signal ?? new AbortController().signal,
    hostKeys: parts.hostKeys ?? createHostKeyVerifier(),
    credentials: parts.credentials ?? nobody,
    phases,
    lost: promise,
    onPhase: (phase) => phases.push(phase),
    onLost: resolve,
  }
}

export async function failureOf(connecting: Promise<unknown>): Promise<ConnectFailure> {
  const error = await connecting.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  )
  if (error instanceof ConnectError) return error.failure
  throw error
}

export type Output = { readonly stdout: string; readonly stderr: string; readonly end: ChannelEnd }

/** Runs a command to its end. */
export async function run(connection: Connection, command: string): Promise<Output> {
  let stdout = ''
  let stderr = ''
  const { promise, resolve } = Promise.withResolvers<ChannelEnd>()
  const remote = await connection.exec(command, {
    onStdout: (bytes) => {
      stdout += Buffer.from(bytes).toString()
    },
    onStderr: (bytes) => {
      stderr += Buffer.from(bytes).toString()
    },
    onEnd: resolve,
  })
  remote.endInput()
  const end = await promise
  return { stdout, stderr, end }
}

/** A shell whose output can be waited for. */
export async function openWatchedShell(connection: Connection, columns = 80, rows = 24) {
  let text = ''
  const changes = new EventTarget()
  const { promise: ended, resolve } = Promise.withResolvers<ChannelEnd>()
  const shell = await connection.openShell(
    { size: { columns, rows }, term: 'xterm-256color' },
    {
      onData: (bytes) => {
        text += Buffer.from(bytes).toString()
        changes.dispatchEvent(new Event('data'))
      },
      onDrain: () => {},
      onEnd: resolve,
    },
  )
  return {
    shell,
    ended,
    text: () => text,
    type: (line: string) => shell.write(Buffer.from(line)),
    /** Resolves once the output matches. */
    async shows(pattern: RegExp): Promise<string> {
      while (!pattern.test(text)) await once(changes as never, 'data')
      return text
    },
  }
}
