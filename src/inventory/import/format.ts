/** What a format of `muster import` is, and how its files are found. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileReason, MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'

export type ImportSource = {
  /** A file instead of the ones that the tool itself reads. */
  readonly file?: string
  /** The text of `file` if it is not on disk. */
  readonly text?: string
  /** Nobody named the format. */
  readonly isRecognised?: boolean
  readonly cwd: string
  readonly home: string
  /** The directory of the machine's files; `/etc` unless given. */
  readonly etc?: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
  /** Of each file that is read as it is. */
  onRead?(path: string): void
}

export type ImportFormat = {
  /** The word of the command line. */
  readonly name: string
  /** Its files, for the help. */
  readonly about: string
  /** Whether a file is surely of this format. Absent: it looks like other formats and must be named. */
  recognises?(file: SourceFile): boolean
  /** @throws MusterError `configuration` for what cannot be read without guessing */
  read(source: ImportSource, inventory: ImportedInventory): void | Promise<void>
}

export const inEtc = ({ etc = '/etc' }: Pick<ImportSource, 'etc'>, name: string): string => join(etc, name)

/** @throws MusterError 'configuration' */
export function readSource(path: string): SourceFile {
  try {
    const bytes = readBoundedSync(path)
    if (bytes.includes(0)) throw new Error('it is not a text file')
    return { path, text: bytes.toString('utf8') }
  } catch (error) {
    throw new MusterError('configuration', `${printable(path)} cannot be read: ${fileReason(error)}`, {
      cause: error,
    })
  }
}

/** The files to read: the one that was given, or those of the tool that exist. */
export function sourcesOf(source: ImportSource, format: string, usual: readonly string[]): SourceFile[] {
  const { file, text, cwd } = source
  const given = () => (text === undefined ? readSource(resolve(cwd, file ?? '')) : { path: file ?? '', text })
  const found = file === undefined ? usual.filter((path) => existsSync(path)).map(readSource) : [given()]
  for (const { path } of found) source.onRead?.(path)
  if (found.length > 0) return found
  if (usual.length === 0)
    throw new MusterError('usage', 'the file is missing', { hint: `Run: muster import ${format} FILE` })
  throw new MusterError('configuration', `there is nothing to import: no ${usual.map(printable).join(', no ')}`, {
    hint: `Name the file: muster import ${format} FILE`,
  })
}

/** The lines of a text with their numbers, from 1, without comments, empty lines and white space at both ends. */
export function contentLines(text: string): { readonly number: number; readonly line: string }[] {
  return text
    .split(/\r\n|\n|\r/)
    .map((raw, index) => ({ number: index + 1, line: raw.replace(/#.*$/, '').trim() }))
    .filter(({ line }) => line !== '')
}

/** @throws MusterError `configuration` with the file and the line */
export function refuse(path: string, line: number, reason: string, hint?: string): never {
  const place = `${printable(path)}${line === 0 ? '' : `:${line}`}`
  throw new MusterError('configuration', `${place}: ${reason}`, hint === undefined ? {} : { hint })
}
