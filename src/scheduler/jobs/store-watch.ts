/** Tells at once that somebody has written to the queue's file, where the file system tells that at all. Whose write it was, nobody knows. */
import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'

/** It may tell too often, or never: whoever listens looks now and then anyway. */
export function watchStore(path: string, onWrite: () => void): Disposable {
  const log = `${basename(path)}-wal`
  try {
    const watcher = watch(dirname(path), { persistent: false }, (_, name) => {
      if (name === log) onWrite()
    })
    watcher.on('error', () => watcher.close())
    return { [Symbol.dispose]: () => watcher.close() }
  } catch {
    return { [Symbol.dispose]() {} }
  }
}
