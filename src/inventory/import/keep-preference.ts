/** `auto_close` of ~/.clusterssh/config is a preference of the console: it is added to preferences.yaml, and nothing else there changes. */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isMap } from 'yaml'
import { fileReason } from '../../base/errors.ts'
import { foreignFile } from '../../base/foreign-place.ts'
import { printable } from '../../base/printable.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import { configurationDirectory } from '../../base/user-directories.ts'
import { writeFileAtomically } from '../edit-hosts-yaml.ts'
import { parseYaml } from '../yaml-reader.ts'
import type { ImportNote } from './imported-inventory.ts'

const KEY = 'auto_close'
const LONGEST_S = 86_400

type Place = { readonly home: string; readonly env: Readonly<Record<string, string | undefined>> }

/**
 * What became of it; undefined: clusterssh sets none. `isWriting` false: only says what to add.
 * @throws MusterError `configuration` if preferences.yaml cannot be written
 */
export async function keepAutoClose({ home, env }: Place, isWriting: boolean): Promise<ImportNote | undefined> {
  const path = join(home, '.clusterssh', 'config')
  if (!existsSync(path)) return undefined
  const lines = readBoundedSync(path).toString('utf8').split(/\r?\n/)
  const at = lines.findLastIndex((line) => /^\s*auto_close\s*=/.test(line))
  const seconds = Number(/=\s*"?(\d{1,9})"?\s*(?:#.*)?$/.exec(lines[at] ?? '')?.[1])
  const note = (text: string): ImportNote => ({ path, line: at + 1, text })
  if (at < 0) return undefined
  if (!(seconds <= LONGEST_S)) return note(`${KEY} is left out: it must be a number of seconds, at most ${LONGEST_S}`)

  const file = join(configurationDirectory({ ...env, HOME: home }), 'muster', 'preferences.yaml')
  const entry = `${KEY}: ${seconds}`
  const byHand = (why: string) => note(`add ${entry} to ${printable(file)}${why}`)
  if (!isWriting) return byHand(', or import with --output')
  let text = ''
  try {
    if (existsSync(file)) text = readBoundedSync(file).toString('utf8')
  } catch (error) {
    return byHand(`, which cannot be read: ${fileReason(error)}`)
  }
  if (text !== '' && foreignFile(file) !== undefined) return byHand(', which other users can write')
  const before = contentsOf(text)
  if (before === undefined) return byHand('')
  if (KEY in before) return before[KEY] === seconds ? undefined : note(`${printable(file)} keeps its own ${KEY}`)
  const extended = `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${entry}\n`
  if (!isDeepStrictEqual(contentsOf(extended), { ...before, [KEY]: seconds })) return byHand('')
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFileAtomically(file, extended, { isOverwriting: true })
  return note(
    `saved as ${entry} in ${printable(file)}; after the last shell the console stays open, and Ctrl-] q ends it`,
  )
}

/** The mapping in the text; undefined: it is something else. */
function contentsOf(text: string): Readonly<Record<string, unknown>> | undefined {
  const document = parseYaml(text)
  if (document.errors.length > 0) return undefined
  if (document.contents === null) return {}
  return isMap(document.contents) ? document.toJS({ maxAliasCount: 10 }) : undefined
}
