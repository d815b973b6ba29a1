import { execFile } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundle } from '../../scripts/build.ts'

const ROOT = join(import.meta.dirname, '../..')
const LIMIT_MS = 300_000

describe('the packaged program', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bundle-'))
  const muster = async (...args: string[]) =>
    await promisify(execFile)(process.execPath, [join(directory, 'bin/muster.js'), ...args], {
      cwd: directory,
      env: { PATH: process.env.PATH, HOME: directory, XDG_RUNTIME_DIR: directory },
    })

  beforeAll(async () => {
    await bundle(ROOT, join(directory, 'dist'))
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
    cpSync(join(ROOT, 'package.json'), join(directory, 'package.json'))
    cpSync(join(ROOT, 'bin'), join(directory, 'bin'), { recursive: true })
    // As npm does.
    chmodSync(join(directory, 'bin/muster.js'), 0o755)
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts:\n  here: { transport: local }\n  too: { transport: local }\n')
  }, LIMIT_MS)
  afterAll(() => rmSync(directory, { recursive: true }))

  it('loads every verb', { timeout: LIMIT_MS }, async () => {
    expect((await muster('--help')).stdout).toContain('muster')
    expect((await muster('--version')).stdout).toMatch(/^\d+\.\d+\.\d+/)
  })

  it('runs a command', { timeout: LIMIT_MS }, async () => {
    const { stdout } = await muster('run', 'all', '--fold', '--', 'echo hello')
    expect(stdout).toContain('hello')
    expect(stdout).toContain('(2)')
  })

  it('does nothing if stdout is closed, and says so', { timeout: LIMIT_MS }, async () => {
    const script =
      '"$0" run here -- touch touched >&-; echo $?; "$0" run here -- echo hello | head -n 0; "$0" --version > /dev/null; echo $?'
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: directory,
      XDG_RUNTIME_DIR: directory,
    }
    const { stdout, stderr } = await promisify(execFile)('/bin/sh', ['-c', script, join(directory, 'bin/muster.js')], {
      cwd: directory,
      env,
    })
    expect({ stdout, stderr }).toEqual({
      stdout: '1\n0\n',
      stderr: 'muster: stdout is closed, nothing was done. To discard the output: > /dev/null\n',
    })
    expect(existsSync(join(directory, 'touched'))).toBe(false)
  })

  it('keeps compiled code only where no other user can write', { timeout: LIMIT_MS }, async () => {
    await muster('run', 'all', '--dry-run', '--', 'true')
    expect(readdirSync(join(directory, '.cache/muster/compiled'))).not.toEqual([])
    rmSync(join(directory, '.cache'), { recursive: true })
    mkdirSync(join(directory, '.cache/muster'), { recursive: true })
    chmodSync(join(directory, '.cache/muster'), 0o777)
    await muster('run', 'all', '--dry-run', '--', 'true')
    expect(existsSync(join(directory, '.cache/muster/compiled'))).toBe(false)
  })

  it('contains the licences of the packages in it', () => {
    expect(readdirSync(join(directory, 'dist'))).toContain('LICENSES.txt')
  })

  it('lists every package in it with version and licence, as CycloneDX', () => {
    const bill = JSON.parse(readFileSync(join(directory, 'dist/sbom.cdx.json'), 'utf8'))
    expect(bill.bomFormat).toBe('CycloneDX')
    type Component = { name: string; version: string; licenses?: readonly unknown[] }
    const components: readonly Component[] = bill.components
    expect(components.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['ssh2', 'commander', 'yaml', 'node-pty']),
    )
    expect(components.filter(({ version, licenses }) => version === '' || (licenses ?? []).length === 0)).toEqual([])
  })
})
