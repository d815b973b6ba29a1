/**
 * Records what a host prints as asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/): a header line, then a JSON
 * array a line. It owns one file, which only the user may read and which it never takes from another recording. What is
 * typed is not recorded unless that was asked for, since passwords are typed.
 */
import type { Clock } from '../base/clock.ts'
import { createExclusive, LineFile } from './line-file.ts'

export type AsciicastOptions = {
  /** An existing directory; the file's name comes from the host's. */
  readonly directory: string
  readonly host: string
  readonly columns: number
  readonly rows: number
  readonly term: string
  readonly clock: Clock
  readonly isInputRecorded?: boolean
  /** The file cannot be written any more; nothing is recorded from here on. Not called after disposing. */
  onError(error: Error): void
}

export interface AsciicastRecorder extends Disposable {
  readonly path: string
  output(bytes: Uint8Array): void
  /** Kept only when `isInputRecorded`. */
  input(bytes: Uint8Array): void
  resize(columns: number, rows: number): void
  /** Writes what is left, before it returns. */
  [Symbol.dispose](): void
}

/** Throws what opening a file throws (no directory, no permission). */
export function createAsciicastRecorder(options: AsciicastOptions): AsciicastRecorder {
  const { clock } = options
  const { path, descriptor } = createExclusive(options.directory, fileStem(options.host), '.cast')
  const file = new LineFile(descriptor, options.onError)
  const startedAt = clock.now()
  let lastSeconds = 0
  let lostBytes = 0

  const write = (kind: 'o' | 'i' | 'r' | 'm', data: string, isLast = false) => {
    // A clock that is set back must not make the times of a recording go back.
    lastSeconds = Math.max(lastSeconds, (clock.now() - startedAt) / 1000)
    return file.writeLine(`[${lastSeconds.toFixed(6)},"${kind}",${JSON.stringify(data)}]`, isLast)
  }
  const tellLoss = (isLast = false) => {
    if (write('m', `${lostBytes} bytes were not recorded: the disk is too slow`, isLast)) lostBytes = 0
  }
  const stream = (kind: 'o' | 'i') => {
    // Characters that are split between chunks are joined; what is no UTF-8 becomes U+FFFD, as JSON demands.
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    return (bytes?: Uint8Array) => {
      const text = bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode()
      if (text === '') return
      if (lostBytes > 0) tellLoss()
      if (lostBytes > 0 || !write(kind, text)) lostBytes += bytes?.length ?? 0
    }
  }
  const output = stream('o')
  const input = stream('i')

  file.writeLine(
    JSON.stringify({
      version: 2,
      width: options.columns,
      height: options.rows,
      timestamp: Math.floor(startedAt / 1000),
      title: options.host,
      env: { TERM: options.term },
    }),
  )
  let isDisposed = false
  return {
    path,
    output: (bytes) => {
      if (!isDisposed) output(bytes)
    },
    input: (bytes) => {
      if (!isDisposed && options.isInputRecorded) input(bytes)
    },
    resize: (columns, rows) => {
      if (!isDisposed) write('r', `${columns}x${rows}`)
    },
    [Symbol.dispose]: () => {
      if (isDisposed) return
      isDisposed = true
      output()
      input()
      if (lostBytes > 0) tellLoss(true)
      file[Symbol.dispose]()
    },
  }
}

/** The host's name as the beginning of a file's: no separators, no leading dot, not too long. */
export function fileStem(host: string): string {
  const stem = host
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^[.-]+/, '')
    .slice(0, 100)
  return stem === '' ? 'host' : stem
}
