/** A temporary directory that only this account can enter (mode 0700) and that goes away with its owner, however it ends. */
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** `cleanUp`: for sh, with the directory as $1; runs before it is removed where the owner died without disposing of it. */
export async function createPrivateDirectory(
  prefix: string,
  parent = tmpdir(),
  cleanUp = '',
): Promise<Disposable & { readonly path: string }> {
  const path = await realpath(await mkdtemp(join(parent, prefix)))
  const stopWatching = removeWhenOwnerDies(path, cleanUp)
  const remove = () => rmSync(path, { recursive: true, force: true })
  process.on('exit', remove)
  return {
    path,
    [Symbol.dispose]: () => {
      process.off('exit', remove)
      remove()
      stopWatching()
    },
  }
}

/** A small shell holds the reading end of a pipe from us: when this process ends in any way, even killed, it cleans up. */
function removeWhenOwnerDies(directory: string, cleanUp: string): () => void {
  const watcher = spawn('/bin/sh', ['-c', `cat >/dev/null\n${cleanUp}exec rm -rf -- "$1"`, 'sh', directory], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // Without it everything works as well; only a crash would leave the directory.
  watcher.on('error', () => {})
  watcher.stdin.on('error', () => {})
  watcher.unref()
  return () => watcher.stdin.destroy()
}
