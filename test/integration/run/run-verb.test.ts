import { execFileSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { runProgram } from '../../../src/cli/program.ts'
import { ROOT } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const HOSTS = `
hosts:
  "m[8-10]": { transport: local }
  dead: { address: 127.0.0.1, port: 1 }
`

describe('muster run', () => {
  let directory: string
  const path = (name: string): string => join(directory, name)
  const lastRun = (): string => path('state/muster/last-run.json')

  /** The program with streams of its own: nothing is a terminal. */
  const start = (
    args: readonly string[],
    {
      stdin = '',
      signal = new AbortController().signal,
      isTerminal = false,
      fd,
    }: { stdin?: string; signal?: AbortSignal; isTerminal?: boolean; fd?: number } = {},
  ) => {
    const size = isTerminal ? { isTTY: true, columns: 80, rows: 24 } : {}
    const stdout = Object.assign(new PassThrough(), size)
    const stderr = Object.assign(new PassThrough(), size)
    let out = ''
    let err = ''
    stdout.setEncoding('utf8').on('data', (text) => (out += text))
    stderr.setEncoding('utf8').on('data', (text) => (err += text))
    const code = runProgram(args, {
      stdin: Object.assign(Readable.from([Buffer.from(stdin)]), fd === undefined ? {} : { fd }),
      stdout,
      stderr,
      environment: { ...process.env, HOME: directory, XDG_STATE_HOME: path('state'), XDG_CONFIG_HOME: path('config') },
      workingDirectory: directory,
      signal,
      now: Date.now,
    })
    return { code, stdout: () => out, stderr: () => err, breakStdout: (error: Error) => stdout.destroy(error) }
  }
  const run = async (args: readonly string[], options: { stdin?: string } = {}) => {
    const running = start(args, options)
    return { code: await running.code, stdout: running.stdout(), stderr: running.stderr() }
  }
  const lines = (text: string): string[] => text.trimEnd().split('\n').sort()

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'run-verb-'))
    writeFileSync(path('hosts.yaml'), HOSTS)
  })

  afterEach(() => rmSync(directory, { recursive: true }))

  it.each([
    ['as lines', '--no-fold'],
    ['folded', '--fold'],
    ['as a difference', '--diff'],
  ])('lets no output of a host act on a terminal through a pipe: %s', async (_, option) => {
    const command = [
      'printf "a\\tb\\n"',
      'test %h = m8 || printf "\\033]52;c;RVZJTA==\\007\\033[?1049hok\\rm8: DISK FAILED\\n"',
      'printf "\\033]0;title\\007\\n" >&2',
    ].join('; ')
    const { stdout, stderr } = await run(['run', 'm[8-10]', option, '--', command])
    expect(stdout + stderr).not.toMatch(/[^\n\t -~]/)
    expect(stdout).toContain('\\x1b]52;c;RVZJTA==\\x07\\x1b[?1049hok\\x0dm8: DISK FAILED\n')
    expect(stdout + stderr).toContain('\\x1b]0;title\\x07\n')
    expect(stdout).toContain('a\tb\n')
  })

  it('writes output to files as it is', async () => {
    await run(['run', 'm8', '--out', 'kept', '--', 'printf "\\033[1mbold\\r\\377"'])
    expect(readFileSync(path('kept/m8.out'))).toEqual(Buffer.from('\x1b[1mbold\r\xff', 'latin1'))
  })

  it('prefixes each line with its host, and keeps stdout and stderr apart', async () => {
    const { code, stdout, stderr } = await run(['run', 'm[8-9]', '--', 'echo %h is %n; printf oops >&2'])
    expect(lines(stdout)).toEqual(['m8: m8 is 1', 'm9: m9 is 2'])
    expect(lines(stderr)).toEqual(['m8: oops', 'm9: oops', 'muster: 2 hosts: 2 ok'])
    expect(code).toBe(0)
  })

  it('keeps any bytes unchanged in --json and in --out', async () => {
    // Large ones leave memory on their way.
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ minLength: 70_000, maxLength: 90_000 }))
    await fc.assert(
      fc.asyncProperty(bytes, bytes, async (out, err) => {
        writeFileSync(path('1'), out)
        writeFileSync(path('2'), err)
        const command = `cat '${path('1')}'; cat '${path('2')}' >&2`
        const { code, stdout } = await run(['run', 'm8', '--json', '--yes', '--out', 'files', '--', command])
        expect(code).toBe(0)
        const result = JSON.parse(stdout.split('\n')[0] ?? '')
        const told = (name: string) =>
          Buffer.from(result[name] ?? result[`${name}Base64`], name in result ? 'utf8' : 'base64')
        for (const [name, file, sent] of [
          ['stdout', 'files/m8.out', out],
          ['stderr', 'files/m8.err', err],
        ] as const) {
          expect(Buffer.compare(told(name), sent)).toBe(0)
          expect(Buffer.compare(readFileSync(path(file)), sent)).toBe(0)
        }
      }),
      { numRuns: 12 },
    )
  })

  it.each([
    [0, ['m8', '--', 'true']],
    [1, ['m[8-9]', '--', 'exit %n']],
    [1, ['m8', '--timeout', '0.1', '--', 'sleep 30']],
    [2, ['m8']],
    [2, ['m8', '--env', 'nonsense', '--', 'true']],
    [2, ['m8', '--timeout', '0', '--', 'true']],
    [2, ['m8', '--script', '/nonexistent']],
    // Bytes that shells read differently become longer on their way.
    [2, ['m8', '--', `echo ${'é'.repeat(20_000)}`]],
    [2, ['m8', '--env', `V=${'x'.repeat(100_000)}`, '--', 'true']],
    [2, ['--retry-failed']],
    [3, ['nobody', '--hosts', '/nonexistent', '--', 'true']],
    [4, ['m8,dead', '--', 'exit 1']],
  ])('exits with %i: %j', async (expected, args) => {
    const { code, stderr } = await run(['run', ...args])
    expect([code, stderr]).toEqual([expected, stderr])
  })

  it('prints JSON that matches its schema', async () => {
    const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, 'docs/schema/run.schema.json'), 'utf8')))
    const command = `[ %n = 1 ] && exec printf 'a\\377'; [ %n = 2 ] && exec sh -c 'kill -9 $$'; echo "é $V"`
    const { code, stdout } = await run(['run', 'm[8-10],dead', '--json', '--env', 'V=x=y', '--', command])
    const objects = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    for (const object of objects) expect(schema.safeParse(object).error).toBeUndefined()
    expect(schema.safeParse({ ...objects[0], host: 5 }).success).toBe(false)
    const of = (host: string) => objects.find((object) => object.host === host)
    expect(of('m8')).toMatchObject({ outcome: 'exit', code: 0, stdoutBase64: 'Yf8=', stderr: '' })
    expect(of('m9')).toMatchObject({ outcome: 'signal', signal: 'SIGKILL' })
    expect(of('m10')).toMatchObject({ outcome: 'exit', code: 0, stdout: 'é x=y\n' })
    expect(of('dead')).toMatchObject({ outcome: 'unreachable', reason: expect.stringContaining('connection refused') })
    expect(objects.at(-1)).toEqual({
      version: 1,
      type: 'summary',
      hosts: 4,
      exit0: 2,
      failed: 1,
      timeout: 0,
      cancelled: 0,
      unreachable: 1,
      refused: 0,
    })
    expect(code).toBe(4)
  })

  it('folds hosts with equal output under one header', async () => {
    const { stdout } = await run(['run', 'm[8-10]', '--fold', '--', 'echo same; [ %n != 2 ] || { echo more; exit 3; }'])
    const rule = '---------------'
    const groups = [rule, 'm[8,10] (2)', rule, 'same', rule, 'm9: exit 3', rule, 'same', 'more', '']
    expect(stdout).toBe(groups.join('\n'))
  })

  it('shows what differs from the majority', async () => {
    const { stdout } = await run(['run', 'm[8-10]', '--diff', '--', 'seq 5; [ %n != 2 ] || echo six'])
    expect(stdout).toContain('--- m[8,10]\n+++ m9\n@@ -3,3 +3,4 @@\n 3\n 4\n 5\n+six\n')
  })

  it('updates the groups on a terminal, and leaves only the result there', async () => {
    const gate = path('gate')
    const command = `echo first; while [ ! -e ${gate} ]; do sleep 0.05; done; echo last; [ %n != 2 ] || exit 3`
    const running = start(['run', 'm[8-10]', '--', command], { isTerminal: true })
    await waitUntil(() => running.stderr().includes('m[8-10] (3) …  first\n0/3 done, running: m[8-10]\n'), 'the group')
    writeFileSync(gate, '')
    expect(await running.code).toBe(1)
    expect(running.stderr()).toMatch(
      /\x1b\[\d+A\r\x1b\[Jmuster: 3 hosts: 2 ok, 1 failed\nmuster: %n stands for [^\n]+\n$/,
    )
    expect(running.stdout()).toContain('m[8,10] (2)')
  })

  it('lets nothing that a host prints act on a terminal', async () => {
    const command = "printf '\\033]0;owned\\007\\033[2Jx\\n'; printf '\\033[2Jy\\n' >&2"
    for (const option of ['--fold', '--no-fold', '--diff']) {
      const running = start(['run', 'm8', option, '--color', 'never', '--', command], { isTerminal: true })
      expect(await running.code).toBe(0)
      const text = running.stdout() + running.stderr()
      expect(text).toContain('\\x1b]0;owned\\x07\\x1b[2Jx')
      expect(text).not.toContain('\x1b[2J')
      expect(text).not.toContain('\x07')
    }
  })

  it('writes files for each host byte by byte, and overwrites none without asking', async () => {
    const args = ['run', 'm[8-9]', '--out', 'results', '--', "printf 'a\\377'; echo bad >&2"]
    const { code, stdout } = await run(args)
    expect([code, stdout]).toEqual([0, ''])
    expect(readdirSync(path('results')).sort()).toEqual(['m8.err', 'm8.out', 'm9.err', 'm9.out'])
    expect(readFileSync(path('results/m8.out'))).toEqual(Buffer.from([0x61, 0xff]))
    expect(readFileSync(path('results/m9.err'), 'utf8')).toBe('bad\n')
    const again = await run(args)
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expect((await run([...args.slice(0, 4), '--yes', ...args.slice(4)])).code).toBe(0)
  })

  it('writes no files for a host where the command has not started, and removes old ones', async () => {
    for (const yes of [[], ['--yes']]) {
      const { code } = await run(['run', 'm8,dead', '--out', 'results', ...yes, '--', 'true'])
      expect([code, readdirSync(path('results')).sort()]).toEqual([4, ['m8.err', 'm8.out']])
      writeFileSync(path('results/dead.out'), 'of an earlier run')
    }
  })

  it('runs a local script with its own interpreter, arguments and stdin', async () => {
    writeFileSync(path('fix.pl'), '#!/usr/bin/perl -w\nprint "@ARGV: ", <STDIN>;\n')
    const { stdout } = await run(['run', 'm8', '--script', 'fix.pl', '--stdin', '-', '--', '--force', 'a b %h'], {
      stdin: 'typed\n',
    })
    expect(stdout).toBe('m8: --force a b m8: typed\n')
  })

  it.skipIf(!requirement('/proc'))(
    'says at a terminal that a pipe was not sent, and nothing about a file',
    async () => {
      execFileSync('mkfifo', [path('pipe')])
      writeFileSync(path('file'), '1\n')
      const said = []
      for (const name of ['pipe', 'file']) {
        const fd = openSync(path(name), 'r+')
        try {
          for (const [isTerminal, words] of [
            [true, []],
            [true, ['--stdin', '-']],
            [false, []],
          ] as const) {
            const { code, stderr } = start(['run', 'm8', ...words, '--', 'cat'], { isTerminal, fd })
            await code
            if (stderr().includes('pass --stdin - to send it')) said.push([name, isTerminal, ...words])
          }
        } finally {
          closeSync(fd)
        }
      }
      expect(said).toEqual([['pipe', true]])
    },
  )

  it('says at a terminal which of the placeholders it replaced, last', async () => {
    const said = []
    for (const [isTerminal, ...words] of [
      [true, '--', 'echo %u'],
      [true, '--raw', '--', 'echo %u'],
      [true, '--json', '--', 'echo %u'],
      [true, '--', 'date +%s'],
      [false, '--', 'echo %u'],
    ] as const) {
      const { code, stderr } = start(['run', 'm8', ...words], { isTerminal })
      await code
      if (stderr().includes('stands for')) said.push([words, stderr().split('\n').at(-2)])
    }
    const sentence = "muster: %u stands for each host's user; for a literal %u write %%u, or pass --raw"
    expect(said).toEqual([[['--', 'echo %u'], expect.stringContaining(sentence)]])
  })

  it('retries on the failed hosts only', async () => {
    const command = `echo ran; [ %n = 1 ] || test -e ${path('mended')}`
    expect((await run(['run', 'm[8-10]', '--', command])).code).toBe(1)
    expect(statSync(lastRun()).mode & 0o777).toBe(0o600)
    writeFileSync(path('mended'), '')
    const retried = await run(['run', '--retry-failed'])
    expect(lines(retried.stdout)).toEqual(['m10: ran', 'm9: ran'])
    expect(retried.stderr).toMatch(/^muster: repeating on m\[9-10\] what ended at \d\d:\d\d: echo ran; /)
    expect(retried.code).toBe(0)
    expect(await run(['run', '--retry-failed'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('succeeded'),
    })
  })

  it('runs in batches, stops after a failure, and goes on where it has not started', async () => {
    const command = `echo ran; [ %n != 1 ] || test -e ${path('mended')}`
    const stopped = await run(['run', 'm[8-10]', '--serial', '1', '--', command])
    expect([stopped.code, lines(stopped.stdout)]).toEqual([1, ['m8: ran']])
    expect(stopped.stderr).toContain('not started on m[9-10]; --retry-failed includes them\n')
    writeFileSync(path('mended'), '')
    const { code, stdout } = await run(['run', '--retry-failed', '--serial', '50%'])
    expect([code, stdout]).toEqual([0, 'm8: ran\nm9: ran\nm10: ran\n'])
  })

  it('does not stop between batches with --yes', async () => {
    const { code, stdout } = await run(['run', 'm[8-10]', '--serial', '2', '--yes', '--fold', '--', 'echo %n; exit 1'])
    expect(code).toBe(1)
    expect(stdout.match(/^m\d+: exit 1$/gm)).toEqual(['m8: exit 1', 'm9: exit 1', 'm10: exit 1'])
  })

  it('starts nowhere else after the first failure with --fail-fast', async () => {
    const { code, stdout, stderr } = await run([
      'run',
      'm[8-10]',
      '--fail-fast',
      '--fan-out',
      '1',
      '--',
      'echo %h; exit 1',
    ])
    expect([code, stdout]).toEqual([1, 'm8: m8\n'])
    expect(stderr).toBe(
      'muster: m8: exit 1\nmuster: 3 hosts: 1 failed, 2 cancelled\nmuster: not started on m[9-10]; --retry-failed includes them\n',
    )
  })

  it('prints only the fields that --json names', async () => {
    const { code, stdout } = await run(['run', 'm8,dead', '--json=stdout,host,code', '--', 'echo %h'])
    expect(lines(stdout).toSorted()).toEqual([
      '{"stdout":"","host":"dead","code":null}',
      '{"stdout":"m8\\n","host":"m8","code":0}',
    ])
    expect(code).toBe(4)
  })

  it('tries again until the command succeeds, and keeps the output of the last attempt', async () => {
    const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, 'docs/schema/run.schema.json'), 'utf8')))
    const command = `echo attempt >>${path('attempts')}; cat ${path('attempts')}; [ $(wc -l <${path('attempts')}) = 2 ]`
    const { code, stdout } = await run(['run', 'm8', '--until-ok', '--json', '--', command])
    const objects = lines(stdout).map((line) => schema.parse(JSON.parse(line)))
    expect(objects).toMatchObject([
      { type: 'result', host: 'm8', outcome: 'exit', code: 0, stdout: 'attempt\nattempt\n' },
      { type: 'retry', host: 'm8', outcome: 'exit', code: 1, failures: 1 },
      { type: 'summary', hosts: 1, exit0: 1 },
    ])
    expect(code).toBe(0)
  })

  it('gives up after --timeout, however many attempts there were', async () => {
    const { code, stderr } = await run(['run', 'm8', '--until-ok', '--timeout', '2', '--', 'exit 7'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^muster: m8: exit 7; next attempt in 1 s$/m)
    expect(stderr).toMatch(/^muster: m8: (exit 7|timed out)$/m)
  })

  it.each(['0', '0%', '101%', '1.5', 'half', '-1'])('refuses --serial %s', async (size) => {
    const { code, stderr } = await run(['run', 'm8', `--serial=${size}`, '--', 'true'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('such as 2 or 25%')])
  })

  it('stores no value of a variable, and asks for it again', async () => {
    await run(['run', 'm8', '--env', 'TOKEN=sesame', '--', 'exit 1'])
    expect(readFileSync(lastRun(), 'utf8')).not.toContain('sesame')
    const { code, stderr } = await run(['run', '--retry-failed'])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--env TOKEN=')])
  })

  it('refuses further hosts before --, and says how several hosts are written', async () => {
    const { code, stderr } = await run(['run', 'm8', 'm9', 'm10', '--', 'true'])
    expect(stderr).toBe('muster: more than one target: m8 m9 m10\nSeveral hosts are one word: m8,m9,m10\n')
    expect(code).toBe(2)
    const { stdout } = await run(['run', 'm8', '--dry-run', 'git', 'log', '--', 'm9'])
    expect(stdout).toMatch(/^m8: git log /)
  })

  it('says what would run on which host, and runs nothing', async () => {
    const { stdout } = await run(['run', 'm[8-9]', '--dry-run', '--', `touch ${path('touched')} # %h`])
    expect(stdout).toBe(`m8: touch ${path('touched')} # m8\nm9: touch ${path('touched')} # m9\n`)
    expect(existsSync(path('touched'))).toBe(false)
    expect(existsSync(lastRun())).toBe(false)
  })

  it('stops and says why when stdout cannot be written', async () => {
    const running = start(['run', 'm[8-9]', '--', 'echo begun; sleep 30'])
    await waitUntil(() => running.stdout().includes('begun'), 'the command')
    running.breakStdout(Object.assign(new Error('no space left on device'), { code: 'ENOSPC' }))
    expect(await running.code).toBe(1)
    expect(running.stderr()).toContain('muster: cannot write to stdout: no space left on device\n')
    expect(running.stderr()).toContain('2 cancelled')
  })

  it('stops silently when its reader has seen enough', async () => {
    const running = start(['run', 'm[8-9]', '--', 'echo begun; sleep 30'])
    await waitUntil(() => running.stdout().includes('begun'), 'output')
    running.breakStdout(Object.assign(new Error('broken pipe'), { code: 'EPIPE' }))
    expect(await running.code).toBe(1)
    expect(running.stderr()).toBe('')
  })

  it('is stopped by an interrupt, reports every host, and exits with 130', async () => {
    const interrupt = new AbortController()
    const running = start(['run', 'm[8-10]', '--fan-out', '2', '--', 'echo begun; sleep 30'], {
      signal: interrupt.signal,
    })
    await waitUntil(() => running.stdout().split('begun').length === 3, 'two hosts')
    interrupt.abort()
    expect(await running.code).toBe(130)
    expect(running.stderr()).toContain('muster: 3 hosts: 3 cancelled')
  })
})
