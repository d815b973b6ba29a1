/**
 * What ssh said about the same hosts before: the keeper asks for each run, and two `ssh -G` take longer than a short command on a
 * warm host. Remembered only where the answer depends on files alone, and only while these are as they were.
 */
import { statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { currentAccount } from '../../base/account.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import { type SshConfigAnswer, splitLine } from './source.ts'

/** Answers, and the lines that `ssh -v` wrote about them. */
export type AskedSsh = { readonly answers: readonly SshConfigAnswer[]; readonly remarks: readonly string[] }

type Remembered = {
  readonly answers: readonly SshConfigAnswer[]
  readonly paths: readonly string[]
  readonly state: string
}

/** A keeper sees a few sets of hosts. */
const MOST_REMEMBERED = 16
/** Clocks of file systems are coarse: a file that changed just now may change again without a trace. */
const SETTLED_MS = 2000
/** The line of ssh's debug messages; longer paths would be cut there. */
export const FILE_REMARK = /^debug1: Reading configuration data (.*)$/
export const LONGEST_PATH = 190

export class RememberedAnswers {
  readonly #byKey = new Map<string, Remembered>()

  /** `usual`: the files that ssh reads if they exist. */
  async ask(key: string, usual: readonly string[], ask: () => Promise<AskedSsh>): Promise<readonly SshConfigAnswer[]> {
    const known = this.#byKey.get(key)
    if (known !== undefined && stateOf(known.paths) === known.state) return known.answers
    this.#byKey.delete(key)
    const startedMs = Date.now()
    const { answers, remarks } = await ask()
    const paths = answers.every(({ ok }) => ok) ? pathsBehind(remarks, usual) : undefined
    const state = paths && stateOf(paths, startedMs - SETTLED_MS)
    if (paths !== undefined && state !== undefined) this.#byKey.set(key, { answers, paths, state })
    const [oldest] = this.#byKey.keys()
    if (this.#byKey.size > MOST_REMEMBERED && oldest !== undefined) this.#byKey.delete(oldest)
    return answers
  }
}

/** The files that ssh has read, those that it would read if they existed, and directories of Includes; undefined: it may depend on more. */
function pathsBehind(remarks: readonly string[], usual: readonly string[]): readonly string[] | undefined {
  const files = new Set(remarks.flatMap((line) => FILE_REMARK.exec(line)?.[1] ?? []))
  const paths = new Set([...files, ...usual])
  for (const file of files) {
    if (file.length > LONGEST_PATH || !file.startsWith('/')) return undefined
    const lines = textOf(file)?.split(/\r?\n/)
    if (lines === undefined) return undefined
    for (const line of lines) {
      const { keyword, words } = splitLine(line)
      // Programs, networks and DNS decide here.
      if (keyword === 'match' && words.some((word) => /exec|localnetwork/i.test(word))) return undefined
      if (keyword === 'canonicalizehostname' && !/^no$/i.test(words[0] ?? '')) return undefined
      if (keyword !== 'include') continue
      for (const path of words.flatMap(includedPaths)) {
        const place = placeOf(path)
        if (place === undefined) return undefined
        paths.add(place)
      }
    }
  }
  return [...paths]
}

/** ssh_config(5): a relative path is one in ~/.ssh, or in /etc/ssh if the file is the system's. */
function includedPaths(word: string): readonly string[] {
  const { home } = currentAccount()
  if (word.startsWith('~/')) return [join(home, word.slice(2))]
  return word.startsWith('/') ? [word] : [join(home, '.ssh', word), join('/etc/ssh', word)]
}

/** The directory that changes when an Include gets or loses a file; undefined: none in particular. */
function placeOf(path: string): string | undefined {
  let place = dirname(path)
  if (/[%$\\]/.test(path) || /[*?[\]{}~]/.test(place)) return undefined
  while (statOf(place) === MISSING && place !== '/') place = dirname(place)
  return place
}

/** Undefined: one of them changed after `settledMs`. */
function stateOf(paths: readonly string[]): string
function stateOf(paths: readonly string[], settledMs: number): string | undefined
function stateOf(paths: readonly string[], settledMs = Number.POSITIVE_INFINITY): string | undefined {
  const states = paths.map(statOf)
  return states.some(({ changedMs }) => changedMs > settledMs) ? undefined : states.map(({ text }) => text).join(' ')
}

type PathState = { readonly text: string; readonly changedMs: number }

const MISSING: PathState = { text: '-', changedMs: 0 }

function statOf(path: string): PathState {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    if (stats === undefined) return MISSING
    const { dev, ino, size, mtimeNs, ctimeNs } = stats
    return { text: [dev, ino, size, mtimeNs, ctimeNs].join(','), changedMs: Number(ctimeNs / 1_000_000n) }
  } catch {
    return MISSING
  }
}

function textOf(path: string): string | undefined {
  try {
    return readBoundedSync(path).toString()
  } catch {
    return undefined
  }
}
