/**
 * The bytes of a hosts file. It may be a pipe, as of `--hosts <(…)`: then it is read without ever standing in a call that
 * nothing can end, and one that nobody writes into is an error.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { type Clock, sleep, systemClock } from '../base/clock.ts'
import { MAX_TEXT_BYTES, readBoundedSync, TOO_LARGE } from '../base/read-bounded.ts'

export type ReadOptions = { readonly signal?: AbortSignal; readonly clock?: Clock }

/** For whoever writes into a named pipe to open it. */
const WRITER_LIMIT_MS = 3_000
const LOOK_MS = 20
const CHUNK_BYTES = 64 * 1024

/** @throws as node:fs does, an Error with a sentence, or why the signal was aborted */
export async function readHostsFile(path: string, { signal, clock = systemClock }: ReadOptions = {}): Promise<Buffer> {
  if (!(await stat(path)).isFIFO()) return readBoundedSync(path)
  await using pipe = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const chunks: Buffer[] = []
  const untilMs = clock.now() + WRITER_LIMIT_MS
  let isWritten = false
  let bytes = 0
  for (;;) {
    signal?.throwIfAborted()
    const chunk = await readSome(pipe)
    if (chunk === 'nothing yet') isWritten = true
    else if (chunk.length > 0) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > MAX_TEXT_BYTES) throw new Error(TOO_LARGE)
    } else if (isWritten || chunks.length > 0) return Buffer.concat(chunks)
    else if (clock.now() >= untilMs) throw new Error('it is a pipe, and no program writes to it')
    if (chunk === 'nothing yet' || chunk.length === 0) await sleep(clock, LOOK_MS)
  }
}

/** Of no length: the end, or nobody has opened it for writing. */
async function readSome(pipe: FileHandle): Promise<Buffer | 'nothing yet'> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  try {
    const { bytesRead } = await pipe.read(buffer, 0, buffer.length, null)
    return buffer.subarray(0, bytesRead)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 'nothing yet'
    throw error
  }
}
