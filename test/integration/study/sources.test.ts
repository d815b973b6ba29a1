/** `muster study import` of files that real Optuna and Ray Tune wrote, and of files that mean harm; and `export` of what was read. */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
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
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import type { Trial } from '../../../src/scheduler/study/study.ts'
import { requirement } from '../../support/requirements.ts'
import { runMuster } from '../../support/run-muster.ts'

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'study')
const NOW = 1_800_000_000_000

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-study-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { m1: { transport: local, resources: { cpu: 2 } } }\n',
  )
})
afterEach(() => rmSync(directory, { recursive: true }))

const study = (...args: readonly string[]) => runMuster(['study', ...args], { directory, now: () => NOW })
const inDirectory = (name: string) => join(directory, name)

/** As real Optuna 5 left it. */
function database(change?: (file: DatabaseSync) => void): string {
  const file = new DatabaseSync(inDirectory('optuna.db'), { enableForeignKeyConstraints: false })
  file.exec(readFileSync(join(FIXTURES, 'optuna.sql'), 'utf8'))
  change?.(file)
  file.close()
  return `sqlite:///${inDirectory('optuna.db')}`
}

function journal(more = ''): string {
  writeFileSync(inDirectory('optuna.log'), readFileSync(join(FIXTURES, 'optuna.journal'), 'utf8') + more)
  return `journal:///${inDirectory('optuna.log')}`
}

/** As real Ray 2.60 left it, without pickles. */
function experiment(name: string): string {
  const files = JSON.parse(readFileSync(join(FIXTURES, `ray-${name}.json`), 'utf8')) as Readonly<Record<string, string>>
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name, path)), { recursive: true })
    writeFileSync(join(directory, name, path), text)
  }
  return inDirectory(name)
}

function read(name = 'wf') {
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  const found = store.studies.find(name)
  if (found === undefined) throw new Error(`there is no study ${name}`)
  return { ...found, trials: store.studies.trials(found.id), steps: store.studies.steps(found.id) }
}

const line = ({ number, point, end }: Trial) =>
  `${number} ${end?.kind ?? 'open'} ${JSON.stringify(point)} ${JSON.stringify(end?.values)}`

