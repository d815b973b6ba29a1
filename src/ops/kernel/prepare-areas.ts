/** The areas that an inventory declares, with the files that it names for them. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readFile, readlink, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Area, AreaMaker, Declared, DeclaredFile, FileRequest } from './area.ts'

const MAX_BYTES = 8 * 1024 * 1024

/** `endpoints`: of all hosts of the inventory. Files are read anew each time, as they may have changed. */
export async function prepareAreas(
  makers: readonly AreaMaker[],
  inventory: Inventory,
  endpoints: readonly Endpoint[],
): Promise<{ readonly declared: Declared; readonly areas: readonly Area[] }> {
  const requests = makers.flatMap((maker) => maker.filesOf(inventory))
  const files = await Promise.all(
    requests.map(async (request) => [request.name, await readDeclaredFile(request, inventory.file)] as const),
  )
  const byName = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
  const declared = { inventory, endpoints: byName, files: new Map(files) }
  return { declared, areas: makers.flatMap((maker) => maker.prepare(declared) ?? []) }
}

async function readDeclaredFile({ name, kind }: FileRequest, hostsFile = '.'): Promise<DeclaredFile> {
  const path = resolve(dirname(hostsFile), name)
  try {
    const { size, mtimeMs } = await stat(path)
    // An archive may be large, so its size and time stand for its content.
    if (kind === 'archive') return { kind: 'text', path, text: '', digest: `${size} ${mtimeMs}` }
    if (size > MAX_BYTES) return { kind: 'unreadable', path, because: 'it is too large' }
    const text = await readFile(path, 'utf8')
    const hash = createHash('sha256').update(text)
    if (kind === 'directory') await addDirectory(hash, dirname(path))
    return { kind: 'text', path, text, digest: hash.digest('hex') }
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return { kind: 'unreadable', path, because: isMissing ? 'there is no such file' : messageOf(error) }
  }
}

/** Names, modes and contents of everything below it. */
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
