/** A local directory as a tar archive in memory, without caches and environments; Ray packages it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { CliContext } from '../command-line/context.ts'

/** Ray takes no larger package. */
const MAX_BYTES = 500 * 1024 * 1024
/** As Ray leaves them out. */
const EXCLUDED = ['.git', '.venv', 'venv', '__pycache__']

/** @throws MusterError `usage` */
export async function packDirectory(directory: string, { workingDirectory, signal }: CliContext): Promise<Uint8Array> {
  const path = resolve(workingDirectory, directory)
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new MusterError('usage', `${printable(directory)} is not a directory`)
  }
  const excludes = EXCLUDED.map((name) => `--exclude=${name}`)
  const tar = spawn('tar', ['-c', '-f', '-', ...excludes, '-C', path, '.'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    // On macOS, tar would add files of its own.
    env: { ...process.env, COPYFILE_DISABLE: '1' },
  })
  const chunks: Buffer[] = []
  let sizeBytes = 0
  let said = ''
  tar.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  tar.stdout.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length
    if (sizeBytes > MAX_BYTES) tar.kill()
    else chunks.push(chunk)
  })
  const [code] = (await once(tar, 'close')) as [number | null]
  if (sizeBytes > MAX_BYTES) {
    throw new MusterError('usage', `${printable(directory)} is larger than 500 MB, the limit of Ray for a package`, {
      hint: 'Leave out data: put it into a directory that all nodes share.',
    })
  }
  if (code !== 0) throw new MusterError('usage', `${printable(directory)} cannot be packed: ${printable(said.trim())}`)
  return Buffer.concat(chunks)
}
