/** A program of this machine, with what it prints, for a limited time. */
import { spawn } from 'node:child_process'
import { signalGroup } from './processes.ts'
import { readStream } from './read-bounded.ts'

type ProgramOptions = {
  readonly cwd?: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly limitMs: number
  /** Of its output, and of its messages. */
  readonly mostBytes: number
  readonly signal?: AbortSignal | undefined
}

/** `exit`: without a code, a signal ended it. `unable`: it cannot be started. */
export type ProgramEnd =
  | {
      readonly kind: 'exit'
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
      readonly stdout: Buffer
      readonly stderr: Buffer
    }
  | { readonly kind: 'unable'; readonly error: NodeJS.ErrnoException }
  | { readonly kind: 'too-long' | 'too-much' | 'aborted' }

/** What has left its process group may hold its output open. */
const END_MS = 500

/** Runs it without input in a process group of its own, which is killed if it does not end in time. @throws as node:child_process does for words that no program can get */
export async function runProgram(file: string, args: readonly string[], options: ProgramOptions): Promise<ProgramEnd> {
  const { cwd, env, limitMs, mostBytes, signal } = options
  if (signal?.aborted) return { kind: 'aborted' }
  const child = spawn(file, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const { promise: over, resolve: finish } = Promise.withResolvers<ProgramEnd>()
  const giveUp = (kind: 'too-long' | 'too-much' | 'aborted') => finish({ kind })
  child.on('error', (error) => finish({ kind: 'unable', error }))
  const limit = setTimeout(giveUp, limitMs, 'too-long')
  const abort = () => giveUp('aborted')
  signal?.addEventListener('abort', abort)
  const closed = new Promise<readonly [number | null, NodeJS.Signals | null]>((done) =>
    child.on('close', (code, endedBy) => done([code, endedBy])),
  )
  const bounded = (stream: AsyncIterable<Uint8Array> | null) =>
    readStream(stream ?? NOTHING, mostBytes, () => new Error('too much')).catch((): Buffer => {
      giveUp('too-much')
      return Buffer.alloc(0)
    })
  void Promise.all([closed, bounded(child.stdout), bounded(child.stderr)]).then(([[code, endedBy], stdout, stderr]) =>
    finish({ kind: 'exit', code, signal: endedBy, stdout, stderr }),
  )
  const end = await over
  clearTimeout(limit)
  signal?.removeEventListener('abort', abort)
  if (end.kind === 'exit' || end.kind === 'unable') return end
  if (child.exitCode === null && child.signalCode === null) signalGroup(child.pid, 'SIGKILL')
  const cut = setTimeout(() => {
    for (const stream of [child.stdout, child.stderr]) stream?.destroy()
  }, END_MS)
  await closed
  clearTimeout(cut)
  return end
}

const NOTHING: AsyncIterable<Uint8Array> = (async function* () {})()
