/** What pods printed: pieces of it by byte, and programs that search its end. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shellQuote } from '../../base/shell-quote.ts'
import { apiPath, type KubernetesApi } from './api.ts'
import { CONTAINER } from './manifest.ts'

export type PodPiece = {
  readonly namespace: string
  readonly pod: string
  /** Negative: from its end. */
  readonly fromByte: number
  readonly mostBytes: number
}

/** Kubernetes counts lines. */
const MOST_LINES = 2_000
/** Of what is read to find a piece. */
const MOST_BYTES = 64 * 1024 * 1024

/** Empty: there is none yet. A string: why it cannot be read. */
export async function readLog(
  api: KubernetesApi,
  { namespace, pod, fromByte, mostBytes }: PodPiece,
  signal: AbortSignal,
): Promise<Uint8Array | string> {
  const isEnd = fromByte < 0
  const query = isEnd
    ? { container: CONTAINER, tailLines: MOST_LINES }
    : { container: CONTAINER, limitBytes: fromByte + mostBytes }
  const full = new AbortController()
  let kept = Buffer.alloc(0)
  let skipped = 0
  let total = 0
  const take = (bytes: Uint8Array) => {
    total += bytes.length
    const skip = isEnd ? 0 : Math.min(bytes.length, fromByte - skipped)
    skipped += skip
    kept = Buffer.concat([kept, bytes.subarray(skip)])
    kept = isEnd ? kept.subarray(fromByte) : kept.subarray(0, mostBytes)
    if (total > MOST_BYTES || (!isEnd && kept.length === mostBytes)) full.abort()
  }
  const refusal = await api.stream(
    apiPath('v1', 'namespaces', namespace, 'pods', pod, 'log'),
    { query, signal: AbortSignal.any([signal, full.signal]) },
    take,
  )
  // Its container has not started.
  if (refusal === undefined || refusal.status === 400 || full.signal.aborted) return kept.subarray(0, mostBytes)
  return refusal.message
}

const SEARCH_MS = 30_000
const MOST_FOUND = 1024 * 1024

/** Runs a program of sh here: `programOf` gets programs that print the content of each, or fail if there is none. */
export async function runWithFiles(
  contents: ReadonlyMap<string, Uint8Array>,
  programOf: (tails: ReadonlyMap<string, string>) => string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-search-'))
  try {
    const tails = new Map<string, string>()
    for (const [key, content] of contents) {
      const file = join(directory, String(tails.size))
      writeFileSync(file, content, { mode: 0o600 })
      tails.set(key, `cat ${shellQuote(file)}`)
    }
    return await runSh(programOf(tails), signal)
  } catch {
    return undefined
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function runSh(program: string, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(SEARCH_MS)])
    const child = spawn('/bin/sh', ['-s'], { stdio: ['pipe', 'pipe', 'ignore'], signal: limit })
    let text = ''
    child.on('error', () => resolve(undefined))
    child.stdin.on('error', () => {})
    child.stdout.setEncoding('utf8').on('data', (more: string) => {
      text = (text + more).slice(0, MOST_FOUND)
    })
    child.on('close', (code) => resolve(code === 0 ? text : undefined))
    child.stdin.end(program)
  })
}
