import { watch } from 'node:fs'

/** Calls back when an entry of a directory changes: perhaps too often, or never, as file systems differ. */
export function watchDirectory(directory: string, onChange: (name: string | null) => void): Disposable {
  try {
    const watcher = watch(directory, { persistent: false }, (_, name) => onChange(name))
    watcher.on('error', () => watcher.close())
    return { [Symbol.dispose]: () => watcher.close() }
  } catch {
    return { [Symbol.dispose]() {} }
  }
}