describe.skipIf(!requirement('python3'))('a study of Optuna', () => {
  it.each(['SQLite', 'journal'])('is read from a %s file', async (kind) => {
    const url = kind === 'SQLite' ? database() : journal()
    const { exitCode, output, messages } = await study('import', 'wf', url, '--study-name', 'wf')
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: 'wf: 9 trials (5 done, 2 failed, 1 open, 1 pruned)\n' })
    expect(messages).toContain('no scheduler running')
    const { spec, trials, steps } = read()
    expect(spec.parameters.slice(0, 6)).toEqual([
      'x=float:-10:10',
      'k=int:1:9:2',
      'learning_rate=log:0.00001:0.1',
      's=float:0.1:0.3:0.1',
      'u=log:1:1024',
      'c=None,True,1,2.5,a;b,=cmd',
    ])
    expect(spec.metrics).toEqual([{ name: 'acc', isMost: true }])
    expect(trials.map(({ end }) => end?.kind ?? 'open')).toEqual([
      'done',
      'done',
      'done',
      'pruned',
      'failed',
      'failed',
      'done',
      'done',
      'open',
    ])
    expect(trials[0]?.point.x).toBe('1')
    expect(trials[6]?.end?.values).toEqual({ acc: 'inf' })
    expect(trials[8]).toMatchObject({ point: { x: '2' } })
    expect(steps.get(8)).toEqual([{ step: 1, value: 3 }])
    const before = readFileSync(inDirectory(kind === 'SQLite' ? 'optuna.db' : 'optuna.log'))
    expect((await study('import', 'wf', url, '--study-name', 'wf', '--json')).exitCode).toBe(0)
    expect(readFileSync(inDirectory(kind === 'SQLite' ? 'optuna.db' : 'optuna.log')).equals(before)).toBe(true)
    expect(read().trials.map(line)).toEqual(trials.map(line))
  })

  it('is read with several metrics', async () => {
    await study('import', 'wf', database(), '--study-name', 'two', '--once')
    const { spec, trials, state } = read()
    expect(spec.metrics).toEqual([{ name: 'value_0' }, { name: 'value_1', isMost: true }])
    expect(trials.map(({ end }) => end?.values.value_1)).toEqual(['2', '2', '2'])
    expect(state).toMatchObject({ kind: 'stopped', reason: 'read once' })
  })

  it('is read again when it has gone on', async () => {
    const url = journal()
    await study('import', 'wf', url, '--study-name', 'wf')
    appendFileSync(
      inDirectory('optuna.log'),
      [
        { op_code: 7, worker_id: 'w', trial_id: 8, step: 2, intermediate_value: 1.5 },
        {
          op_code: 6,
          worker_id: 'w',
          trial_id: 8,
          state: 1,
          values: [4],
          datetime_complete: '2026-11-23T06:40:00+00:00',
        },
        { op_code: 4, worker_id: 'w', study_id: 0, datetime_start: '2026-11-23T06:41:00+00:00' },
        { op_code: 5, worker_id: 'w', trial_id: 99, param_name: 'x', param_value_internal: 1, distribution: '{}' },
      ]
        .map((log) => `${JSON.stringify(log)}\n`)
        .join(''),
    )
    // Being written.
    appendFileSync(inDirectory('optuna.log'), '{"op_code":7,"worker_id":"w","trial_id":8,"st')
    const { output } = await study('import', 'wf', url, '--study-name', 'wf')
    expect(output).toBe('wf: 10 trials (6 done, 2 failed, 1 open, 1 pruned)\n')
    expect(read().trials[8]?.end).toMatchObject({ kind: 'done', values: { acc: '4' } })
    expect(read().steps.get(8)).toEqual([
      { step: 1, value: 3 },
      { step: 2, value: 1.5 },
    ])
  })

  it('is read on a host', async () => {
    expect(await study('import', 'wf', database(), '--study-name', 'wf', '--on', 'm1')).toMatchObject({
      exitCode: 0,
      output: 'wf: 9 trials (5 done, 2 failed, 1 open, 1 pruned)\n',
    })
    expect(read().spec.source).toMatchObject({ host: 'm1' })
  })

  it('is read without the modules in the current directory, where others may write', async () => {
    for (const name of ['hashlib', 'json', 'sqlite3']) writeFileSync(inDirectory(`${name}.py`), "open('ran', 'w')\n")
    expect(await study('import', 'wf', database(), '--study-name', 'wf')).toMatchObject({ exitCode: 0 })
    expect(readdirSync(directory)).not.toContain('ran')
  })

  it('is not taken from what is none', async () => {
    const url = database()
    const messages = async (...args: readonly string[]) => {
      const result = await study('import', 'x', ...args)
      expect(result.exitCode).not.toBe(0)
      return result.messages
    }
    expect(await messages(url)).toContain('Choose one with --study-name: wf, two.')
    expect(await messages(url, '--study-name', 'nope\u001b[31m')).toContain('there is no study nope\\x1b[31m')
    expect(await messages('sqlite:///none.db')).toContain('it does not exist or is not readable')
    writeFileSync(inDirectory('text.db'), 'not a database, although it is long enough to be one')
    expect(await messages('sqlite:///text.db')).toContain('file is not a database')
    expect(await messages('journal:///text.db')).toContain('is not an Optuna storage')
    new DatabaseSync(inDirectory('other.db')).exec('CREATE TABLE studies (id INTEGER)')
    expect(await messages('sqlite:///other.db')).toContain('is not an Optuna storage')
    expect(await messages('ftp://me:secret@host/')).toContain('cannot use ftp://me:***@host/')
    expect(await messages('postgresql://me:secret@127.0.0.1:1/x')).not.toContain('secret')
    expect(await messages(url, '--on', 'm9')).toContain('hosts.yaml has no such host')
    expect(await messages(url, '--metric', 'loss')).toContain('Optuna says what it optimises')
    expect((await study('list')).output).toContain('no studies')
  })

  it('is bounded, whatever is in it', async () => {
    const url = database((file) => {
      file.exec(`
        UPDATE trial_params SET distribution_json = printf('%.*c', 100000000, 'x') WHERE param_id = 2;
        UPDATE trial_params SET param_name = char(27) || '[31m' || char(8238) || printf('%.*c', 100000, 'n') WHERE param_id = 3;
        UPDATE trial_params SET param_name = '__proto__' WHERE param_id = 9;
        UPDATE trial_values SET value = 9e999 WHERE trial_id = 1;
        UPDATE trial_values SET value_type = char(27), value = NULL WHERE trial_id = 2;
        UPDATE trials SET state = char(27) || 'X' WHERE number = 2;
        UPDATE trials SET datetime_start = '9999-99-99', datetime_complete = 5 WHERE number = 1;
        UPDATE trial_intermediate_values SET step = 'x' WHERE trial_id = 1 AND step = 1;
        UPDATE trial_user_attributes SET key = 'muster:host', value_json = '"m1' || char(7) || '"' WHERE trial_id = 1;
        WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 1000100)
          INSERT INTO trials (number, study_id, state) SELECT i, 1, 'RUNNING' FROM n;
      `)
    })
    const { exitCode, output, messages } = await study('import', 'wf', url, '--study-name', 'wf', '--once')
    expect(exitCode).toBe(0)
    expect(messages).toContain('only the first 100000 of its 1000010 trials are read')
    expect(output).toMatch(/^wf: 99908 trials/)
    const { spec, trials } = read()
    const controls = /[\u0000-\u001f\u007f-\u009f\u202e]/
    expect(spec.parameters.join('')).not.toMatch(controls)
    expect(JSON.stringify(trials.slice(0, 20))).not.toMatch(controls)
    expect(Math.max(...spec.parameters.map((text) => text.length))).toBeLessThan(300)
    expect(trials[0]?.point.k).toMatch(/^\d$/)
    expect((await study('results', 'wf', '--limit', '3')).exitCode).toBe(0)
  })

  it('gives up on a journal of nonsense', async () => {
    const url = journal(
      `${JSON.stringify({ op_code: 4, study_id: 0, distributions: 5, params: 'x' })}\n${'['.repeat(100_000)}\n{"op_code":"x"}\n`,
    )
    expect((await study('import', 'wf', url, '--study-name', 'wf')).output).toMatch(/^wf: 9 trials/)
  })
})

