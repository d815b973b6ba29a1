/**
 * The disk that kernel hosts start from: built once (a minute of work), then kept in the user's cache under a name made of what it
 * was made of. Guests never write to it; each has a copy-on-write file.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { runOrThrow } from './run.ts'

const SCRIPTS = join(import.meta.dirname, 'scripts')
/** Where Debian's package user-mode-linux puts the modules of its kernel, a directory a version. */
const MODULES = '/usr/lib/uml/modules'
const INPUTS = ['kernel-image.sh', 'guest-init.sh', 'guest-setup.sh']
/** On a machine that is busy with other tests it takes several times the minute. */
const BUILD_MS = 1_200_000

/** What a guest of this machine preloads (scripts/ptrace-registers.c), or nothing. */
export async function kernelPreload(): Promise<string> {
  if (!/^flags\b.*\bamx_tile\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))) return ''
  const source = join(SCRIPTS, 'ptrace-registers.c')
  const hash = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 12)
  const library = join(cacheDirectory(), `ptrace-registers-${hash}.so`)
  const build = `cc -O1 -shared -fPIC -o "$1.$$" "$2" && mv "$1.$$" "$1"`
  if (!existsSync(library)) await runOrThrow(['sh', '-c', build, 'build', library, source])
  return library
}

/** The image's path. If it is missing, the first caller builds it and the others wait. */
export async function kernelImage(): Promise<string> {
  const cache = cacheDirectory()
  const modules = join(MODULES, kernelVersion())
  const image = join(cache, `kernel-host-${inputsHash(modules)}.img`)
  if (existsSync(image)) return image
  const namespaces = ['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc']
  const build = [...namespaces, 'sh', join(SCRIPTS, 'kernel-image.sh'), image, modules]
  const unlessBuilt = ['sh', '-c', 'image=$1; shift; [ -e "$image" ] || exec "$@"', 'build', image, ...build]
  await runOrThrow(['flock', join(cache, 'lock'), ...unlessBuilt], { timeoutMs: BUILD_MS })
  return image
}

function cacheDirectory(): string {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'muster-lab')
  mkdirSync(cache, { recursive: true })
  return cache
}

function kernelVersion(): string {
  const versions = readdirSync(MODULES)
  const [version] = versions
  if (version === undefined || versions.length > 1)
    throw new Error(`${MODULES} holds ${versions.length} kernels, not one`)
  return version
}

function inputsHash(modules: string): string {
  const hash = createHash('sha256').update(modules)
  for (const name of INPUTS) hash.update(readFileSync(join(SCRIPTS, name)))
  return hash.digest('hex').slice(0, 12)
}
