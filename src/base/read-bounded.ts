/** Bounded reads: an endless file or stream, such as /dev/zero, is an error and does not fill the memory. */
import { closeSync, openSync, readSync, statSync } from 'node:fs'

/** A hosts.yaml with ten thousand hosts, each on a line of its own, has a quarter of it. */
export const MAX_TEXT_BYTES = 4 * 1024 * 1024
export const TOO_LARGE = 'it is larger than 4 MiB'

const CHUNK_BYTES = 64 * 1024

/** The whole file. @throws as node:fs does, or an Error if it is larger than `mostBytes` or a pipe */
export function readBoundedSync(path: string, mostBytes = MAX_TEXT_BYTES): Buffer {
  // Opening it could wait for ever.
  if (statSync(path).isFIFO()) throw new Error('it is a pipe')
  const file = openSync(path, 'r')
  try {
    const chunks: Buffer[] = []
    for (let total = 0; total <= mostBytes; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      const length = readSync(file, chunk)
      if (length === 0) return Buffer.concat(chunks)
      chunks.push(chunk.subarray(0, length))
      total += length
    }
    throw new Error(mostBytes === MAX_TEXT_BYTES ? TOO_LARGE : 'it is too large')
  } finally {
    closeSync(file)
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** @throws for bytes that are no UTF-8, with a code of which `fileReason` knows the words */
export const decodeText = (bytes: Uint8Array): string => decoder.decode(bytes)

/** Everything from a stream. @throws the result of `tooLarge` if that exceeds `mostBytes` */
export async function readStream(
  stream: AsyncIterable<Uint8Array | string>,
  mostBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk as Uint8Array)
    total += bytes.length
    if (total > mostBytes) throw tooLarge()
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}
