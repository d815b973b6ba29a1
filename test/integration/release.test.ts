/** The output of `npm run dist`, installed with npm, and unpacked with its own Node. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeRelease, type Release } from '../../scripts/dist.ts'
import { openConsole } from '../support/console-driver.ts'
import { writeProgram } from '../support/program.ts'
import { requirement } from '../support/requirements.ts'

const execute = promisify(execFile)
/** Packing and unpacking Node (127 MB) takes long. */
const LIMIT_MS = 900_000
const PLATFORM = `${process.platform}-${process.arch}`

describe('a release', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-release-test-'))
  const release = join(directory, 'release')
  const home = join(directory, 'home')
  const strange = join(directory, 'strange')
  const muster = join(directory, `muster-${PLATFORM}`, 'bin', 'muster')
  const environment = { PATH: `${strange}:${process.env.PATH}`, HOME: home, MUSTER_RUNTIME_DIR: home }
  let made: Release

  beforeAll(async () => {
    mkdirSync(home, { mode: 0o700 })
    writeProgram(join(strange, 'node'), 'echo another Node >&2\nexit 1')
    const umask = process.umask(0o077)
    try {
      made = await makeRelease(release)
    } finally {
      process.umask(umask)
    }
    await execute('tar', ['-xzf', join(release, made.archive), '-C', directory])
  }, LIMIT_MS)
  afterAll(() => rmSync(directory, { recursive: true }))

  it('has the checksum of each file', async () => {
    const { stdout } = await execute('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: release })
    const { tarball, archive, debian } = made
    expect(stdout.trim().split('\n').toSorted()).toEqual(
      [tarball, archive, ...(debian === undefined ? [] : [debian])].map((name) => `${name}: OK`).toSorted(),
    )
  })

  it('can be read by every user, whatever the umask of the builder', async () => {
    const { archive, debian } = made
    const { stdout } = await execute('tar', ['-tvzf', join(release, archive)], { maxBuffer: 1 << 24 })
    const contents =
      debian === undefined
        ? ''
        : (await execute('dpkg-deb', ['--contents', join(release, debian)], { maxBuffer: 1 << 24 })).stdout
    const modes = new Set(`${stdout}${contents}`.match(/^\S{10}/gm))
    expect([...modes].filter((mode) => !/^(-rw-r--r--|-rwxr-xr-x|drwxr-xr-x|lrwxrwxrwx)$/.test(mode))).toEqual([])
  })

  it('packs the built program and its documentation, and neither sources nor tests', async () => {
    const { stdout } = await execute('tar', ['-tzf', join(release, made.tarball)], { maxBuffer: 1 << 24 })
    const files = stdout.trim().split('\n')
    expect([...new Set(files.map((file) => file.split('/')[1]))].toSorted()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'dist', 'docs', 'hosts.yaml', 'package.json'].toSorted(),
    )
    for (const file of ['bin/muster.js', 'dist/main.js', 'dist/LICENSES.txt', 'dist/sbom.cdx.json'])
      expect(files).toContain(`package/${file}`)
    const { man } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
    expect(man.length).toBeGreaterThan(20)
    for (const file of man) expect(files).toContain(`package/${file.replace('./', '')}`)
  })

  it.skipIf(!requirement('dpkg-deb', 'man'))(
    'has a package for Debian, with man pages and completion in their places',
    async () => {
      const root = join(directory, 'debian')
      await execute('dpkg-deb', ['--extract', join(release, made.debian ?? ''), root])
      const muster = join(root, 'usr/bin/muster')
      const { stdout } = await execute(muster, ['--version'], { env: environment })
      expect((await execute('dpkg-deb', ['--field', join(release, made.debian ?? ''), 'Version'])).stdout).toBe(stdout)
      const page = await execute('man', ['--local-file', join(root, 'usr/share/man/man1/muster-run.1.gz')])
      expect(page.stdout).toContain('run a command on every host of the target')
      for (const path of [
        'bash-completion/completions/muster',
        'zsh/vendor-completions/_muster',
        'fish/vendor_completions.d/muster.fish',
      ])
        expect(readFileSync(join(root, 'usr/share', path), 'utf8')).toContain(' --complete ')
    },
  )

  it('runs with the Node inside, also through symbolic links', async () => {
    const links = join(directory, 'links')
    mkdirSync(links)
    symlinkSync(muster, join(directory, 'first'))
    symlinkSync('../first', join(links, 'muster'))
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
    for (const file of [muster, join(links, 'muster')])
      expect(await execute(file, ['--version'], { env: environment })).toEqual({ stdout: `${version}\n`, stderr: '' })
  })

  it('does nothing if stdout is closed, and says so', async () => {
    const { stdout, stderr } = await execute('/bin/sh', ['-c', '"$0" --version >&-; echo $?', muster], {
      env: environment,
    })
    expect(stdout).toBe('1\n')
    expect(stderr).toMatch(/^muster: stdout is closed, nothing was done\./)
  })

  it('shows the demo, and types into it', async () => {
    await using console = await openConsole({ program: [muster], args: ['demo', '--count', '2'], environment })
    await console.expectReady()
    await console.type('echo $((6 * 7))\r')
    await console.expectOnAll(['m1', 'm2'], () => /^42$/m)
  })
})
