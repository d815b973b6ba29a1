/** Verbs of `muster job` that need no host, with streams of their own. */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Notifier } from '../../../../src/cli/job/work.ts'
import { JOB_COLUMNS, type JobColumn } from '../../../../src/scheduler/jobs/job-columns.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { writeProgram } from '../../../support/program.ts'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-job-verbs-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { here: { transport: local }, there: { transport: local } }\n',
  )
})
afterEach(() => rmSync(directory, { recursive: true }))

const job = (args: readonly string[], stdin: readonly string[] = []) => muster(['job', ...args], stdin)

const muster = (args: readonly string[], stdin: readonly string[] = []) =>
  runMuster(args, { directory, stdin, now: () => 1000 })

const FILE = () => join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db')

/** As another program. */
function change(sql: string): void {
  const file = new DatabaseSync(FILE())
  file.exec(sql)
  file.close()
}

const openStore = () => new JobStore(FILE())

test('list and work name jobs that still run in the queue of the name that the cluster had before', async () => {
  await job(['submit', '--', 'true'])
  {
    using store = openStore()
    const lease = store.lease.take('test', 1000, 60_000)
    applyEvent(store, 1, { kind: 'placed', places: [{ host: 'old', address: 'here', devices: [] }] }, 1000, lease)
  }
  const words =
    'here: 1 job runs there in the queue of the cluster lab, which is not this one. If hosts.yaml gave that cluster another name, take the name back until they have ended: cluster: lab'
  expect((await job(['list'])).output).not.toContain(words)
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: prod\nhosts: { here: { transport: local }, there: { transport: local } }\n',
  )
  const listed = await job(['list'])
  expect([listed.exitCode, listed.output]).toEqual([0, `no jobs; no scheduler running\n${words}\n`])
  expect((await job(['work', '--until-empty'])).messages).toContain(`muster: ${words}\n`)
  // Another cluster.
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: prod\nhosts: { there: { transport: local } }\n')
  expect((await job(['list'])).output).toBe('no jobs; no scheduler running\n')
})

describe('a damaged queue', () => {
  test('list shows the other jobs and names the damaged one; show and work say the same', async () => {
    for (let count = 0; count < 3; count += 1) await job(['submit', '--', 'true'])
    for (const state of ['{]', '[]', '{"kind":"running"}']) {
      change(`UPDATE jobs SET state = '${state}'${state.includes('kind') ? ", kind = 'running'" : ''} WHERE id = 2`)
      const said = {
        exitCode: 3,
        messages: expect.stringContaining(`job 2 in the queue ${FILE()} is damaged: its state `),
      }
      const listed = await job(['list'])
      expect(listed).toMatchObject(said)
      expect(listed.output.match(/^\d(?=\t)/gm)).toEqual(['1', '3'])
      const lines = (await job(['list', '--json'])).output.trim().split('\n')
      expect(lines.map((line) => JSON.parse(line).job)).toEqual([3, 1])
      for (const args of [
        ['list', '--json'],
        ['show', '2'],
        ['cancel', '2'],
        ['work', '--until-empty'],
      ])
        expect(await job(args)).toMatchObject(said)
    }
  })

  test('study list shows the other studies and names the damaged one', async () => {
    for (const name of ['one', 'two'])
      await muster(['study', 'create', name, '--param', 'lr=1,2', '--metric', 'loss', '--', 'true'])
    for (const text of ['{', '{"parameters":7}']) {
      change(`UPDATE study SET spec = '${text}' WHERE id = 1`)
      const said = {
        exitCode: 3,
        messages: expect.stringContaining(`study one in the queue ${FILE()} is damaged: its spec `),
      }
      const listed = await muster(['study', 'list'])
      expect(listed).toMatchObject(said)
      expect(listed.output).toMatch(/^two\t/m)
      for (const args of [
        ['show', 'one'],
        ['results', 'one'],
        ['stop', 'one'],
      ])
        expect(await muster(['study', ...args])).toMatchObject(said)
      expect((await muster(['study', 'show', 'two'])).exitCode).toBe(0)
    }
  })

  test('all verbs refuse a log without its database, and leave it alone', async () => {
    {
      using store = openStore()
      await job(['submit', '--', 'true'])
      copyFileSync(`${FILE()}-wal`, join(directory, 'log'))
      expect(store.counts().size).toBe(1)
    }
    renameSync(join(directory, 'log'), `${FILE()}-wal`)
    for (const isEmpty of [true, false]) {
      if (isEmpty) writeFileSync(FILE(), '')
      else rmSync(FILE())
      for (const args of [
        ['job', 'list'],
        ['job', 'submit', '--', 'true'],
        ['job', 'work', '--until-empty'],
        ['study', 'list'],
        ['left', 'here'],
      ]) {
        const { exitCode, messages } = await muster(args)
        expect([args, exitCode, messages]).toEqual([args, 3, expect.stringContaining('but its log lab.db-wal (')])
      }
      expect([existsSync(FILE()), readdirSync(dirname(FILE())).includes('lab.db-wal')]).toEqual([isEmpty, true])
    }
  })
})

