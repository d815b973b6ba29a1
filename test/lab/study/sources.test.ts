/** Studies of real Optuna that run on a host: read and followed over SSH, and written back so that Optuna opens them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { shellQuote } from '../../../src/base/shell-quote.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../cluster/python-environment.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ssh',
  'ip',
  'nsenter',
  'flock',
  'setsid',
  'python environments',
)

const BUILD_MS = 300_000

/** Each trial reports two steps, and then waits for a file with its number. */
const OBJECTIVE = `import os, sys, time
import optuna
url = sys.argv[1]
if url.startswith("journal:///"):
    from optuna.storages.journal import JournalFileBackend
    url = optuna.storages.JournalStorage(JournalFileBackend(url[11:]))
study = optuna.create_study(storage=url, study_name="live", directions=["maximize"], load_if_exists=True)
study.set_metric_names(["acc"])
def objective(trial):
    x = trial.suggest_float("learning rate", 1e-5, 1e-1, log=True)
    size = trial.suggest_int("size", 10, 200, step=10)
    opt = trial.suggest_categorical("opt", ["adam", None, True, 0.5])
    for step in range(2): trial.report(size + step, step)
    while not os.path.exists("go%d" % trial.number): time.sleep(0.05)
    if trial.number == 1: raise optuna.TrialPruned()
    if trial.number == 2: raise ValueError("no")
    return size * x
study.optimize(objective, n_trials=4, catch=(ValueError,))
`

/** What Optuna itself says of a study. */
const TELL = `import json, sys
import optuna
url = sys.argv[1]
if url.startswith("journal:///"):
    from optuna.storages.journal import JournalFileBackend
    url = optuna.storages.JournalStorage(JournalFileBackend(url[11:]))
study = optuna.load_study(storage=url, study_name=sys.argv[2])
print(json.dumps([[t.state.name, t.values, t.params, t.intermediate_values, sorted(t.user_attrs)] for t in study.trials]))
`

type Told = readonly [
  string,
  readonly number[] | null,
  Readonly<Record<string, unknown>>,
  Readonly<Record<string, number>>,
]

describe.skipIf(!canRun)('a study of Optuna on a host', { timeout: 200_000 }, () => {
  let lab: Lab
  let file: string
  const children: ChildProcess[] = []

  const argv = (...args: readonly string[]) => [...PROGRAM, '--hosts', file, '--connect-timeout', '10', ...args]
  const muster = async (...args: readonly string[]) => await lab.run(argv(...args), { timeoutMs: 60_000 })
  const host = () => lab.hosts[0] ?? raise('no host')
  const python = (program: string, ...args: readonly string[]) =>
    `${ENVIRONMENT}/bin/python -W ignore -c ${[program, ...args].map(shellQuote).join(' ')}`
  const tell = async (url: string, name: string) =>
    JSON.parse((await host().exec(python(TELL, url, name))).stdout) as readonly Told[]
  const exported = async (name: string) =>
    (await muster('study', 'export', name, '--json')).stdout
      .trim()
      .split('\n')
      .map((line): Record<string, unknown> => ({ ...(JSON.parse(line) as object), study: '' }))

  beforeAll(async () => {
    lab = await startLab({ count: 1, mounts: { [ENVIRONMENT_PLACE]: await pythonEnvironment('optuna') } })
    file = join(lab.directory, 'study.yaml')
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    writeFileSync(file, `cluster: study\ndefaults: { user: root, resources: { cpu: 2 } }\nhosts:\n${hosts}`)
  }, BUILD_MS)
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'close')
      child.kill('SIGKILL')
      await ended
    }
  })
  afterAll(async () => await lab?.stop())

  /** A scheduler. */
  const work = () => {
    const [program = '', ...args] = lab.command(argv('job', 'work'))
    const child = spawn(program, args, { env: lab.environment, stdio: 'ignore' })
    children.push(child)
    return child
  }

  it('is followed while it runs, also by another scheduler', async () => {
    const url = 'sqlite:///live.db'
    const running = host().exec(`rm -f go*; ${python(OBJECTIVE, url)}`)
    const imported = async () => (await muster('study', 'import', 'live', url, '--on', host().name)).code === 0
    await waitUntil(imported, 'the study has a trial', 60_000)
    const states = async () => (await exported('live')).map(({ state }) => String(state)).join()
    expect(await states()).toBe('open')
    const first = work()
    await host().exec('touch go0 go1')
    await waitUntil(async () => (await states()) === 'done,pruned,open', 'two trials are over', 60_000)
    const ended = once(first, 'close')
    first.kill('SIGKILL')
    await ended
    work()
    await host().exec('touch go2 go3')
    await running
    await waitUntil(async () => (await states()) === 'done,pruned,failed,done', 'all trials are over', 60_000)
    const there = await tell(url, 'live')
    const here = await exported('live')
    for (const [number, [, values, params, steps]] of there.entries()) {
      const { opt } = params
      expect(here[number]).toMatchObject({
        parameters: {
          learning_rate: String(params['learning rate']),
          size: String(params.size),
          opt: opt === null ? 'None' : opt === true ? 'True' : String(opt),
        },
        metrics: values === null ? {} : { acc: values[0] },
        steps: Object.entries(steps).map(([step, value]) => [Number(step), value]),
      })
    }
  })

  it.each([
    'sqlite:///out.db',
    'journal:///out.log',
  ])('is exported to %s, where Optuna opens it, and read back', async (url) => {
    const name = url.startsWith('sqlite') ? 'a' : 'b'
    const source = `journal:///own-${name}.log`
    await host().exec(`touch go0 go1 go2 go3; ${python(OBJECTIVE, source)}`)
    expect(await muster('study', 'import', name, source, '--on', host().name, '--once')).toMatchObject({ code: 0 })
    const place = ['--on', host().name, '--from-env', `venv:${ENVIRONMENT}`]
    expect(await muster('study', 'export', name, '--optuna', url, ...place)).toMatchObject({ code: 0 })
    const [before, after] = [await tell(source, 'live'), await tell(url, name)]
    expect(after.map(([state, values, , steps]) => [state, values, steps])).toEqual(
      before.map(([state, values, , steps]) => [state, values, steps]),
    )
    expect(after.map(([, , params]) => params['learning rate'])).toEqual(
      before.map(([, , params]) => params['learning rate']),
    )
    expect(after.map(([, , params]) => params.size)).toEqual(before.map(([, , params]) => params.size))
    const again = await muster('study', 'export', name, '--optuna', url, ...place)
    expect(again.stderr).toContain(`already has a study ${name}`)
    expect(await muster('study', 'export', name, '--optuna', url, '--replace', ...place)).toMatchObject({ code: 0 })
    expect(await muster('study', 'import', `${name}2`, url, '--on', host().name, '--once')).toMatchObject({ code: 0 })
    expect(await exported(`${name}2`)).toEqual(await exported(name))
  })

  it('says that Optuna is missing, or that there is no such file', async () => {
    const { stderr } = await muster('study', 'export', 'a', '--optuna', 'sqlite:///x.db', '--on', host().name)
    expect(stderr).toContain(`optuna is not installed on ${host().name}`)
    const none = await muster('study', 'import', 'none', 'sqlite:///none.db', '--on', host().name)
    expect(none.stderr).toContain('it does not exist or is not readable')
    expect((await host().exec('ls none.db x.db')).stdout).toBe('')
  })
})

function raise(message: string): never {
  throw new Error(message)
}