describe.skipIf(!requirement('python3'))('an experiment of Ray Tune', () => {
  it('is read, with errors and what each trial reported', async () => {
    const place = experiment('random')
    const { output } = await study('import', 'wf', place, '--metric', 'max:acc')
    expect(output).toBe('wf: 6 trials (5 done, 1 failed)\n')
    const { spec, trials, steps } = read()
    expect(spec.metrics).toEqual([{ name: 'acc', isMost: true }])
    expect(spec.parameters.map((text) => text.split(':')[0])).toEqual(['x=float', 'b=int'])
    expect(trials[1]?.end).toMatchObject({ kind: 'failed', reason: 'RuntimeError: too large' })
    expect(trials[2]).toMatchObject({ point: { b: '8' }, end: { kind: 'done', values: { acc: '1.643302270450401' } } })
    expect(steps.get(2)).toHaveLength(3)
    expect((await study('import', 'wf', place)).exitCode).toBe(0)
    expect(read().trials.map(line)).toEqual(trials.map(line))
  })

  it('is read with the line of descent of a population', async () => {
    await study('import', 'wf', experiment('population'))
    const { trials, spec } = read()
    expect(spec.metrics).toEqual([{ name: 'loss' }])
    expect(trials.map(({ number, member, parent, end }) => [number, member, parent, end?.kind])).toEqual([
      [0, 0, undefined, 'pruned'],
      [1, 1, undefined, 'done'],
      [2, 2, undefined, 'pruned'],
      [3, 3, undefined, 'pruned'],
      [4, 3, 1, 'done'],
      [5, 0, 4, 'done'],
      [6, 2, 5, 'done'],
    ])
    expect(trials[3]?.end?.reason).toBe('replaced by the checkpoint of trial 1 at step 7')
    // Trial 6 reported nothing before the end.
    expect([5, 6].map((number) => trials[number]?.end?.values)).toEqual([{ loss: '4.688242984815351e-7' }, {}])
  })

  it('follows no link out of its directory, and waits for no pipe', async () => {
    const place = experiment('random')
    const [first = '', second = ''] = readdirSync(place).filter((name) => name.startsWith('f_'))
    rmSync(join(place, first, 'result.json'))
    writeFileSync(inDirectory('secret'), '{"training_iteration":1,"acc":42}\n')
    symlinkSync(inDirectory('secret'), join(place, first, 'result.json'))
    rmSync(join(place, second), { recursive: true })
    mkdirSync(join(place, second))
    spawnSync('mkfifo', [join(place, second, 'result.json')])
    expect((await study('import', 'wf', place, '--metric', 'max:acc')).exitCode).toBe(0)
    expect(JSON.stringify([...read().steps.values()])).not.toContain('"value":42}')
  })
})