describe('muster job', () => {
  test('work refuses to keep job files for less than a day', async () => {
    for (const days of ['0', '0.5', '-1'])
      expect(await job(['work', '--until-empty', '--keep', days])).toMatchObject({
        exitCode: 2,
        output: '',
        messages: expect.stringContaining('It must be a whole number of 1 or more.'),
      })
  })

  test('submit tells a job that no host can ever hold, and refuses it with --strict', async () => {
    writeFileSync(
      join(directory, 'hosts.yaml'),
      'cluster: lab\nhosts: { here: { transport: local, resources: { gpu: 2 } }, there: { transport: local } }\n',
    )
    const impossible = await job(['submit', '--gpu', '3', '--', 'true'])
    expect([impossible.exitCode, impossible.output]).toEqual([0, '1\n'])
    expect(impossible.messages).toMatch(
      /^muster: warning: no host can ever hold this job\. here: .*GPUs.*; there: .*GPU\. Ask for less, .*hosts\.yaml\.$/m,
    )
    expect((await job(['submit', '--strict', '--gpu', '3', '--', 'true'])).messages).toContain(
      'no host can ever hold this job',
    )
    // Cores and memory that nobody has asked the hosts for may be enough.
    const possible = await job(['submit', '--strict', '--gpu', '2', '--cpu', '500', '--memory', '1TiB', '--', 'true'])
    expect([possible.output, possible.messages]).toEqual([
      '2\n',
      'muster: no scheduler running. Run: muster job work\n',
    ])
  })

  test('submit --strict asks Slurm first: what it refuses, or cannot be asked about, is not queued', async () => {
    const bin = join(directory, 'bin')
    mkdirSync(bin)
    for (const name of ['squeue', 'scancel']) writeProgram(join(bin, name), ':')
    const slurm = `slurm: { login: here, bin: ${bin} }`
    writeFileSync(join(directory, 'hosts.yaml'), `cluster: lab\nhosts: { here: { transport: local } }\n${slurm}\n`)
    const submit = async (...words: readonly string[]) => {
      const { exitCode, output, messages } = await muster([...words, '--engine', 'slurm', '--strict', '--', 'true'])
      return [exitCode, output, messages]
    }
    const sbatch = (said: string, code: number) => writeProgram(join(bin, 'sbatch'), `echo '${said}' >&2; exit ${code}`)
    sbatch('allocation failure: Requested node configuration is not available', 1)
    const refusal = expect.stringMatching(/^muster: Slurm refused it: Requested node configuration is not available\./m)
    const sweep = ['study', 'create', 's', '--method', 'grid', '--param', 'x=1,2']
    for (const words of [['job', 'submit'], ['job', 'submit', '--cpu', '200'], sweep])
      expect(await submit(...words)).toEqual([2, '', refusal])
    sbatch('allocation failure: Unable to contact slurm controller (connect failure)', 1)
    expect(await submit('job', 'submit')).toEqual([
      4,
      '',
      expect.stringMatching(/^muster: cannot ask Slurm: its contro/),
    ])
    expect((await job(['list'])).output).toContain('no jobs')
    expect((await muster(['study', 'list'])).output).not.toContain('grid')
    sbatch('sbatch: Job 26 to start at 2026-11-23T07:00:00 using 1 processors on nodes n1 in partition main', 0)
    expect(await submit('job', 'submit')).toEqual([0, '1\n', 'muster: no scheduler running. Run: muster job work\n'])
  })

  test.each([
    ['ray: { head: here }', 'ray'],
    ['k8s: { context: lab }', 'k8s'],
  ])('submit refuses --strict where the engine cannot tell: %s', async (section, engine) => {
    writeFileSync(join(directory, 'hosts.yaml'), `cluster: lab\nhosts: { here: { transport: local } }\n${section}\n`)
    expect(await job(['submit', '--engine', engine, '--strict', '--', 'true'])).toMatchObject({
      exitCode: 2,
      messages: expect.stringContaining(`--engine ${engine} cannot be used with --strict`),
    })
  })

  test.each([
    ['--env', 'RANK', 'RANK=7'],
    ['--env', 'MASTER_PORT', 'MASTER_PORT='],
    ['--env', 'MUSTER_JOB', 'MUSTER_JOB=1'],
    ['--grid', 'LOCAL_RANK', 'LOCAL_RANK=0,1'],
  ])('refuses %s %s, which Muster sets', async (option, name, text) => {
    const words = `muster: ${option} ${name}: Muster sets this variable itself\nFor another value, set it in the command.\n`
    const { exitCode, messages } = await job(['submit', option, text, '--', 'true'])
    expect([exitCode, messages]).toEqual([2, words])
    expect(await job(['submit', '--env', 'RANKS=7', '--', 'true'])).toMatchObject({ exitCode: 0, output: '1\n' })
  })

  test.each([
    ['no', 'there is no such directory on this machine'],
    ['hosts.yaml', 'it is not a directory'],
  ])('refuses --copy-dir %s before a host is asked', async (path, why) => {
    // A host that was asked would be a line of its own.
    const refused = { exitCode: 2, output: '', messages: `muster: --copy-dir ${path}: ${why}\n` }
    const options = ['--copy-dir', path]
    expect(await job(['submit', ...options, '--', 'true'])).toEqual(refused)
    expect(await job(['submit', ...options, '--dry-run', '--', 'true'])).toEqual(refused)
    expect(await muster(['launch', 'tf', ...options, '--', 'true'])).toEqual(refused)
    const study = ['study', 'create', 's', '--param', 'lr=1,2', '--metric', 'loss', ...options, '--', 'true']
    expect(await muster(study)).toEqual(refused)
    expect((await job(['list'])).output).toMatch(/^no jobs;/)
  })

  test.each([
    [['mpi', '--bundles', '2', '--slots', '1'], '2', 'there are ranks 0-1'],
    [['mpi', '--ranks', '5', '--per-host', '3'], '5', 'there are ranks 0-4'],
    [['torchrun', '--procs', '3', '--elastic', '1:2'], '3', 'there are ranks 0-2'],
    [['tf', '--role', 'worker=2', '--role', 'ps=1'], '3', 'there are ranks 0-2'],
    [['vllm', '--gpu', '1'], '9', 'the only rank is 0'],
  ])('launch %j refuses to follow rank %s, which it will not have', async (words, rank, why) => {
    const { exitCode, output, messages } = await muster(['launch', ...words, '--follow', rank, '--', 'x.py'])
    expect([exitCode, output, messages]).toEqual([2, '', `muster: cannot follow rank ${rank}: ${why}\n`])
    expect((await job(['list'])).output).toMatch(/^no jobs;/)
  })

  test('launch names the launchers for a word that is none, with a command or without', async () => {
    for (const words of [['torchrn'], ['torchrn', 'train.py']]) {
      const { exitCode, messages } = await muster(['launch', ...words])
      expect([exitCode, messages]).toEqual([
        2,
        expect.stringMatching(/^muster: unknown launcher: torchrn; did you mean torchrun\?\nLaunchers: mpi, /),
      ])
    }
  })

  test('logs names the ranks that there are for one that the job will not have', async () => {
    await job(['submit', '--bundles', '4', '--', 'true'])
    const said = async (...options: string[]) => (await job(['logs', '1', ...options])).messages
    expect(await said('--rank', '7')).toBe('muster: job 1 has no rank 7: there are ranks 0-3\n')
    expect(await said('--bundle', '4')).toBe('muster: job 1 has no bundle 4: there are bundles 0-3\n')
    expect(await said('--rank', '3')).toBe('muster: job 1 is queued: bundle 3 has no output\n')
  })

  test('refuses several commands for a launcher that can only start one, and takes them for one that runs a line', async () => {
    const launchers = 'launchers: { plain: { command: [env], per: host }, alone: { env: { A: b } } }\n'
    writeFileSync(join(directory, 'hosts.yaml'), `cluster: lab\nhosts: { here: { transport: local } }\n${launchers}`)
    const line = 'echo a; false'
    const why = 'needs one simple command, but this line has ; outside quotes'
    for (const kind of ['plain', 'vllm', 'ditask'])
      for (const words of [
        ['job', 'submit', '--launch', kind],
        ['job', 'submit', '--dry-run', '--launch', kind],
        ['launch', kind],
        ['launch', 'check', kind],
      ]) {
        const { exitCode, output, messages } = await muster([...words, '--', line])
        expect([exitCode, output, messages]).toEqual([
          2,
          '',
          expect.stringMatching(new RegExp(`^muster: --launch ${kind} ${why}\n.+\n$`)),
        ])
      }
    expect((await job(['submit', '--launch', 'plain', '--', 'A=1 b'])).messages).toBe(
      'muster: --launch plain needs one simple command, but this line sets the variable A before the command\nUse: --env A=VALUE\n',
    )
    expect((await job(['submit', '--launch', 'alone', '--', line])).output).toBe('1\n')
    expect((await job(['submit', '--launch', 'plain', '--', 'sh', '-c', line])).output).toBe('2\n')
    const edited = await job(['edit', '2', '--command', line])
    expect([edited.exitCode, edited.messages]).toEqual([2, expect.stringContaining(`--launch plain ${why}`)])
    expect((await job(['edit', '1', '--command', 'a | b'])).exitCode).toBe(0)
  })

  test.each([
    [['job', 'submit', '--on', 'm1', '--on', '@all,!m1', '--', 'true'], '--on', "'m1,@all,!m1'"],
    [['job', 'edit', '1', '--on', 'm1', '--on', 'm2'], '--on', 'm1,m2'],
    [['launch', 'mpi', '--on', 'm1', '--on', 'm2', '--', 'true'], '--on', 'm1,m2'],
    [['env', 'check', '--on', 'm1', '--on', 'm2'], '--on', 'm1,m2'],
    [['run', '--exclude', 'm1', '--exclude', 'm2', 'all', '--', 'true'], '--exclude', 'm1,m2'],
    [['--exclude', 'm1', 'run', '--exclude', 'm2', 'all', '--', 'true'], '--exclude', 'm1,m2'],
  ])('%j is refused: the first target would be lost', async (words, option, both) => {
    const { exitCode, output, messages } = await muster(words)
    expect([exitCode, output, messages]).toEqual([
      2,
      '',
      `muster: ${option} is given twice\nWrite all hosts as one target: ${option} ${both}\n`,
    ])
  })

  test('submit --dry-run says that a job can never start after one that was cancelled, or waits for one', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { here: { transport: local } }\n')
    for (const _ of [1, 2]) await job(['submit', '--', 'true'])
    await job(['cancel', '1'])
    const dry = async (...words: readonly string[]) => await job(['submit', '--dry-run', ...words, '--', 'true'])
    const why = 'it needs job 1, which was cancelled'
    expect(await dry('--after', '1-2')).toMatchObject({ exitCode: 1, output: `It can never start: ${why}.\n` })
    const { exitCode, output } = await dry('--after', '1', '--json')
    expect([exitCode, JSON.parse(output)]).toMatchObject([1, { type: 'trial', fits: false, why: [why] }])
    const late = await job(['submit', '--after', '1', '--hold', '--', 'true'])
    expect([late.exitCode, late.messages]).toEqual([0, expect.stringContaining(`muster: it can never start: ${why}\n`)])
    const waiting = await dry('--after', '2')
    expect([waiting.exitCode, waiting.output]).toEqual([0, 'bundle 0: here\n'])
    expect(waiting.messages).toContain('muster: waiting for job 2 first\n')
    await job(['submit', '--hold', '--array', '0-39', '--', 'true'])
    expect((await dry('--after', '2,4-42')).messages).toContain('muster: waiting for jobs 2, 4-42 (40 left) first\n')
    const others = Array.from({ length: 20 }, (_, index) => 3 + 2 * index)
    const many = await dry('--after', others.join())
    expect(many.messages).toContain('muster: waiting for jobs 3, 5, 7, 9, 11, 13, 15, 17 and others (20 left) first\n')
    expect(await dry('--after', '99')).toMatchObject({
      exitCode: 2,
      output: '',
      messages: 'muster: there is no job 99\n',
    })
  })

  test('submit --dry-run shows the address of ssh_config where hosts.yaml has none', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { m1: {}, m2: { address: 10.0.0.2 } }\n')
    writeProgram(join(directory, 'ssh'), 'echo hostname 10.0.0.1')
    const words = [
      'job',
      'submit',
      '--dry-run',
      '--launch',
      'torchrun',
      '--bundles',
      '2',
      '--per-host',
      '1',
      '--',
      'x.py',
    ]
    const environment = { HOME: directory, PATH: `${directory}:${process.env.PATH}` }
    const { output, exitCode } = await runMuster(words, { directory, environment })
    expect([exitCode, output]).toEqual([0, expect.stringContaining('10.0.0.1')])
    expect(output).not.toMatch(/master_addr m1|rdzv_endpoint m1/)
  })

  test('submit says which hosts an engine of the same file uses as well, unless --on chose them', async () => {
    const host = '{ transport: local, resources: { cpu: 4, memory: 8GiB } }'
    const slurm = 'slurm: { controller: c1, nodes: "n[1-2]" }\nray: { head: m1 }'
    writeFileSync(
      join(directory, 'hosts.yaml'),
      `cluster: lab\nhosts: { "n[1-2]": ${host}, c1: ${host}, m1: ${host} }\n${slurm}\n`,
    )
    expect((await job(['submit', '--', 'true'])).messages.split('\n')).toEqual([
      'muster: m1 also runs jobs of Ray, which knows nothing of this queue. To use other hosts: --on HOSTS',
      'muster: n[1-2] also run jobs of Slurm, which knows nothing of this queue. To use other hosts: --on HOSTS',
      'muster: no scheduler running. Run: muster job work',
      '',
    ])
    for (const words of [
      ['--on', 'n1'],
      ['--engine', 'slurm'],
    ])
      expect((await job(['submit', ...words, '--', 'true'])).messages).not.toContain('knows nothing')
  })

  test('a job without a name is named after its command, and a cut is marked', async () => {
    await job(['submit', '--', 'sh', '-c', 'for step in 1 2 3; do echo "step $step of a long command"; done; exit 0'])
    await job(['submit', '--', 'true'])
    using store = openStore()
    expect(store.get(1)?.spec.name).toBe('sh -c for step in 1 2 3; do echo "step $step of a long comm…')
    expect(store.get(2)?.spec.name).toBe('true')
  })

  test('where a queue is that of another file, the command that starts its scheduler names the file', async () => {
    writeFileSync(join(directory, "ann's.yaml"), 'cluster: anns\nhosts: { there: { transport: local } }\n')
    const start = "no scheduler running. Run: muster job work --hosts 'ann'\\''s.yaml'"
    const { messages } = await job(['submit', '--hosts', "ann's.yaml", '--', 'true'])
    expect(messages).toBe(`muster: ${start}\n`)
    expect((await job(['show', '1', '--hosts', "ann's.yaml"])).output).toContain(`why not now:  ${start}\n`)
  })

  test('show says that no scheduler is running, that --preempt would help, and what a cancelled job needed', async () => {
    writeFileSync(
      join(directory, 'hosts.yaml'),
      'cluster: lab\nhosts: { here: { transport: local, resources: { cpu: 4, gpu: 1 } } }\n',
    )
    await job(['submit', '--gpu', '1', '--preemptible', '--', 'true'])
    await job(['submit', '--gpu', '1', '--priority', '1', '--', 'true'])
    const why = async (id: string) => (await job(['show', id])).output.match(/^why not now: .*$/gm) ?? []
    expect(await why('2')).toEqual(['why not now:  no scheduler running. Run: muster job work'])
    using store = openStore()
    const lease = store.lease.take('test', 1000, 10_000)
    if (lease === undefined) throw new Error('somebody else drives')
    expect(await why('2')).toEqual([expect.stringMatching(/^why not now: {2}it fits/)])
    applyEvent(store, 1, { kind: 'placed', places: [{ host: 'here', devices: [0] }] }, 1000, lease)
    const view = { atMs: 1000, hosts: [], down: {}, expectedS: {} }
    const preempt = expect.stringContaining('lower priority ended. Run the scheduler with: muster job work --preempt')
    for (const isPreempting of [true, false]) {
      store.writeReport({ ...view, isPreempting }, lease)
      const lines = await why('2')
      expect(lines).not.toEqual([])
      if (isPreempting) expect(lines).not.toContainEqual(preempt)
      else expect(lines).toContainEqual(preempt)
      const dry = (await job(['submit', '--dry-run', '--gpu', '1', '--priority', '1', '--', 'true'])).output
      expect(dry.includes('Run the scheduler with: muster job work --preempt')).toBe(!isPreempting)
    }
    await job(['submit', '--after', '1', '--', 'true'])
    applyEvent(
      store,
      1,
      { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 3 } } },
      2000,
      lease,
    )
    expect(await why('3')).toEqual(['why not now:  it needs job 1, which failed'])
    store.cancelOrphans(3000, lease)
    expect((await job(['show', '3'])).output).toMatch(
      /^state: +cancelled$[\s\S]*^ended: .*, it needs job 1, which failed$/m,
    )
  })

  test('submit --from: a job a line, wherever lines are cut; each number is printed', async () => {
    const { output, exitCode } = await job(
      ['submit', '--gpu', '0.5', '--from', '-'],
      ['echo on', 'e\n\n# a comment\necho t', 'wo\n  #\n \necho three\n# the last'],
    )
    expect([exitCode, output]).toEqual([0, '1\n2\n3\n'])
    using store = openStore()
    expect([1, 2, 3].map((id) => store.get(id)?.spec.command)).toEqual(['echo one', 'echo two', 'echo three'])
    expect(store.get(2)?.spec.request.gpuMilli).toBe(500)
    expect((await job(['submit', '--from', '-', 'true'])).messages).toContain('cannot be used with a command')
    expect((await job(['submit', '--from', 'missing'])).messages).toContain('cannot read missing: no such file')
  })

  test('--from-env: the command is one word of another one, and finds what is there', async () => {
    const run = (id: number): string => {
      using store = openStore()
      const command = store.get(id)?.spec.command ?? ''
      return execFileSync('sh', ['-c', command], {
        env: { PATH: `${directory}/bin:${process.env.PATH}`, HOME: directory, X: '1' },
        encoding: 'utf8',
      })
    }
    const program = (path: string, text: string) => {
      mkdirSync(dirname(join(directory, path)), { recursive: true })
      writeFileSync(join(directory, path), text, { mode: 0o755 })
    }
    const line = `echo "it's $A $(echo in)"`
    program("my env's/bin/activate", 'A=venv\n')
    await job(['submit', '--from-env', "venv:~/my env's", '--', line])
    expect(run(1)).toBe("it's venv in\n")
    const shown = (await job(['show', '1'])).output
    expect(shown).toContain(`command:      ${line}`)
    expect(shown).toContain("environment:  venv:~/my env's")
    expect(shown).not.toContain('activate')
    program('bin/micromamba', '#!/bin/sh\necho "$1 $2 $3"; shift 3; A=conda exec "$@"\n')
    await job(['submit', '--from-env', 'conda:one', '--', line])
    expect(run(2)).toBe("run -n one\nit's conda in\n")
    program(
      'bin/docker',
      '#!/bin/sh\nfor w; do [ "$w" = X ] && echo has X; [ "$w" = all ] && echo GPUs; done; while [ "$1" != "a b" ]; do shift; done; shift; A=image exec "$@"\n',
    )
    await job(['submit', '--gpu', '1', '--grid', 'X=1', '--from-env', 'image:a b', '--', line])
    expect(run(3)).toBe("GPUs\nhas X\nit's image in\n")
    expect((await job(['submit', '--from-env', 'declared', '--', line])).messages).toContain('declares no environment')
    expect((await job(['submit', '--from-env', 'spam', '--', line])).messages).toContain('venv:PATH')
  })

  test('results: parameters and metrics of what was submitted together, the best first', async () => {
    await job(['submit', '--grid', 'lr=0.1,0.2,0.3', '--metric', 'max:acc', '--metric', 'loss', '--', 'true'])
    {
      using store = openStore()
      const lease = store.lease.take('test', 0, 1)
      if (lease === undefined) throw new Error('somebody else drives')
      const read = (id: number, values: Record<string, string>) =>
        store.noteResults([{ job: id, attempt: 1, values, isFinal: false }], lease)
      read(1, { acc: '0.50', loss: '1e-3' })
      read(2, { acc: '0.9', loss: 'nan' })
      read(2, { loss: '2' })
    }
    const lines = async (...args: readonly string[]) =>
      (await job(['results', '2', ...args])).output.split('\n').map((line) => line.replaceAll('\t', ' '))
    expect(await lines()).toEqual([
      'JOB STATE lr acc loss',
      '2 queued 0.2 0.9 2',
      '1 queued 0.1 0.50 1e-3',
      '3 queued 0.3 - -',
      '',
    ])
    expect((await lines('--sort', 'loss', '--limit', '1')).slice(1)).toEqual([
      '1 queued 0.1 0.50 1e-3',
      '',
      '1 of 3: --limit shows more',
      '',
    ])
    expect((await job(['results', '2', '--sort', 'spam'])).messages).toContain('no such metric or parameter')
    const parsed = (await job(['results', '1', '--sort', 'lr', '--json'])).output.trim().split('\n')
    expect(JSON.parse(parsed[0] ?? '')).toEqual({
      version: 1,
      type: 'result',
      job: 1,
      state: 'queued',
      attempt: 1,
      parameters: { lr: '0.1' },
      metrics: { acc: 0.5, loss: 0.001 },
    })
    expect(JSON.parse((await job(['show', '2', '--json'])).output)).toMatchObject({ metrics: { acc: 0.9, loss: 2 } })
    expect((await job(['submit', '--metric', 'a', '--metric', 'max:a', '--', 'true'])).messages).toContain(
      'duplicate metric',
    )
    expect((await job(['submit', '--metric', 'a b', '--', 'true'])).messages).toContain('write it as')
  })

  test('edit keeps fractions of cores and GPUs exactly as they were submitted', async () => {
    await job(['submit', '--cpu', '16.1', '--gpu', '0.07', '--', 'true'])
    for (const priority of ['1', '2']) await job(['edit', '1', '--priority', priority])
    using store = openStore()
    expect(store.get(1)?.spec.request).toMatchObject({ cpuMilli: 16_100, gpuCount: 1, gpuMilli: 70 })
  })

  test('edit: what is named changes, the rest stays', async () => {
    await job(['submit', '--gpu', '0.5', '--memory', '2GiB', '--env', 'A=1', '--', 'true'])
    expect((await job(['edit', '1', '--priority', '7', '--cpu', '4', '--on', 'there'])).exitCode).toBe(0)
    {
      using store = openStore()
      expect(store.get(1)).toMatchObject({
        priority: 7,
        spec: {
          command: 'true',
          environment: { A: '1' },
          request: {
            cpuMilli: 4000,
            memoryBytes: 2 ** 31,
            gpuCount: 1,
            gpuMilli: 500,
            selectors: [{ values: ['there'] }],
          },
        },
      })
    }
    expect((await job(['edit', '1', '--gpu', '2'])).messages).toContain('warning: no host can ever hold this job.')
    expect((await job(['edit', '1', '--priority', '7'])).messages).not.toContain('warning')
    {
      using store = openStore()
      expect(store.get(1)?.spec.request).toMatchObject({
        gpuCount: 2,
        gpuMilli: 1000,
        selectors: [{ values: ['there'] }],
      })
    }
    await job(['cancel', '1'])
    const { exitCode, messages } = await job(['edit', '1', '2', '--priority', '1'])
    expect([exitCode, messages]).toEqual([1, 'muster: job 1 is cancelled: nothing to edit\nmuster: no such job: 2\n'])
  })

  test('retry queues what failed in a range again, and jobs that are done only with --done', async () => {
    await job(['submit', '--array', '1-3', '--', 'true'])
    {
      using store = openStore()
      const lease = store.lease.take('test', 1000, 10_000)
      if (lease === undefined) throw new Error('somebody else drives')
      for (const [id, code] of [
        [1, 0],
        [2, 1],
      ] as const) {
        applyEvent(store, id, { kind: 'placed', places: [{ host: 'here', devices: [] }] }, 1000, lease)
        const bundle = { kind: 'ended', end: { kind: 'exit', code } } as const
        applyEvent(store, id, { kind: 'seen', rank: 0, bundle }, 1000, lease)
      }
    }
    const states = () => {
      using store = openStore()
      return [1, 2].map((id) => store.get(id)?.state.kind)
    }
    expect(states()).toEqual(['done', 'failed'])
    const { exitCode, messages } = await job(['retry', '1-3'])
    expect([exitCode, messages]).toEqual([
      1,
      'muster: job 1 is done: nothing to retry (--done runs it again)\nmuster: job 3 is queued: nothing to retry\n',
    ])
    expect(states()).toEqual(['done', 'queued'])
    await job(['retry', '--done', '1'])
    expect(states()).toEqual(['queued', 'queued'])
  })

  test('retry says that a job needs others, which are not retried', async () => {
    await job(['submit', '--', 'true'])
    await job(['submit', '--after', '1', '--', 'true'])
    await job(['cancel', '1-2'])
    expect(await job(['retry', '2'])).toMatchObject({
      exitCode: 0,
      messages: 'muster: job 2: it needs job 1, which was cancelled. Retry all of them: muster job retry 1-2\n',
    })
    expect(await job(['retry', '1'])).toMatchObject({ exitCode: 0, messages: '' })
  })

  test('list shows all jobs that run or wait, and says how many ended ones it leaves out', async () => {
    await job(['submit', '--', 'true'])
    await job(['submit', '--hold', '--', 'true'])
    await job(['submit', '--array', '1-4', '--', 'true'])
    await job(['cancel', '3-6'])
    {
      using store = openStore()
      const lease = store.lease.take('test', 1000, 10_000)
      applyEvent(store, 1, { kind: 'placed', places: [{ host: 'here', devices: [] }] }, 1000, lease)
    }
    const numbers = (text: string) => text.match(/^\d+(?=\t)/gm)
    const some = await job(['list', '--limit', '2'])
    expect(numbers(some.output)).toEqual(['1', '2', '5', '6'])
    expect(some.output.split('\n').at(-2)).toBe('2 of 4 ended jobs: --limit N shows more')
    expect(numbers((await job(['list', '--limit', '0'])).output)).toEqual(['1', '2'])
    const asJson = await job(['list', '--limit', '2', '--json'])
    const lines = asJson.output.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).job)).toEqual([6, 5, 2, 1])
    expect(asJson.messages).toBe('muster: 2 of 4 ended jobs: --limit N shows more\n')
    for (const words of [
      ['--limit', '4'],
      ['--limit', '1', '--state', 'held,starting,done'],
    ])
      expect((await job(['list', ...words])).output).not.toContain('ended jobs')
    const cancelled = await job(['list', '--limit', '1', '--state', 'held,cancelled'])
    expect(numbers(cancelled.output)).toEqual(['2', '6'])
    expect(cancelled.output).toContain('1 of 4 ended jobs')
  })

  test('list shows a column that is added to the list of columns', async () => {
    await job(['submit', '--name', 'one', '--', 'true'])
    const columns = JOB_COLUMNS as JobColumn[]
    columns.splice(-1, 0, { title: 'TRIES', width: 6, text: ({ attempt }) => `no. ${attempt}` })
    try {
      const [header, row] = (await job(['list'])).output.split('\n')
      expect(header?.split('\t')).toEqual(['JOB', 'STATE', 'RAN', 'STARTED', 'ON', 'USER', 'ASKS FOR', 'TRIES', 'NAME'])
      expect(row?.split('\t').toSpliced(5, 1)).toEqual(['1', 'queued', '-', '-', '-', '1 CPU', 'no. 1', 'one'])
    } finally {
      columns.splice(-2, 1)
    }
  })

  test('commands for the end of jobs find what is known in their environment, and nothing of it is run', async () => {
    await job(['submit', '--name', '$(touch ran); `touch ran`', '--', 'true'])
    await job(['submit', '--', 'false'])
    await job(['cancel', '1', '2'])
    const stderr = new PassThrough()
    const environment = { PATH: process.env.PATH }
    const notifier = new Notifier(
      {
        onEnd: `cd '${directory}' && echo "$MUSTER_JOB $MUSTER_JOB_STATE $MUSTER_JOB_NAME" >>told`,
        onFail: `cd '${directory}' && echo "$MUSTER_JOB" >>failed; exit 3`,
      },
      { stderr, environment },
    )
    using store = openStore()
    for (const one of store.list([], 10).toReversed()) notifier.notify(one)
    await notifier.finish()
    const lines = (name: string) => readFileSync(join(directory, name), 'utf8').trim().split('\n').sort()
    expect(lines('told')).toEqual(['1 cancelled $(touch ran); `touch ran`', '2 cancelled false'])
    expect(lines('failed')).toEqual(['1', '2'])
    expect(String(stderr.read())).toContain('the --on-end or --on-fail command of job 1: exit 3\n')
  })
})

