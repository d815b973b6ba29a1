/** Files that the user names, and a verb writes. */
import { accessSync, constants, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileReason, MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { CliContext } from '../command-line/verb.ts'

type Place = Pick<CliContext, 'workingDirectory'>

/** Before work that takes long. @throws MusterError 'usage' for what is known to fail; the disk may still be full later. */
export function checkWritable(path: string, { workingDirectory }: Place): void {
  const whole = resolve(workingDirectory, path)
  try {
    const found = statSync(whole, { throwIfNoEntry: false })
    if (found?.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' })
    accessSync(found === undefined ? `${dirname(whole)}/.` : whole, constants.W_OK)
  } catch (error) {
    throw unwritten(path, error)
  }
}

/** @throws MusterError 'usage' */
export function writeText(path: string, text: string, { workingDirectory }: Place): void {
  try {
    writeFileSync(resolve(workingDirectory, path), text)
  } catch (error) {
    throw unwritten(path, error)
  }
}

/** A file that is written need not be there before; its directory has to be. */
export function unwritten(path: string, error: unknown): MusterError {
  const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
  const why = isMissing ? `there is no directory ${printable(dirname(path))}` : fileReason(error)
  return new MusterError('usage', `cannot write ${printable(path)}: ${why}`)
}
