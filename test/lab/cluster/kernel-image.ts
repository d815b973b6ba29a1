/**
 * The disk that kernel hosts start from: built once (a minute of work), then kept in the user's cache under a name made of what it
 * was made of. Guests never write to it; each has a copy-on-write file.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildOnce, cachePath } from './cache.ts'

const SCRIPTS = join(import.meta.dirname, 'scripts')
/** Where Debian's package user-mode-linux puts the modules of its kernel, a directory a version. */
const MODULES = '/usr/lib/uml/modules'
const INPUTS = ['kernel-image.sh', 'guest-init.sh', 'guest-setup.sh']

/** What a guest of this machine preloads (scripts/ptrace-registers.c), or nothing. */
export async function kernelPreload(): Promise<string> {
  if (!/^flags\b.*\bamx_tile\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))) return ''
  const source = join(SCRIPTS, 'ptrace-registers.c')
  const library = cachePath('ptrace-registers', [readFileSync(source)], '.so')
  const build = `cc -O1 -shared -fPIC -o "$1.$$" "$2" && mv "$1.$$" "$1"`
  return await buildOnce(library, 'lock-ptrace-registers', ['sh', '-c', build, 'build', library, source])
}

/** The image's path. If it is missing, the first caller builds it and the others wait. */
export async function kernelImage(): Promise<string> {
  const modules = join(MODULES, kernelVersion())
  const inputs = INPUTS.map((name) => readFileSync(join(SCRIPTS, name)))
  const image = cachePath('kernel-host', [modules, ...inputs], '.img')
  const namespaces = ['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc']
  return await buildOnce(image, 'lock', [...namespaces, 'sh', join(SCRIPTS, 'kernel-image.sh'), image, modules])
}

function kernelVersion(): string {
  const versions = readdirSync(MODULES)
  const [version] = versions
  if (version === undefined || versions.length > 1)
    throw new Error(`${MODULES} holds ${versions.length} kernels, not one`)
  return version
}