test('no byte of a job or of a host acts on the terminal with --json', async () => {
  await job(['submit', '--name', 'a\u009b2J', '--user', '\u202eroot', '--', 'echo one\necho \u007f'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  store.writeReport({ atMs: 1000, hosts: [], down: { here: 'away \u009b31m' }, expectedS: {} }, lease)
  const lines: string[] = []
  for (const args of [['list'], ['show', '1'], ['cancel', '1'], ['wait', '1'], ['submit', '--dry-run', '--', 'true']]) {
    lines.push((await job([...args, '--json'])).output)
  }
  lines.push((await muster(['pack', '--json'])).output)
  for (const line of lines) expect(line).toMatch(/^[\x20-\x7e\n]+$/)
  expect(JSON.parse(lines[1] ?? '')).toMatchObject({ name: 'a\\x9b2J', spec: { command: 'echo one\necho \\x7f' } })
})

test('submit --dry-run says which host does not answer, and why', async () => {
  await job(['submit', '--', 'true'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  const here = { name: 'here', cpuMilli: 4000, memoryBytes: 0, isDrained: true }
  store.writeReport({ atMs: 1000, hosts: [here], down: { here: 'no route' }, expectedS: {} }, lease)
  expect((await job(['submit', '--dry-run', '--on', 'here', '--', 'true'])).output).toBe(
    'It does not fit right now.\nhere: no route\nhere: takes no new jobs now\nthere: is left out by --on\n',
  )
})

test.each([
  'nobody@here',
  'here:2222',
  'nobody@127.0.0.9',
  'elsewhere',
])('a job runs only on hosts of hosts.yaml, with the login that it declares: not --on %s', async (target) => {
  await job(['submit', '--', 'true'])
  for (const args of [
    ['submit', '--on', target, '--', 'true'],
    ['edit', '1', '--on', target],
  ]) {
    const { exitCode, output, messages } = await job(args)
    expect([exitCode, output]).toEqual([2, ''])
    const [first, hint] = messages.split('\n')
    expect(first).toBe(`muster: host set ${target}: at character 1: there is no host ${target}`)
    expect(hint).toMatch(/^Only hosts of \S+hosts\.yaml can be named here, without a user or port of your own\.$/)
  }
  using store = openStore()
  expect(store.list([], 9)).toHaveLength(1)
})

test.each([
  ['submit', '--exclude', 'there', '--', 'true'],
  ['clean', '--exclude', 'there', '--older-than', '0'],
  ['list', '--exclude', 'there'],
])('refuses to leave out hosts where it would not: job %s', async (verb, ...args) => {
  const { exitCode, output, messages } = await job([verb, ...args])
  expect([exitCode, output, messages]).toEqual([
    2,
    '',
    `muster: \`muster job ${verb}\` has no --exclude: nothing was done\n`,
  ])
  using store = openStore()
  expect(store.list([], 9)).toEqual([])
})

test('submit names its own option where one of Slurm is given', async () => {
  const { messages } = await job(['submit', '--time', '10:00', '--', 'true'])
  expect(messages).toBe('muster: --time is an option of Slurm: use --limit, in seconds\n')
})

test('show says when the next attempt is and how the last one ended, not that it starts now', async () => {
  await job(['submit', '--retries', '3', '--', 'false'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  applyEvent(store, 1, { kind: 'placed', places: [{ host: 'here', devices: [] }] }, 1000, lease)
  const bundle = { kind: 'ended', end: { kind: 'exit', code: 9 } } as const
  applyEvent(store, 1, { kind: 'seen', rank: 0, bundle }, 1000, lease)
  const { output } = await job(['show', '1'])
  expect(output).toMatch(
    /requests: +1 CPU, 3 retries\n[\s\S]*last attempt: failed: exit 9\nwhy not now: +next attempt in \d s\n$/,
  )
})

test('cancel names jobs that did not change as ranges', async () => {
  await job(['submit', '--array', '1-3', '--', 'true'])
  await job(['cancel', '1-2'])
  const { output, messages } = await job(['cancel', '1-9999'])
  expect([output, messages]).toEqual([
    '',
    'muster: jobs 1-2 are cancelled: nothing to cancel\nmuster: no such jobs: 4-9999\n',
  ])
})

test.each([
  [['--memory', '16'], '--memory 16 would be 16 B: add a unit, as in 16GiB'],
  [['--memory', '99PiB'], '--memory 99PiB: write it as 16GiB, or with TiB, MiB, KiB, GB'],
  [['--gpu', '0.0001'], '--gpu 0.0001: a share of a GPU is at least 0.001'],
  [['--gpu', '0.33333'], '--gpu 0.33333: a share of a GPU has at most three decimals: write 0.333 or 0.334'],
  [['--gpu', '0.9999'], '--gpu 0.9999: a share of a GPU has at most three decimals: write 0.999 or 1'],
  [['--gpu', '1.5'], '--gpu 1.5: more than one GPU must be a whole number'],
  [['--user', ''], 'the account of --user is empty'],
  [['--', ' '], 'the command is empty'],
])('submit refuses %j, which nobody means', async (options, reason) => {
  const { messages } = await job(['submit', ...options, ...(options.includes('--') ? [] : ['--', 'true'])])
  expect(messages).toContain(`muster: ${reason}\n`)
})

test('cancel of a running job says that no scheduler stops it, and pack where a host of it is gone', async () => {
  await job(['submit', '--', 'true'])
  using store = openStore()
  const lease = store.lease.take('test', Date.now(), 100)
  if (lease === undefined) throw new Error('another scheduler runs')
  applyEvent(store, 1, { kind: 'placed', places: [{ host: 'gone', devices: [] }] }, 1000, lease)
  store.lease.give(lease)
  expect((await muster(['pack'])).output).toContain(
    '\n0 jobs are on these hosts, 0 wait.\nJob 1 runs on gone, which hosts.yaml no longer declares.\n',
  )
  expect((await job(['cancel', '1'])).messages).toBe('muster: no scheduler running. Run: muster job work\n')
})

test('wait names what did not end well', async () => {
  await job(['submit', '--array', '1-2', '--', 'true'])
  await job(['cancel', '1-2'])
  expect(await job(['wait', '1-2'])).toMatchObject({
    exitCode: 1,
    messages: 'muster: job 1: cancelled\nmuster: job 2: cancelled\n',
  })
})

test('edit needs something to change', async () => {
  await job(['submit', '--', 'true'])
  expect((await job(['edit', '1'])).messages).toContain('nothing to change: give at least one option')
})

test('clusters without a name do not share a queue', async () => {
  const write = (name: string, text: string) => {
    mkdirSync(join(directory, name), { recursive: true })
    writeFileSync(join(directory, name, 'hosts.yaml'), text)
  }
  const submit = async (name: string) =>
    (await job(['submit', '--hosts', join(directory, name, 'hosts.yaml'), '--', 'true'])).messages
  for (const name of ['p1', 'p2']) write(name, 'hosts: { here: { transport: local } }\n')
  expect(await submit('p1')).toContain('no scheduler running')
  expect(await submit('p2')).toBe(
    `muster: the jobs of clusters without a name are those of ${directory}/p1/hosts.yaml\nName this one in ${directory}/p2/hosts.yaml: cluster: NAME. If it is the same file, moved here: cluster: default\n`,
  )
  write('p2', 'cluster: p2\nhosts: { here: { transport: local } }\n')
  expect(await submit('p2')).toContain('no scheduler running')
  // Nothing tells a file that was moved from another one.
  renameSync(join(directory, 'p1'), join(directory, 'p3'))
  expect(await submit('p3')).toContain('moved here: cluster: default')
  write('p3', 'cluster: default\nhosts: { here: { transport: local } }\n')
  expect(await submit('p3')).toContain('no scheduler running')
  expect((await job(['list', '--hosts', join(directory, 'p3', 'hosts.yaml')])).output).toContain('\n2 queued; ')
})

test('show says for which job the place of one that fits is kept', async () => {
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { here: { transport: local, resources: { cpu: 8, gpu: 4 } } }\n',
  )
  for (const words of [
    ['--gpu', '3'],
    ['--gpu', '4', '--priority', '5', '--name', 'wide'],
    ['--gpu', '1'],
  ])
    await job(['submit', ...words, '--', 'true'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  applyEvent(store, 1, { kind: 'placed', places: [{ host: 'here', devices: [0, 1, 2] }] }, 1000, lease)
  const why = async (startS: number) => {
    store.writeReport({ atMs: 1000, hosts: [], down: {}, expectedS: { 3: startS } }, lease)
    return (await job(['show', '3'])).output.match(/^why not now: .*$/gm)
  }
  expect(await why(120)).toEqual(['why not now:  it fits, but would delay job 2 (wide), which goes first'])
  expect(await why(1)).toEqual([expect.stringContaining('it fits: it starts at the next scheduling pass')])
})

test('show says that the hosts of a job are no longer in hosts.yaml, not that it is too large', async () => {
  await job(['submit', '--on', 'there', '--', 'true'])
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { here: { transport: local } }\n')
  expect((await job(['show', '1'])).output).toContain(
    'why not now:  it may run only on there, which hosts.yaml no longer declares. Run: muster job edit 1 --on HOSTS\n',
  )
})

test('list says which jobs have hosts that do not answer', async () => {
  await job(['submit', '--bundles', '2', '--', 'true'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  const places = ['here', 'there'].map((host) => ({ host, devices: [] }))
  applyEvent(store, 1, { kind: 'placed', places }, 1000, lease)
  store.writeReport({ atMs: 1000, hosts: [], down: { there: 'no route \x1b', other: 'x' }, expectedS: {} }, lease)
  const onTerminal = async () =>
    (await runMuster(['job', 'list'], { directory, isTerminal: true, now: () => 1000 })).output
  expect(await onTerminal()).toMatch(/^1 +starting, there: no answer +- /m)
  const { output } = await job(['list'])
  expect(output).toMatch(/\n1 starting; scheduler: test\nthere: no route \\x1b\n$/)
  // In a pipe, a program reads the state, which stays one word.
  expect(output).toContain('\n1\tstarting\t-')
  // Without a scheduler, the report about hosts is old.
  store.lease.give(lease)
  expect(await onTerminal()).toMatch(/^1 +starting +- /m)
})

test('submit says which hosts have changed in hosts.yaml since the scheduler started', async () => {
  const declare = (here: string, there: string) =>
    writeFileSync(
      join(directory, 'hosts.yaml'),
      `cluster: lab\nhosts: { here: { transport: local, ${here} }, there: { transport: local, ${there} } }\n`,
    )
  declare('resources: { cpu: 4, gpu: 1 }', 'labels: { rack: r1 }')
  await job(['submit', '--', 'true'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  const declared = [
    { name: 'here', address: 'here', cpuMilli: 4000, gpuCount: 1, labels: {} },
    { name: 'there', address: 'there', gpuCount: 0, labels: { rack: 'r1' } },
  ]
  store.writeReport({ atMs: 1000, hosts: [], declared, down: {}, expectedS: {} }, lease)
  expect((await job(['submit', '--', 'true'])).messages).toBe('')
  declare('resources: { cpu: 4, gpu: 2 }', 'labels: { rack: r2 }')
  expect((await job(['submit', '--', 'true'])).messages).toBe(
    'muster: hosts.yaml has changed for here,there since the scheduler started. Start it again: muster job work\n',
  )
  expect((await job(['show', '1'])).output).toContain('why not now:  it fits: ')
  // Impossible for the scheduler alone, so nothing is said against it.
  const { messages } = await job(['submit', '--gpu', '2', '--', 'true'])
  expect(messages).toMatch(/^muster: hosts\.yaml has changed for here,there since .*\n$/)
  const shown = (await job(['show', '4'])).output
  expect(shown).toMatch(/why not now: {2}hosts\.yaml has changed for here,there since .*\n$/)
  expect(await job(['submit', '--dry-run', '--gpu', '2', '--', 'true'])).toMatchObject({
    messages: expect.stringContaining('hosts.yaml has changed for here,there '),
    output: expect.stringContaining('here: needs 2 GPUs, has 1'),
  })
  declare('resources: { cpu: 2, gpu: 1 }', 'labels: { rack: r1 }')
  // Impossible by the file, possible for the scheduler, which still has the cores: it is accepted, and may start.
  expect(await job(['submit', '--strict', '--cpu', '4', '--', 'true'])).toMatchObject({
    exitCode: 0,
    messages: expect.stringMatching(/^muster: hosts\.yaml has changed for here since .*\n$/),
  })
  declare('resources: { cpu: 4, gpu: 2 }', 'labels: { rack: r2 }')
  expect(await muster(['pack'])).toMatchObject({
    messages: expect.stringContaining('hosts.yaml has changed for here,there '),
    output: expect.stringContaining('\nhere\t[········]\t'),
  })
  const left = 'cluster: lab\nhosts: { here: { transport: local, resources: { cpu: 4, gpu: 1 } } }\n'
  writeFileSync(join(directory, 'hosts.yaml'), left)
  expect((await job(['submit', '--', 'true'])).messages).toBe(
    'muster: hosts.yaml has changed for there since the scheduler started. Start it again: muster job work\n',
  )
})

test('pack, show and submit say which hosts have fewer GPUs than declared, with a scheduler or without', async () => {
  const declare = (gpu: number) =>
    writeFileSync(
      join(directory, 'hosts.yaml'),
      `cluster: lab\nhosts: { here: { transport: local, resources: { cpu: 4, gpu: ${gpu} } } }\n`,
    )
  declare(11)
  await job(['submit', '--gpu', '2', '--', 'true'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  const declared = [{ name: 'here', address: 'here', cpuMilli: 4000, gpuCount: 11, labels: {} }]
  const hosts = [{ name: 'here', cpuMilli: 4000, memoryBytes: 2 ** 30, gpus: [''], gpusDeclared: 11, labels: {} }]
  store.writeReport({ atMs: 1000, hosts, declared, down: {}, expectedS: {} }, lease)
  const fewer = 'has 1 GPU, but 11 are declared'
  const expectSaid = async () => {
    expect((await job(['show', '1'])).output).toContain(`here: needs 2 GPUs; ${fewer}`)
    const { output } = await muster(['pack'])
    expect(output).toContain('\nhere\t[········]\t')
    expect(output).toContain(`\nhere: ${fewer}.\n`)
    expect((await muster(['pack', '--json'])).output).toContain('"gpusDeclared":11')
    expect((await job(['submit', '--strict', '--gpu', '2', '--', 'true'])).messages).toContain(fewer)
  }
  await expectSaid()
  store.lease.give(lease)
  await expectSaid()
  declare(1)
  expect((await muster(['pack'])).output).not.toContain('declares')
})

test('a host called constructor is up, as long as nobody says otherwise', async () => {
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { constructor: { transport: local, resources: { cpu: 4 } } }\n',
  )
  await job(['submit', '--', 'true'])
  using store = openStore()
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  const hosts = [{ name: 'constructor', cpuMilli: 4000, memoryBytes: 2 ** 30 }]
  store.writeReport({ atMs: 1000, hosts, down: {}, expectedS: {} }, lease)
  expect(JSON.parse((await muster(['pack', '--json'])).output)).toMatchObject({ name: 'constructor', trouble: null })
})

test('muster pack tells what is declared, and of what nobody knows yet that it is not known', async () => {
  const resources = (text: string) => `{ transport: local, resources: { ${text} } }`
  writeFileSync(
    join(directory, 'hosts.yaml'),
    `cluster: lab\nhosts: { m1: { transport: local }, m2: ${resources('cpu: 4, gpu: 1')}, m3: ${resources('cpu: 0, memory: 1GiB')} }\n`,
  )
  const { output } = await runMuster(['pack', '--engine', 'embedded'], { directory, isTerminal: true })
  expect(output.split('\n').slice(1, 4)).toEqual([
    'm1    -           -                 -',
    'm2    [········]  ············ 0/4  -',
    'm3    -           ············ 0/0  ············ 0 B / 1.0 GiB',
  ])
  const json = await muster(['--json', 'pack', '--engine', 'embedded'])
  const hosts = json.output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(hosts.map(({ unknown }) => unknown)).toEqual([['cores', 'memory'], ['memory'], undefined])
})

describe('where the state directory cannot be made', () => {
  // A file where a directory should be stops root, too.
  beforeEach(() => writeFileSync(join(directory, '.local'), ''))

  test('verbs that only look find an empty queue', async () => {
    expect((await job(['list'])).output).toBe('no jobs; no scheduler running\n')
    expect((await muster(['--json', 'pack', '--engine', 'embedded'])).output).toContain('"name":"there"')
    expect((await job(['show', '1'])).messages).toContain('no such job: 1')
  })

  test('verbs that write say where they would, and what to do', async () => {
    const path = join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db')
    const { exitCode, messages } = await job(['submit', 'true'])
    expect([exitCode, messages]).toEqual([
      3,
      expect.stringContaining(`the queue ${path} cannot be used: part of its path is not a directory\n`),
    ])
    expect(messages).toContain('set XDG_STATE_HOME to another directory')
  })
})

test('a trial that runs again waits for its turn: it is held, can be released and cancelled, and retry says so', async () => {
  const made = await muster(['study', 'create', 'wf', '--param', 'a=1,2,3', '--at-once', '1', '--', 'train $a'])
  expect(made.exitCode).toBe(0)
  {
    using store = openStore()
    const study = store.studies.find('wf')
    if (study === undefined) throw new Error('no study')
    for (const a of ['1', '2', '3']) {
      const trial = store.addTrial(study, { point: { a }, repetition: 0 }, 1)
      store.applyAll([{ id: trial.job ?? 0, event: { kind: 'stop', reason: 'cancelled' } }], 2)
      store.studies.settle(study.id, trial, { kind: 'cancelled', values: {}, endedMs: 2 })
    }
  }
  const retried = await job(['retry', '1-3'])
  expect(retried).toMatchObject({ exitCode: 0 })
  expect(retried.messages).toContain('muster: jobs 2-3 begin as study wf has room: it runs 1 trial at once\n')
  expect((await job(['show', '2'])).output).toContain(
    'held until other trials of its study end. To start it now: muster job release 2',
  )
  expect(await job(['release', '2'])).toMatchObject({ exitCode: 0 })
  expect(await job(['cancel', '3'])).toMatchObject({ exitCode: 0 })
  using store = openStore()
  expect([1, 2, 3].map((id) => store.get(id)?.state.kind)).toEqual(['queued', 'queued', 'cancelled'])
})

test('a scheduler that is stopped says whether another one runs', async () => {
  await job(['submit', '--', 'true'])
  const stopped = async () =>
    (await runMuster(['job', 'work'], { directory, now: () => 1000, signal: AbortSignal.abort() })).messages
  expect(await stopped()).toContain('muster: stopped; no job is running, and none starts until a scheduler runs\n')
  change("UPDATE lease SET token = 1, owner = 'ann on far', until_ms = 9000")
  expect(await stopped()).toContain('muster: stopped; no job is running, and another scheduler runs\n')
})
