/** The real program where the machine gives it little: what the user sees of it, and how it ends. */
import { type ExecFileException, execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../support/console-options.ts'

describe('the program on a machine with limits', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'limits-'))
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { "m[1-64]": { transport: local } }\n', { mode: 0o600 })
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  /** `script`: for sh, in which "$@" is the program. */
  const muster = async (script: string, options = '') => {
    const program = [process.execPath, '--import', 'tsx', join(ROOT, 'src/main.ts')]
    const env = {
      PATH: process.env.PATH,
      HOME: directory,
      HOSTS: join(directory, 'hosts.yaml'),
      ...(options === '' ? {} : { NODE_OPTIONS: options }),
    }
    return await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(
        '/bin/sh',
        ['-c', script, 'sh', ...program],
        { cwd: ROOT, env, timeout: 60_000 },
        (error, stdout, stderr) => resolve({ code: (error as ExecFileException | null)?.code ?? 0, stdout, stderr }),
      )
    })
  }

  it('shows no warning of Node, and with --verbose each as one line', async () => {
    const warn = `data:text/javascript,${encodeURIComponent(`
      const { stdout } = process
      const write = stdout.write.bind(stdout)
      stdout.write = (...args) => {
        process.emitWarning('first\\nsecond', 'DeprecationWarning', 'DEP0001')
        return write(...args)
      }`)}`
    const run = '--hosts "$HOSTS" run m1 -- echo hello'
    const options = `--import ${warn}`
    expect(await muster(`"$@" ${run}`, options)).toEqual({ code: 0, stdout: 'm1: hello\n', stderr: '' })
    const { stderr } = await muster(`"$@" --verbose ${run}`, options)
    expect(stderr).toContain('muster: Node warns: DEP0001: first\\x0asecond\n')
  })

  it('works on fewer hosts at once where it may open few files, and says so', async () => {
    const { code, stdout, stderr } = await muster('ulimit -n 64; "$@" --hosts "$HOSTS" run all -- echo hello')
    expect(stderr).toMatch(
      /^muster: this process may open only 64 files: \d+ hosts? at once instead of 64\. Raise the limit: ulimit -n \d+\nmuster: 64 hosts: 64 ok\n$/,
    )
    expect(stdout.match(/^m\d+: hello$/gm)).toHaveLength(64)
    expect(code).toBe(0)
  })

  it('refuses where it may open too few files for a single host', async () => {
    const { code, stderr } = await muster('ulimit -n 32; "$@" --hosts "$HOSTS" run all -- echo hello')
    expect(stderr).toMatch(/too few for a single host\nRaise the limit: ulimit -n \d+\n$/)
    expect(code).toBe(2)
  })

  it('refuses to keep connections to more hosts than it may open files for', async () => {
    const { code, stderr } = await muster('ulimit -n 64; "$@" --hosts "$HOSTS" net watch all --json')
    expect(stderr).toMatch(
      /^muster: this process may open only 64 files, too few for connections to 64 hosts that stay open\n/,
    )
    expect(code).toBe(2)
  })

  it('ends with one line when its memory is used up', async () => {
    const grow = `data:text/javascript,${encodeURIComponent(`
      import { isMainThread } from 'node:worker_threads'
      const kept = []
      if (isMainThread) setInterval(() => { for (let at = 0; at < 10_000; at++) kept.push({ at }) }, 5).unref()`)}`
    const options = `--max-old-space-size=96 --import ${grow}`
    const { code, stdout, stderr } = await muster('"$@" --hosts "$HOSTS" run m1 -- sleep 60', options)
    expect(stderr).toMatch(
      /^muster: out of memory: it needs more than [\d.]+ MiB\. For twice as much: NODE_OPTIONS=--max-old-space-size=192\n$/,
    )
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })
})
