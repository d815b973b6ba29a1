/** Local files that a run sends to its hosts, and files that it writes here. */
import {
  closeSync,
  constants,
  createReadStream,
  existsSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileReason, MusterError } from '../../base/errors.ts'
import { makeDirectories } from '../../base/make-directories.ts'
import { printable } from '../../base/printable.ts'
import { readStream } from '../../base/read-bounded.ts'
import type { HostOutput } from '../../ops/run/output-store.ts'
import type { ExecFile } from '../../ssh/exec/host-exec.ts'

const CHUNK_BYTES = 64 * 1024
const HEAD_BYTES = 4096
/** Stdin is kept in memory, to be sent to every host. */
const MAX_STDIN_BYTES = 256 * 2 ** 20

/** @throws MusterError `usage` when it cannot be read. */
export async function execFile(path: string, option: string): Promise<ExecFile & { readonly head: string }> {
  try {
    // Otherwise opening a pipe that nothing writes into would block, and not even Ctrl-C would end that.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = await file.stat()
    if (!stat.isFile()) throw new MusterError('usage', `${option} ${printable(path)} is not a regular file`)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    const { size } = stat
    return {
      sizeBytes: size,
      head: buffer.subarray(0, bytesRead).toString('latin1'),
      // No more than announced, should it grow.
      open: () => (size === 0 ? nothing() : createReadStream(path, { highWaterMark: CHUNK_BYTES, end: size - 1 })),
    }
  } catch (error) {
    if (error instanceof MusterError) throw error
    throw new MusterError('usage', `cannot read ${option} ${printable(path)}: ${fileReason(error)}`)
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** All of stdin, kept. */
export async function execStdin(stdin: Readable): Promise<ExecFile> {
  const tooLarge = () => new MusterError('usage', 'stdin has more than 256 MiB; give a file to --stdin')
  const all = await readStream(stdin, MAX_STDIN_BYTES, tooLarge)
  return {
    sizeBytes: all.length,
    async *open() {
      for (let at = 0; at < all.length; at += CHUNK_BYTES) yield all.subarray(at, at + CHUNK_BYTES)
    },
  }
}

/** `--out DIR`: HOST.out and HOST.err, renamed to their final names when both are complete. */
export class OutputDirectory {
  readonly path: string

  /** @throws MusterError `usage` when files are there that may not be overwritten. */
  constructor(path: string, hosts: readonly string[], mayOverwrite: boolean) {
    this.path = path
    try {
      makeDirectories(path)
    } catch (error) {
      throw new MusterError('usage', `--out ${printable(path)}: ${fileReason(error)}`)
    }
    if (mayOverwrite) return
    const there = hosts.flatMap((host) => this.#pathsOf(host)).filter((file) => existsSync(file))
    if (there.length === 0) return
    const more = there.length > 1 ? ` and ${there.length - 1} more` : ''
    throw new MusterError('usage', `${printable(there[0] ?? '')}${more} would be overwritten`, {
      hint: 'Add --yes to overwrite.',
    })
  }

  /** Where it throws, the host has no files. */
  write(host: string, { stdout, stderr }: HostOutput): void {
    const streams = [stdout, stderr]
    const paths = this.#pathsOf(host)
    try {
      for (const [index, path] of paths.entries()) {
        const part = partOf(path)
        // From a killed run, or a link that was planted to be followed.
        rmSync(part, { force: true })
        const descriptor = openSync(part, 'wx')
        try {
          for (const bytes of streams[index]?.read() ?? []) writeFileSync(descriptor, bytes)
        } finally {
          closeSync(descriptor)
        }
      }
      for (const path of paths) renameSync(partOf(path), path)
    } catch (error) {
      for (const path of paths) rmSync(partOf(path), { force: true })
      this.remove(host)
      throw error
    }
  }

  /** Of all hosts, or of none. */
  writeAll(outputs: ReadonlyMap<string, HostOutput>): void {
    try {
      for (const [host, output] of outputs) this.write(host, output)
    } catch (error) {
      for (const host of outputs.keys()) this.remove(host)
      throw error
    }
  }

  /** Also files of earlier runs, which would be taken for the output of this one. */
  remove(host: string): void {
    for (const path of this.#pathsOf(host)) rmSync(path, { force: true })
  }

  /** For stdout and stderr. */
  #pathsOf(host: string): readonly string[] {
    return ['out', 'err'].map((suffix) => join(this.path, `${safeName(host)}.${suffix}`))
  }
}

const partOf = (path: string): string => `${path}.part`

/** A host's name as a file name: nothing that a path could mean. */
function safeName(host: string): string {
  return host.replace(/[^\w.@+-]|^\./g, (character) =>
    encodeURIComponent(character).replace(/^[^%]$/, (each) => `%${each.charCodeAt(0).toString(16)}`),
  )
}
