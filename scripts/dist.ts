/**
 * `npm run dist` writes what people install to `release/`: the package for npm, an archive with Node inside for this platform, and
 * their checksums.
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
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { buildProgram } from './build.ts'

const ROOT = join(import.meta.dirname, '..')
const PLATFORM = `${process.platform}-${process.arch}`
const CHECKSUMS = 'SHA256SUMS'
/** Otherwise tar, run as root, would unpack the files with the builder's user id. */
const OWNED_BY_ROOT = process.platform === 'darwin' ? ['--uid', '0', '--gid', '0'] : ['--owner=0', '--group=0']

/** Writes the package, the archive and `SHA256SUMS` into `directory`, which it empties first; returns their names. */
export async function makeRelease(directory: string): Promise<{ readonly tarball: string; readonly archive: string }> {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const scratch = mkdtempSync(join(tmpdir(), 'muster-release-'))
  try {
    const tarball = await packForNpm(directory, scratch)
    const archive = await archiveWithNode(directory, scratch, tarball)
    const lines = [archive, tarball].map((name) => `${sha256(join(directory, name))}  ${name}\n`)
    writeFileSync(join(directory, CHECKSUMS), lines.join(''))
    return { tarball, archive }
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
  await promisify(execFile)('npm', ['pack', '--silent', '--ignore-scripts', `--pack-destination=${directory}`], {
    cwd: source,
  })
  return `${name}-${version}.tgz`
}

async function archiveWithNode(directory: string, scratch: string, tarball: string): Promise<string> {
  const name = `muster-${PLATFORM}`
  const place = join(scratch, name)
  const program = join(place, 'lib', 'muster')
  mkdirSync(join(place, 'bin'), { recursive: true })
  mkdirSync(join(place, 'lib'))
  await promisify(execFile)('tar', ['-xzf', join(directory, tarball), '-C', scratch])
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

  const archive = `${name}.tar.gz`
  await promisify(execFile)('tar', [...OWNED_BY_ROOT, '-czf', join(directory, archive), '-C', scratch, name])
  return archive
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
