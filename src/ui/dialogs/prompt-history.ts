/**
 * The history of prompts, for Up and Down, in a file that only the user can read, bounded. It never has the answer to a question of a
 * host (password, passphrase), which is no prompt, nor a line that begins with a space.
 */
import { appendFileSync, chmodSync, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { foreignFile, makeOwnDirectories } from '../../base/foreign-place.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import { replaceFile } from '../../base/replace-file.ts'

const MOST_ENTRIES = 200
const MOST_TEXT = 2_000
/** The file is rewritten when it has more lines. */
const MOST_LINES = 2_000
const MOST_OWED = 100_000
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

type Entry = { readonly prompt: string; readonly text: string }

export class PromptHistory {
  readonly #path: string | undefined
  #entries: Entry[] | undefined
  #canWrite = true
  /** What could not be written, as on a full disk: it goes before the next line. */
  #owed = ''

  /** `path` undefined: nothing is kept on disk. */
  constructor(path?: string) {
    this.#path = path
  }

  /** Of one prompt, the latest first, each text once. */
  of(prompt: string): readonly string[] {
    const texts = this.#all().flatMap((entry) => (entry.prompt === prompt ? [entry.text] : []))
    return [...new Set(texts.toReversed())]
  }

  /** `isDone` false: the prompt was left without it, and only this program remembers it. */
  add(prompt: string, text: string, isDone = true): void {
    if (text.trim() === '' || /^\s/.test(text) || text.length > MOST_TEXT || CONTROL.test(text)) return
    const entries = this.#all()
    if (entries.findLast((entry) => entry.prompt === prompt)?.text === text) return
    entries.push({ prompt, text })
    if (isDone) this.#append({ prompt, text })
  }

  #all(): Entry[] {
    this.#entries ??= this.#read()
    return this.#entries
  }

  #read(): Entry[] {
    const path = this.#path
    if (path === undefined) return []
    try {
      if (!existsSync(path)) return []
      // Another user could have put a command there, which Up and Enter would run.
      if (foreignFile(path) !== undefined) {
        this.#canWrite = false
        return []
      }
      const lines = readBoundedSync(path).toString().split('\n')
      const entries = bounded(lines.flatMap(parseEntry))
      if (lines.length > MOST_LINES) replaceFile(path, entries.map(lineOf).join(''))
      return entries
    } catch {
      // Prompts work without a history.
      this.#canWrite = false
      return []
    }
  }

  #append(entry: Entry): void {
    const path = this.#path
    if (path === undefined || !this.#canWrite) return
    const text = this.#owed + lineOf(entry)
    try {
      makeOwnDirectories(dirname(path))
      appendFileSync(path, text, { mode: 0o600 })
      this.#owed = ''
      chmodSync(path, 0o600)
    } catch {
      // A part of a line may be there.
      if (text.length < MOST_OWED) this.#owed = `\n${text.trimStart()}`
    }
  }
}

const lineOf = (entry: Entry): string => `${JSON.stringify(entry)}\n`

/** The latest ones of each prompt. */
function bounded(entries: readonly Entry[]): Entry[] {
  const counts = new Map<string, number>()
  return entries
    .toReversed()
    .filter(({ prompt }) => {
      const count = (counts.get(prompt) ?? 0) + 1
      counts.set(prompt, count)
      return count <= MOST_ENTRIES
    })
    .toReversed()
}

function parseEntry(line: string): Entry[] {
  try {
    const entry: unknown = JSON.parse(line)
    if (typeof entry !== 'object' || entry === null || !('prompt' in entry) || !('text' in entry)) return []
    const { prompt, text } = entry
    if (typeof prompt !== 'string' || typeof text !== 'string') return []
    return text.length > MOST_TEXT || CONTROL.test(text) ? [] : [{ prompt, text }]
  } catch {
    return []
  }
}
