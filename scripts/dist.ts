/**
 * `npm run dist` writes what people install to `release/`: the package for npm, for this platform an archive with Node inside and,
 * where dpkg-deb is installed, a package for Debian and Ubuntu with the same content, and their checksums.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { buildProgram } from './build.ts'

const ROOT = join(import.meta.dirname, '..')
const execute = promisify(execFile)
const PLATFORM = `${process.platform}-${process.arch}`
const CHECKSUMS = 'SHA256SUMS'
/** Debian's names for Node's. */
const DEBIAN_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const DEBIAN_COMPLETIONS: Readonly<Record<string, string>> = {
  bash: 'usr/share/bash-completion/completions/muster',
  zsh: 'usr/share/zsh/vendor-completions/_muster',
  fish: 'usr/share/fish/vendor_completions.d/muster.fish',
}
/** Otherwise tar, run as root, would unpack the files with the builder's user id. */
const OWNED_BY_ROOT = process.platform === 'darwin' ? ['--uid', '0', '--gid', '0'] : ['--owner=0', '--group=0']

export type Release = { readonly tarball: string; readonly archive: string; readonly debian: string | undefined }

/** Writes the packages, the archive and `SHA256SUMS` into `directory`, which it empties first; returns their names. */
export async function makeRelease(directory: string): Promise<Release> {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const scratch = mkdtempSync(join(tmpdir(), 'muster-release-'))
  try {
    const tarball = await packForNpm(directory, scratch)
    const place = await unpackWithNode(join(directory, tarball), scratch)
    const archive = `muster-${PLATFORM}.tar.gz`
    const [debian] = await Promise.all([
      packForDebian(directory, scratch, place),
      execute('tar', [...OWNED_BY_ROOT, '-czf', join(directory, archive), '-C', scratch, basename(place)]),
    ])
    const names = [archive, tarball, ...(debian === undefined ? [] : [debian])].toSorted()
    writeFileSync(
      join(directory, CHECKSUMS),
      names.map((name) => `${sha256(join(directory, name))}  ${name}\n`).join(''),
    )
    return { tarball, archive, debian }
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

/** Builds in a copy, because a program may be running from this checkout's `dist`. */
async function packForNpm(directory: string, scratch: string): Promise<string> {
  const source = join(scratch, 'source')
  const { name, version, files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  for (const each of ['package.json', ...files].filter((file) => file !== 'dist'))
    cpSync(join(ROOT, each), join(source, each), { recursive: true })
  await buildProgram(join(source, 'dist'))
  await execute('npm', ['pack', '--silent', '--ignore-scripts', `--pack-destination=${directory}`], {
    cwd: source,
  })
  return `${name}-${version}.tgz`
}

/** Returns the directory in `scratch`: `bin/muster`, its man pages, and in `lib` the program with what it needs. */
async function unpackWithNode(tarball: string, scratch: string): Promise<string> {
  const place = join(scratch, `muster-${PLATFORM}`)
  const program = join(place, 'lib', 'muster')
  mkdirSync(join(place, 'bin'), { recursive: true })
  mkdirSync(join(place, 'lib'))
  await execute('tar', ['-xzf', tarball, '-C', scratch])
  renameSync(join(scratch, 'package'), program)
  for (const each of ['node-pty', `@lydell/node-pty-${PLATFORM}`])
    cpSync(join(ROOT, 'node_modules', each), join(program, 'node_modules', each), { recursive: true })

  const node = realpathSync(process.execPath)
  const license = join(dirname(dirname(node)), 'LICENSE')
  if (!existsSync(license)) throw new Error(`cannot find the licence of ${node} at ${license}. Run: npm run dist`)
  copyFileSync(node, join(place, 'lib', 'node'))
  chmodSync(join(place, 'lib', 'node'), 0o755)
  copyFileSync(license, join(place, 'lib', 'node-LICENSE'))
  for (const each of ['README.md', 'LICENSE']) copyFileSync(join(ROOT, each), join(place, each))
  writeFileSync(join(place, 'bin', 'muster'), launcher(), { mode: 0o755 })
  // If `bin` is in PATH, man looks for pages here.
  mkdirSync(join(place, 'share', 'man'), { recursive: true })
  symlinkSync('../../lib/muster/dist/man', join(place, 'share', 'man', 'man1'))
  await letAllRead(place)
  return place
}

/** With man pages and completion where Debian's man and shells find them; undefined: there is no dpkg-deb. */
async function packForDebian(directory: string, scratch: string, place: string): Promise<string | undefined> {
  const architecture = DEBIAN_ARCHITECTURES[process.arch]
  if (architecture === undefined || !(await isInstalled('dpkg-deb'))) return undefined
  const { name, version, description } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const root = join(scratch, 'debian')
  const write = (path: string, data: string | Uint8Array) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), data)
  }
  cpSync(place, join(root, 'usr/lib/muster'), { recursive: true, verbatimSymlinks: true })
  mkdirSync(join(root, 'usr/bin'))
  symlinkSync('../lib/muster/bin/muster', join(root, 'usr/bin/muster'))
  const pages = join(place, 'lib/muster/dist/man')
  for (const page of readdirSync(pages))
    write(`usr/share/man/man1/${page}.gz`, gzipSync(readFileSync(join(pages, page)), { level: 9 }))
  for (const [shell, path] of Object.entries(DEBIAN_COMPLETIONS))
    write(path, (await execute(join(place, 'bin/muster'), ['completion', shell])).stdout)
  const licences = ['LICENSE', 'lib/node-LICENSE', 'lib/muster/dist/LICENSES.txt']
  write(`usr/share/doc/${name}/copyright`, licences.map((file) => readFileSync(join(place, file), 'utf8')).join('\n\n'))
  write(
    'DEBIAN/control',
    `Package: ${name}
Version: ${version}
Architecture: ${architecture}
Maintainer: the authors of Muster
Section: net
Priority: optional
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6
Recommends: openssh-client, bash-completion
Description: ${description}
`,
  )
  await letAllRead(root)
  const file = `${name}_${version}_${architecture}.deb`
  await execute('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', root, join(directory, file)])
  return file
}

/** Whatever the builder's umask is: what root installs, every user runs. */
const letAllRead = (directory: string) => execute('chmod', ['-R', 'u=rwX,go=rX', directory])

async function isInstalled(program: string): Promise<boolean> {
  return await execute(program, ['--version']).then(
    () => true,
    () => false,
  )
}

/** Starts the program with the Node beside it, also through symbolic links; checks stdout as bin/muster.js does. */
function launcher(): string {
  const [, check = ''] = readFileSync(join(ROOT, 'bin', 'muster.js'), 'utf8').split('\n')
  return `#!/bin/sh
${check}
file=$0
while [ -L "$file" ]; do
  to=$(readlink -- "$file")
  case $to in /*) file=$to ;; *) file=$(dirname -- "$file")/$to ;; esac
done
lib=$(dirname -- "$file")/../lib
exec "$lib/node" "$lib/muster/bin/muster.js" "$@"
`
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename) {
  const directory = join(ROOT, 'release')
  await makeRelease(directory)
  for (const name of readdirSync(directory)) process.stdout.write(`${join('release', name)}\n`)
}
