/**
 * A Debian without a network that has nothing but Node, npm and a few packages: a root directory with copies of the files of the
 * packages that are installed here. What runs in it sees no other file, process or interface, and changes nothing outside.
 */
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { runOrThrow } from '../lab/cluster/run.ts'
import { ROOT } from './console-options.ts'
import { findProgram } from './requirements.ts'

/** What it takes to make one, for `requirement`. */
export const CLEAN_MACHINE_PARTS = ['root', 'namespaces', 'dpkg-query', 'npm', 'ip', 'chroot'] as const

const DPKG_LISTS = '/var/lib/dpkg/info'
/** In the machine itself. */
const REGISTRY = 'http://127.0.0.1:4873/'

/** Run in namespaces of its own; ROOT, then the command. /dev is this machine's, so that its terminals can be used. */
const ENTER = `set -eu
root=$1
shift
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
ip link set lo up
exec chroot "$root" "$@"`

/** Serves npm the packages in /registry while the command in its arguments runs. */
const REGISTRY_PROGRAM = `const { readFileSync } = require('node:fs')
const index = JSON.parse(readFileSync('/registry/index.json', 'utf8'))
require('node:http').createServer(({ url }, response) => {
  const name = decodeURIComponent(url.slice(1))
  if (Object.hasOwn(index, name)) return response.end(JSON.stringify(index[name]))
  try {
    response.end(readFileSync('/registry/' + name.replaceAll('/', '+')))
  } catch {
    response.writeHead(404).end()
  }
}).listen(4873, '127.0.0.1', () => {
  const [, , file, ...args] = process.argv
  require('node:child_process').spawn(file, args, { stdio: 'inherit' }).on('exit', (code) => process.exit(code ?? 1))
})`

export class CleanMachine {
  readonly root: string

  /** `packages` come with all packages that they need. */
  static async create(root: string, packages: readonly string[]): Promise<CleanMachine> {
    const machine = new CleanMachine(root)
    for (const directory of ['dev', 'proc', 'tmp', 'root', 'registry', 'opt', 'usr/local/bin', 'var/lib/dpkg/info'])
      mkdirSync(join(root, directory), { recursive: true })
    for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
      mkdirSync(join(root, 'usr', name), { recursive: true })
      symlinkSync(`usr/${name}`, join(root, name))
    }
    const installed = closure(packages)
    const lists = await runOrThrow(['dpkg-query', '--listfiles', ...installed.keys()])
    const files = [...new Set(lists.split('\n'))].filter((path) => path.startsWith('/') && existsSync(path))
    const archive = join(root, 'files.tar')
    await runOrThrow(['tar', '-cPf', archive, '--no-recursion', '--null', '--files-from=-'], {
      stdin: files.filter((path) => path !== '/.').join('\0'),
    })
    await runOrThrow(['tar', '-xf', archive, '--keep-directory-symlink', '-C', root])
    rmSync(archive)
    writeFileSync(join(root, 'var/lib/dpkg/status'), [...installed.values(), ''].join('\n\n'))
    // Otherwise dpkg removes directories of these packages with the last package that has a file there.
    for (const list of globSync('*.list', { cwd: DPKG_LISTS }))
      if (installed.has(list.replace(/(:.*)?\.list$/, ''))) cpSync(join(DPKG_LISTS, list), join(root, DPKG_LISTS, list))
    writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/bash\n')
    writeFileSync(join(root, 'etc/group'), 'root:x:0:\ntty:x:5:\n')
    await runOrThrow(['ldconfig', '-r', root])
    machine.#installNode()
    await machine.#fillRegistry()
    return machine
  }

  private constructor(root: string) {
    this.root = root
  }

  /** The command that runs `words` in the machine, also on a terminal. */
  command(...words: readonly string[]): string[] {
    const environment = [
      'HOME=/root',
      'PATH=/usr/local/bin:/opt/muster/bin:/usr/bin:/bin:/usr/sbin:/sbin',
      'LANG=C.UTF-8',
      'TERM=xterm-256color',
    ]
    return [
      ...['unshare', '--mount', '--net', '--pid', '--uts', '--fork', '--kill-child'],
      ...['sh', '-c', ENTER, 'sh', this.root, 'env', '--chdir=/root', '-i', ...environment, ...words],
    ]
  }

  async run(...words: readonly string[]): Promise<string> {
    return await runOrThrow(this.command(...words))
  }

  /** The same, with an npm registry that has the packages that Muster needs. */
  commandWithRegistry(...words: readonly string[]): string[] {
    return this.command('node', '/registry/serve.js', 'env', `npm_config_registry=${REGISTRY}`, ...words)
  }

  #installNode(): void {
    const npm = dirname(dirname(realpathSync(findProgram('npm') ?? '')))
    cpSync(npm, join(this.root, 'usr/lib/node_modules/npm'), { recursive: true })
    cpSync(realpathSync(process.execPath), join(this.root, 'usr/bin/node'))
    for (const name of ['npm', 'npx'])
      symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(this.root, 'usr/bin', name))
  }

  /** node-pty and its part for this platform, as they are in node_modules. */
  async #fillRegistry(): Promise<void> {
    const index: Record<string, unknown> = {}
    for (const path of ['node-pty', `@lydell/node-pty-${process.platform}-${process.arch}`]) {
      const directory = join(ROOT, 'node_modules', path)
      const manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
      const { name, version } = manifest
      const file = `${name.replaceAll('/', '+')}-${version}.tgz`
      const registry = join(this.root, 'registry')
      await runOrThrow(['tar', '-czf', join(registry, file), '--transform=s,^\\.,package,', '-C', directory, '.'])
      const dist = { tarball: `${REGISTRY}${file}` }
      index[name] = { name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } }
    }
    writeFileSync(join(this.root, 'registry/index.json'), JSON.stringify(index))
    writeFileSync(join(this.root, 'registry/serve.js'), REGISTRY_PROGRAM)
  }
}

/** The named packages, all essential ones and what they depend on: names, and what dpkg knows about them. */
function closure(names: readonly string[]): Map<string, string> {
  const known = new Map<string, string>()
  const providers = new Map<string, string>()
  const essential: string[] = []
  const field = (text: string, name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? ''
  const namesIn = (list: string) => list.split(/[,|]\s*/).map((each) => each.replace(/[ (:].*/, '').trim())
  for (const text of readFileSync('/var/lib/dpkg/status', 'utf8').split('\n\n')) {
    const name = field(text, 'Package')
    if (!/^Status: .* installed$/m.test(text)) continue
    known.set(name, text)
    for (const provided of namesIn(field(text, 'Provides'))) providers.set(provided, name)
    if (field(text, 'Essential') === 'yes') essential.push(name)
  }
  const found = new Map<string, string>()
  const waiting = [...essential, ...names]
  for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
    const name = known.has(each) ? each : (providers.get(each) ?? '')
    const text = known.get(name)
    if (text === undefined || found.has(name)) continue
    found.set(name, text)
    waiting.push(...namesIn(field(text, 'Depends')), ...namesIn(field(text, 'Pre-Depends')))
  }
  return found
}
