/** What every verb keeps of the command line: shared options, limits, help, and messages that say what is wrong. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { runProgram } from '../../src/cli/program.ts'
import { ROOT } from '../support/console-options.ts'
import { requirement } from '../support/requirements.ts'

const HOSTS = 'cluster: lab\nhosts: { "m[8-10]": { transport: local } }\n'

const schemaOf = (name: string) =>
  z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, `docs/schema/${name}.schema.json`), 'utf8')))

describe('the command line', () => {
  let directory: string

  const muster = async (
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    signal = new AbortController().signal,
  ) => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const code = await runProgram(args, {
      stdin: Readable.from([]),
      stdout,
      stderr,
      environment: { ...process.env, HOME: directory, XDG_STATE_HOME: join(directory, 'state'), ...environment },
      workingDirectory: directory,
      signal,
      now: Date.now,
    })
    return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') }
  }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'command-line-'))
    writeFileSync(join(directory, 'hosts.yaml'), HOSTS)
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  it('accepts --dry-run and --timeout before and after the verb', async () => {
    for (const args of [
      ['--dry-run', 'run', 'm8', '--', 'touch', 'touched'],
      ['run', '--dry-run', 'm8', '--', 'touch', 'touched'],
    ]) {
      expect(await muster(args)).toEqual({ code: 0, stdout: 'm8: touch touched\n', stderr: '' })
    }
    expect((await muster(['--timeout', '60', 'run', 'm8', '--', 'true'])).code).toBe(0)
    expect((await muster(['hosts', 'm8', '--dry-run', '--timeout', '60'])).code).toBe(0)
  })

  it.skipIf(!requirement('mkfifo'))('is ended by a signal while it waits for a hosts file that is a pipe', async () => {
    const pipe = join(directory, 'pipe')
    execFileSync('mkfifo', [pipe])
    await using _writer = await open(pipe, 'r+')
    const verbs = [
      ['hosts'],
      ['run', 'm8', '--', 'true'],
      ['copy', 'm8', 'hosts.yaml', 'x'],
      ['doctor'],
      ['net', 'mesh'],
      ['job', 'list'],
      ['status'],
    ]
    for (const verb of verbs) {
      const { code, stderr } = await muster(['--hosts', pipe, ...verb], {}, AbortSignal.abort('SIGTERM'))
      expect([...verb, code, stderr]).toEqual([...verb, 130, 'muster: stopped\n'])
    }
  })

  it('refuses --dry-run if the verb would change something anyway', async () => {
    for (const args of [
      ['job', 'cancel', '1'],
      ['hosts', '--stop'],
      ['import', 'ssh', '-o', 'x'],
      ['net', 'pair', 'm8', 'm9'],
      ['net', 'watch', '--json', '--count', '1', '--record', 'x'],
      ['m8'],
    ]) {
      const { code, stderr } = await muster([...args, '--dry-run'])
      expect([code, stderr]).toEqual([2, expect.stringMatching(/has no --dry-run: nothing was done/)])
    }
  })

  it('stops a verb after --timeout, with an exit code that is no success', async () => {
    const { code, stderr } = await muster(['net', 'watch', '--json', '--timeout', '0.2'])
    expect([code, stderr]).toEqual([1, 'muster: stopped after 0.2 s (--timeout)\n'])
  })

  it('accepts time limits that are longer than a timer allows', async () => {
    const args = ['run', 'm8', '--timeout', '99999999', '--connect-timeout', '99999999', '--', 'echo', 'here']
    expect(await muster(args)).toEqual({ code: 0, stdout: 'm8: here\n', stderr: '' })
  })

  it('prints nothing but JSON with --json and --dry-run', async () => {
    const run = await muster(['run', 'm[8-9]', '--dry-run', '--json', '--', 'echo', '%h'])
    const lines = run.stdout.trim().split('\n')
    expect(lines.map((line) => schemaOf('run').parse(JSON.parse(line)))).toMatchObject([
      { type: 'would-run', host: 'm8', command: 'echo m8' },
      { type: 'would-run', host: 'm9', command: 'echo m9' },
    ])
    const mesh = await muster(['net', 'mesh', 'm[8-9]', '--dry-run', '--json'])
    const events = mesh.stdout.trim().split('\n')
    expect(events.map((line) => schemaOf('net-mesh').parse(JSON.parse(line)))).toMatchObject([
      { type: 'would-measure', step: 1 },
      { type: 'would-measure', step: 2 },
      { type: 'plan', links: 2, steps: 2 },
    ])
  })

  it('suggests the verb nearest to a misspelt one', async () => {
    for (const args of [['cpoy', 'm8', 'a', 'b'], ['hots'], ['jbo', '--bogus']]) {
      const { code, stderr } = await muster(args)
      expect([code, stderr]).toEqual([
        2,
        expect.stringMatching(/^muster: unknown command: .*; did you mean muster (copy|hosts|job)\?\n/),
      ])
    }
    expect((await muster(['run'])).stderr).not.toContain('did you mean')
  })

  it('suggests the verb that other tools call otherwise', async () => {
    for (const [word, meant] of Object.entries({ add: 'submit', rm: 'cancel', stop: 'cancel', status: 'show' }))
      expect((await muster(['job', word, '3'])).stderr).toContain(`Did you mean muster job ${meant}?`)
  })

  it('names the group that is meant by its bare name, wherever a target is read', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), `${HOSTS}groups: { gpu: m8 }\n`)
    for (const args of [
      ['gpu'],
      ['hosts', 'gpu'],
      ['hosts', '--exclude', 'gpu'],
      ['run', 'gpu,m9', '--', 'true'],
      ['copy', 'gpu', 'hosts.yaml', 'x'],
      ['fetch', 'gpu', 'hosts.yaml', 'x'],
      ['forward', 'gpu', '8265'],
      ['doctor', 'gpu'],
      ['left', 'gpu'],
      ['net', 'pair', 'gpu', 'm9'],
      ['job', 'submit', '--on', 'gpu', '--', 'true'],
    ])
      expect([args, await muster(args)]).toEqual([
        args,
        { code: 2, stdout: '', stderr: expect.stringContaining('there is no host gpu; the group is @gpu\n') },
      ])
  })

  it('says what is wrong with the name of a state, and prints no empty table', async () => {
    const { code, stderr } = await muster(['job', 'list', '--state', 'runing'])
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^muster: unknown state: runing; did you mean running\?/)])
    expect((await muster(['job', 'list', '--state', 'running,done'])).stdout).toBe('no jobs; no scheduler running\n')
  })

  it.each([
    ['run', 'm8', '--script', 'missing'],
    ['run', 'm8', '--stdin', 'missing', '--', 'cat'],
    ['job', 'submit', '--from', 'missing'],
    ['simulate', 'gangs', 'missing'],
    ['import', 'ssh', 'missing'],
    ['hosts', '--hosts', 'missing'],
  ])('%s %s %s %s: says that the file is missing', async (...args) => {
    expect((await muster(args)).stderr).toMatch(/(missing cannot be read|cannot read .*missing): no such file\n/)
  })

  it('refuses a job number that is no number', async () => {
    const { code, stderr } = await muster(['job', 'cancel', 'seventeen'])
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^muster: .*'seventeen'.* It must be a job number, or a range such as 17-19\.\n/),
    ])
  })

  it.each([
    [['copy', 'm1:/tmp/a', 'my dir'], "muster fetch m1 /tmp/a 'my dir'"],
    [['copy', 'app.conf', 'root@m1:~/x'], "muster copy root@m1 app.conf '~/x'"],
    [['fetch', 'm1:~/run.log', '.'], "muster fetch m1 '~/run.log' ."],
    [['copy', 'm1:/a', 'm2:/b'], undefined],
  ])('says how to write what is written as for scp: %j', async (words, command) => {
    const { code, stderr } = await muster(words)
    expect(code).toBe(2)
    if (command === undefined) expect(stderr).toContain('\nExample: ')
    else expect(stderr).toContain(`\nRun: ${command}\n`)
  })

  it('treats an empty path as an unset variable, and copies nothing', async () => {
    for (const args of [
      ['copy', 'm8', '', 'there'],
      ['copy', 'm8', 'hosts.yaml', ''],
      ['fetch', 'm8', '', 'here'],
    ]) {
      const { code, stderr } = await muster(args)
      expect([code, stderr]).toEqual([2, expect.stringMatching(/^muster: a path is empty\n/)])
    }
  })

  it('refuses a path that names a host, as for scp', async () => {
    for (const args of [
      ['copy', 'm8', 'hosts.yaml', 'm8:/tmp/'],
      ['copy', 'm8', 'hosts.yaml', 'root@m8:'],
      ['fetch', 'm8', 'm8:/etc/hosts', 'here'],
    ]) {
      const { code, stderr } = await muster(args)
      expect([code, stderr]).toEqual([2, expect.stringMatching(/ names a host, but .*\n.*\.\/(root@)?m8:/)])
    }
  })

  it.runIf(process.platform === 'linux')('says so where its state cannot be kept, and ends', async () => {
    const run = await muster(['run', 'm8', '--', 'true'], { XDG_STATE_HOME: '/proc' })
    expect([run.code, run.stderr]).toEqual([0, expect.stringContaining('--retry-failed will not know about this run')])
    const submit = await muster(['job', 'submit', 'true'], { XDG_STATE_HOME: '/proc' })
    expect([submit.code, submit.stderr]).toEqual([
      3,
      expect.stringContaining('/proc/muster/jobs/lab.db cannot be used'),
    ])
    const list = await muster(['job', 'list'], { XDG_STATE_HOME: '/proc' })
    expect([list.code, list.stdout]).toEqual([0, 'no jobs; no scheduler running\n'])
  })

  const VERBS =
    `run copy fetch hosts doctor demo up down status import pack env:check env:status env:up env:sync env:down
    nfs:status nfs:check nfs:up nfs:down ray:status ray:up ray:down ray:restart ray:submit ray:jobs ray:logs ray:stop ray:watch
    net:mesh net:pair net:watch job:submit job:list job:show job:results job:logs job:cancel job:hold job:release job:retry
    job:requeue job:edit job:wait job:work job:clean simulate:fleet simulate:openb simulate:gangs simulate:queue simulate:swf
    env nfs ray job simulate`.split(/\s+/)

  const isLocal = (verb: string) =>
    /^(simulate.*|import|demo|job:(list|show|results|cancel|hold|release|retry|requeue|edit|wait))$/.test(verb)

  it.each(VERBS)('muster %s --help shows examples, and the shared options that it takes', async (verb) => {
    const { code, stdout } = await muster([...verb.split(':'), '--help'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`Examples?:\n(?:.*\n)*  muster ${verb.replace(':', ' ')}`))
    expect(stdout.includes('--connect-timeout <s>')).toBe(!isLocal(verb))
    expect(stdout).toContain('--verbose')
    expect(stdout).not.toMatch(/default: (\[|\{)/)
  })
})
