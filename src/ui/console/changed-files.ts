/** Reads files again after they have changed: settings and hosts that the user edits while the console is open. */
import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { PageContext } from '../state/console-state.ts'

export type ChangingFile = {
  readonly path: string
  /** Resolves with the news for the user; rejects with the reason why the previous version stays in use. */
  read(): Promise<string | undefined>
}

const EVERY_MS = 2000

/** `refused`: why its last version is not in use. */
type Watched = ChangingFile & { known: string; last: string; refused?: string | undefined }

export class ChangedFiles implements Disposable {
  readonly #context: Pick<PageContext, 'clock' | 'notice' | 'log'>
  readonly #files: readonly Watched[]
  #timer: Disposable | undefined
  #isDisposed = false

  constructor(context: Pick<PageContext, 'clock' | 'notice' | 'log'>, files: readonly ChangingFile[]) {
    this.#context = context
    this.#files = files.flatMap((file) => {
      const known = versionNow(file.path)
      return known === undefined ? [] : [{ ...file, known, last: known }]
    })
    this.#wait(context.clock)
  }

  /** A file is read once it has stayed the same since the last check, since an editor may still be writing it. `now`: in any case. */
  async check(now = false): Promise<void> {
    for (const file of this.#files) {
      const stats = await stat(file.path, { bigint: true }).catch(() => undefined)
      const version = versionOf(stats)
      const isStill = version === file.last
      file.last = version
      if (this.#isDisposed || !(isStill || now) || version === file.known) continue
      file.known = version
      // Opening a pipe could wait for ever.
      const again = stats === undefined ? 'is gone: the defaults are in use' : 'is valid again, and in use'
      if (stats === undefined || stats.isFile()) await this.#read(file, again)
      else this.#refuse(file, 'it is not a regular file')
    }
  }

  /** Why one of these files is not in use as it is now. */
  refusal(paths: readonly string[]): string | undefined {
    return this.#files.find(({ path, refused }) => refused !== undefined && paths.includes(path))?.refused
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
  }

  /** `again`: what to say of it if it was refused before, and has no other news. */
  async #read(file: Watched, again: string): Promise<void> {
    try {
      const found = await file.read()
      const news = found ?? (file.refused !== undefined ? `${basename(file.path)} ${again}` : undefined)
      file.refused = undefined
      if (this.#isDisposed || news === undefined) return
      this.#context.log('', news)
      this.#context.notice(news)
    } catch (error) {
      if (this.#isDisposed) return
      this.#refuse(file, messageOf(error))
    }
  }

  #refuse(file: Watched, reason: string): void {
    const name = basename(file.path)
    const [first = '', ...more] = reason.split('\n')
    const { line, words } = placeIn(name, first)
    const rest = more.length === 0 ? '' : ` (and ${more.length} more in the Log tab)`
    // The reason comes last, since a narrow screen cuts the end.
    file.refused = `cannot reload ${name}${line}${rest}: ${words}`
    this.#context.notice(file.refused, 'error')
    for (const each of [first, ...more])
      this.#context.log('', `cannot reload ${placeIn(name, each).line === '' ? `${name}: ` : ''}${each}`, 'error')
  }

  #wait(clock: Clock): void {
    if (this.#files.length === 0) return
    this.#timer = clock.after(EVERY_MS, () => {
      void this.check().finally(() => {
        if (!this.#isDisposed) this.#wait(clock)
      })
    })
  }
}

/** Of `path:line:column: words` the line and the words, if it is about the file of this name. */
function placeIn(name: string, reason: string): { readonly line: string; readonly words: string } {
  const [, path, line, words] = /^(.+?):(\d+):\d+: (.*)$/.exec(reason) ?? []
  if (path === undefined || words === undefined || basename(path) !== name) return { line: '', words: reason }
  return { line: `, line ${line}`, words }
}

type Version = { readonly ino: bigint; readonly size: bigint; readonly mtimeNs: bigint; readonly ctimeNs: bigint }

const versionOf = (stats: Version | undefined): string =>
  stats === undefined ? 'absent' : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join()

/** Undefined: a pipe or the like, which can be read only once. */
function versionNow(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats === undefined || stats.isFile() ? versionOf(stats) : undefined
}