describe.skipIf(!requirement('python3'))('export', () => {
  it('prints a table in which no text is a formula', async () => {
    await study(
      'import',
      'wf',
      database((file) =>
        file.exec(
          `UPDATE trial_user_attributes SET key = 'muster:reason', value_json = '"@SUM(1),\\"x\\""' WHERE trial_id = 1`,
        ),
      ),
      '--study-name',
      'wf',
    )
    const { output } = await study('export', 'wf', '--csv')
    const lines = output.split('\r\n')
    expect(lines[0]).toMatch(
      /^trial,state,x,k,learning_rate,s,u,c(,momentum)?,acc,repetition,job,host,devices,started,seconds,reason$/,
    )
    expect(lines).toHaveLength(11)
    expect(lines[1]).toContain(`"'@SUM(1),""x"""`)
    expect(output).not.toMatch(/(^|,)=/m)
    expect(output).toMatch(/,-\d/)
  })

  it('prints JSON lines with the steps of each trial', async () => {
    await study('import', 'wf', journal(), '--study-name', 'wf')
    const { output } = await study('export', 'wf', '--json')
    const steps = (trial: number) => (objects[trial]?.steps as unknown[] | undefined)?.length
    const objects = output
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as Record<string, unknown>)
    expect(objects).toHaveLength(9)
    // Also of those that failed.
    expect([0, 3, 4, 5].map(steps)).toEqual([3, 3, 3, 3])
    expect(objects[8]).toMatchObject({
      type: 'trial',
      study: 'wf',
      trial: 8,
      state: 'open',
      parameters: { x: '2' },
      steps: [[1, 3]],
    })
  })

  it('says what is missing', async () => {
    await study('import', 'wf', journal(), '--study-name', 'wf')
    expect((await study('export', 'wf')).messages).toContain('the format is missing')
    const both = await study('export', 'wf', '--csv', '--json')
    expect(both.messages).toContain('--csv and --json cannot be used together')
    expect((await study('export', 'wf', '--csv', '--on', 'm1')).messages).toContain('need --optuna')
    expect((await study('export', 'wf', '--optuna', '/srv/x')).messages).toContain('write it as sqlite:///FILE')
    expect((await study('import', 'wf', 'journal:///other.log')).messages).toContain(
      'another study named wf already exists',
    )
  })
})
