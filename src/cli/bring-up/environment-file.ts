/** The file that hosts.yaml makes an environment from. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readFile, readlink, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import type { EnvironmentSpec, Inventory } from '../../inventory/inventory.ts'
import { isPackedPrefix } from '../../ops/env/conda-scripts.ts'
import type { DeclaredFile } from '../../ops/kernel/area.ts'

const MAX_BYTES = 8 * 1024 * 1024

/** Undefined: none is named. */
export async function readEnvironmentFile({ environment, file }: Inventory): Promise<DeclaredFile | undefined> {
  const named = environment === undefined ? undefined : fileOf(environment)
  if (environment === undefined || named === undefined) return undefined
  const path = resolve(dirname(file ?? '.'), named)
  try {
    const { size, mtimeMs } = await stat(path)
    // It may be large, and only its making is noted.
    if (environment.kind === 'conda' && isPackedPrefix(path)) {
      return { kind: 'text', path, text: '', digest: `${size} ${mtimeMs}` }
    }
    if (size > MAX_BYTES) return { kind: 'unreadable', path, because: 'it is too large' }
    const text = await readFile(path, 'utf8')
    const hash = createHash('sha256').update(text)
    if (environment.kind === 'docker') await addDirectory(hash, dirname(path))
    return { kind: 'text', path, text, digest: hash.digest('hex') }
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return { kind: 'unreadable', path, because: isMissing ? 'there is no such file' : messageOf(error) }
  }
}

function fileOf(environment: EnvironmentSpec): string | undefined {
  return environment.kind === 'venv' ? environment.requirements : environment.file
}

/** Names, modes and contents of all below it, which is what a build may read. */
async function addDirectory(hash: ReturnType<typeof createHash>, root: string, below = ''): Promise<void> {
  const names = (await readdir(join(root, below))).toSorted()
  for (const name of names) {
    const path = join(below, name)
    const facts = await lstat(join(root, path))
    hash.update(JSON.stringify([path, facts.mode]))
    if (facts.isDirectory()) await addDirectory(hash, root, path)
    else if (facts.isSymbolicLink()) hash.update(await readlink(join(root, path)))
    else if (facts.isFile()) for await (const chunk of createReadStream(join(root, path))) hash.update(chunk)
  }
}
