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
import { tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundle } from '../../scripts/build.ts'

const ROOT = join(import.meta.dirname, '../..')
const LIMIT_MS = 300_000
const STARTS = 200
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

describe('the packaged program', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bundle-'))
  const muster = async (...args: string[]) =>
    await promisify(execFile)(process.execPath, [join(directory, 'bin/muster.js'), ...args], {
      cwd: directory,
      env: { PATH: process.env.PATH, HOME: directory, MUSTER_RUNTIME_DIR: directory },
    })

  beforeAll(async () => {
    await bundle(ROOT, join(directory, 'dist'), [
      'terminal/graphemes.ts',
      'cli/net/own-machine.ts',
      'ui/charts/line-chart.ts',
    ])
    // Only what npm installs with it.
    mkdirSync(join(directory, 'node_modules'))
    for (const name of Object.keys(manifest.dependencies))
      symlinkSync(join(ROOT, 'node_modules', name), join(directory, 'node_modules', name))
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

  it('knows its own machine', { timeout: LIMIT_MS }, async () => {
    const script = `const { createOwnMachine } = await import('./dist/cli/net/own-machine.js')
      const machine = createOwnMachine()
      await machine.poll()
      console.log((await machine.poll()).memoryBytes)`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: directory,
    })
    expect(Number(stdout)).toBe(totalmem())
  })

  it('loads each of its files, such as the charts, which only some screens need', { timeout: LIMIT_MS }, async () => {
    // Ink's development tools are never asked for.
    const files = readdirSync(join(directory, 'dist')).filter((name) =>
      /^(?!main|run\.|run-here|console-process|whole-program|devtools-).*\.js$/.test(name),
    )
    expect(files.length).toBeGreaterThan(50)
    const script = `for (const file of ${JSON.stringify(files)})
      await import('./dist/' + file).catch((error) => console.log(file, error.message))
    process.exit()`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: directory,
    })
    expect(stdout).toBe('')
  })

  it('draws a chart without a warning of Node', { timeout: LIMIT_MS }, async () => {
    const script = `const { lineChart } = await import('./dist/ui/charts/line-chart.js')
      const rows = lineChart({ columns: 60, rows: 12, seconds: [-60, 0], series: [{ values: [1, 2, 3] }], theme: {} })
      console.log(rows.length)`
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: directory,
    })
    expect({ stdout, stderr }).toEqual({ stdout: '12\n', stderr: '' })
  })

  it('runs a command', { timeout: LIMIT_MS }, async () => {
    const { stdout } = await muster('run', 'all', '--fold', '--', 'echo hello')
    expect(stdout).toContain('hello')
    expect(stdout).toContain('(2)')
  })

  it('runs a command with two files of its code', { timeout: LIMIT_MS }, async () => {
    const alone = join(directory, 'alone')
    mkdirSync(alone)
    symlinkSync(join(directory, 'node_modules'), join(alone, 'node_modules'))
    const code = ['compile-cache.js', 'run.js', 'run-here.js'].map((name) => `dist/${name}`)
    for (const name of ['bin', 'package.json', 'hosts.yaml', ...code])
      cpSync(join(directory, name), join(alone, name), { recursive: true })
    const env = { PATH: process.env.PATH, HOME: directory, MUSTER_RUNTIME_DIR: directory }
    for (const options of [[], ['--fan-out', '2', '--hosts', 'hosts.yaml']]) {
      const words = [join(alone, 'bin/muster.js'), ...options, 'run', 'all', '--', 'echo hello']
      const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: alone, env })
      expect(stdout.split('\n').sort()).toEqual(['', 'here: hello', 'too: hello'])
    }
  })

  it('does nothing if stdout is closed, and says so', { timeout: LIMIT_MS }, async () => {
    const script =
      '"$0" run here -- touch touched >&-; echo $?; "$0" run here -- echo hello | head -n 0; "$0" --version > /dev/null; echo $?'
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: directory,
      MUSTER_RUNTIME_DIR: directory,
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

  it('names the Node version that it needs, in one line', { timeout: LIMIT_MS }, async () => {
    const needed = /^>=(\d+)\.(\d+)$/.exec(manifest.engines.node)?.slice(1).map(Number) ?? []
    const [major = 0, minor = 0] = needed
    const startOn = async (version: string) => {
      const preload = `data:text/javascript,globalThis.process = new Proxy(process, { get: (at, key) => key === 'versions' ? { node: '${version}' } : typeof at[key] === 'function' ? at[key].bind(at) : at[key] })`
      const args = ['--import', preload, join(directory, 'bin/muster.js'), '--version']
      return await promisify(execFile)(process.execPath, args, { env: { HOME: directory } }).then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
      )
    }
    const old = `${major}.${minor - 1}.0`
    expect(await startOn(old)).toEqual({
      code: 2,
      stdout: '',
      stderr: `muster: needs Node ${major}.${minor} or newer, this is ${old}\n`,
    })
    expect(await startOn(`${major}.${minor}.0`)).toMatchObject({ code: 0, stderr: '' })
    expect((await startOn('12.22.0')).code).toBe(2)
  })

  it('has one dependency', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['node-pty'])
  })

  it('contains the licence of every package in it', () => {
    const bill = JSON.parse(readFileSync(join(directory, 'dist/sbom.cdx.json'), 'utf8'))
    const licences = readFileSync(join(directory, 'dist/LICENSES.txt'), 'utf8')
    const ids: readonly string[] = bill.components.map((component: { 'bom-ref': string }) => component['bom-ref'])
    expect(ids).toEqual(expect.arrayContaining([expect.stringMatching(/^ink@/), expect.stringMatching(/^zod@/)]))
    const beside = ids.filter((id) => !licences.includes(`${id} (`)).map((id) => id.replace(/@[^@]*$/, ''))
    expect(beside.filter((name) => !name.startsWith('@lydell/node-pty'))).toEqual([])
    const sections = licences.split(/^.+@.+ \(.+\)\n=+\n/m).slice(1)
    expect(sections.length).toBe(ids.length - beside.length)
    expect(sections.filter((text) => !/copyright|public domain/i.test(text))).toEqual([])
  })

  // The addon reads its tables from the start of Node's buffer pool, even if something else has used the pool before.
  it('reads the width tables in each of 200 starts, however much of the pool of buffers is used', {
    timeout: LIMIT_MS,
  }, async () => {
    const graphemes = join(directory, 'dist/terminal/graphemes.js')
    const program = `const { installGraphemes } = await import(${JSON.stringify(graphemes)})
      installGraphemes({ unicode: { register: (tables) => console.log(tables.wcwidth(0x4e2d), tables.wcwidth(0x301)) } })`
    const answers = new Map<string, number>()
    const start = async (used: number) => {
      // The pool begins with zeros, which are an error in the header of the tables.
      const preload = `data:text/javascript,let begun; do begun = Buffer.allocUnsafe(${16 + 8 * used}).fill(0); while (begun.byteOffset > 0)`
      const args = ['--import', preload, '--input-type=module', '--eval', program]
      const answer = await promisify(execFile)(process.execPath, args).then(
        ({ stdout, stderr }) => stdout + stderr,
        (error) => String(error),
      )
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
    }
    const waiting = Array.from({ length: STARTS }, (_, used) => used)
    const work = async () => {
      for (let used = waiting.pop(); used !== undefined; used = waiting.pop()) await start(used)
    }
    await Promise.all([work(), work()])
    expect([...answers]).toEqual([['2 0\n', STARTS]])
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
