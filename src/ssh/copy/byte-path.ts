/** Paths of any bytes, as a name on a POSIX system is bytes, not text: strings with one character per byte (latin1). */
import { createHash } from 'node:crypto'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'

export type BytePath = string

export function bytePathOf(text: string): BytePath {
  return Buffer.from(text, 'utf8').toString('latin1')
}

export function bytesOf(path: BytePath): Buffer {
  return Buffer.from(path, 'latin1')
}

export function showPath(path: BytePath): string {
  return printable(bytesOf(path).toString('utf8'))
}

export function joinPath(directory: BytePath, name: BytePath): BytePath {
  if (name === '') return directory
  if (directory === '') return name
  return directory.endsWith('/') ? directory + name : `${directory}/${name}`
}

/** The last part as cp takes it: `a/b/` is `b`; `.`, `..` and `/` have none. */
export function baseName(path: BytePath): BytePath {
  const last =
    path
      .replace(/(?<!\/)\/+$/, '')
      .split('/')
      .at(-1) ?? ''
  return last === '.' || last === '..' ? '' : last
}

/** The directory that holds it: `a/b` is in `a`, `b` in `.`. */
export function parentOf(path: BytePath): BytePath {
  const trimmed = path.replace(/(?<=.)\/+$/, '')
  const slash = trimmed.lastIndexOf('/')
  if (slash < 0) return '.'
  return slash === 0 ? '/' : trimmed.slice(0, slash)
}

/** No program takes it for an option. */
export function withoutDash(path: BytePath): BytePath {
  return path.startsWith('/') ? path : `./${path}`
}

/** One word of a POSIX shell on one line; line feeds come from the variable NL (see remote-script.ts). */
export function quoteWord(text: BytePath): string {
  return shellQuote(text).replaceAll('\n', `'"$NL"'`)
}

/** The partial file beside a target: a short name that is always the same, so that a later copy finds it. */
export function partialOf(path: BytePath): BytePath {
  return besides(path, baseName(path))
}

/** The mark beside a directory that is a copy of the directory `name` and not complete: no partial file has this name. */
export function markOf(path: BytePath, name: BytePath): BytePath {
  return besides(path, `${baseName(path)}/${name}`)
}

function besides(path: BytePath, hashed: BytePath): BytePath {
  const hash = createHash('sha256').update(bytesOf(hashed)).digest('hex').slice(0, 16)
  return joinPath(parentOf(path), `.muster-${hash}`)
}
