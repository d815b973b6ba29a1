/** Files of traces, plain or gzip, and what cannot be read said in one sentence. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { MusterError } from '../../base/errors.ts'
import { fileReason } from '../../base/file-reason.ts'

/** Beyond this a file is no trace of ours. */
const MAX_BYTES = 512 * 2 ** 20

export async function readTrace(path: string, workingDirectory: string): Promise<string> {
  try {
    const bytes = await readFile(resolve(workingDirectory, path))
    const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
    return (isGzip ? await promisify(gunzip)(bytes, { maxOutputLength: MAX_BYTES }) : bytes).toString('utf8')
  } catch (error) {
    throw new MusterError('configuration', `${path} cannot be read: ${fileReason(error)}`, { cause: error })
  }
}
