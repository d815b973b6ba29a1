/** Where a study lets Optuna run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { runMuster } from '../../../support/run-muster.ts'

const HOSTS = 'cluster: lab\nhosts: { m1: { transport: local }, m2: { transport: local }, m3: { transport: local } }\n'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-study-optuna-'))
  declare('')
})
afterEach(() => rmSync(directory, { recursive: true }))

const declare = (environment: string) => writeFileSync(join(directory, 'hosts.yaml'), `${HOSTS}${environment}`)

const create = (...options: readonly string[]) => {
  const known = ['study', 'create', 'wf', '--param', 'size=int:1:5', '--metric', 'loss']
  return runMuster([...known, ...options, '--', 'echo $size'], { directory, now: () => 1000 })
}

async function placeOf(...options: readonly string[]) {
  const { exitCode, messages } = await create(...options)
  expect([exitCode, messages]).toEqual([0, 'muster: no scheduler running. Run: muster job work\n'])
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  return store.studies.find('wf')?.spec.sampler
}

describe('where Optuna runs', () => {
  test('on the host that others follow, in its environment', async () => {
    declare('environment: { venv: { path: ~/my lab, from: m2, hosts: "m[2-3]" } }\n')
    expect(await placeOf('--method', 'tpe', '--sampler-option', 'n_startup_trials=5')).toEqual({
      host: 'm2',
      environment: '~/my lab',
      setUp: `. "$HOME"/'my lab'/bin/activate || exit 126`,
      options: { n_startup_trials: '5' },
    })
  })

  test('outside an environment that the host does not have', async () => {
    declare('environment: { venv: { path: /opt/lab, from: m2, hosts: "m[2-3]" } }\n')
    const options = ['--sampler-on', 'm1', '--sampler-option', 'a=1', '--sampler-option', 'b=x=y']
    expect(await placeOf('--method', 'optuna:CmaEsSampler', ...options)).toEqual({
      host: 'm1',
      setUp: '',
      options: { a: '1', b: 'x=y' },
    })
  })

  test('in the container that hosts.yaml declares, or in one of its own', async () => {
    declare('environment: { docker: { image: "repo/lab:1", name: trainer } }\n')
    expect(await placeOf('--method', 'tpe')).toMatchObject({
      host: 'm1',
      setUp: `python3() { docker exec -i trainer python3 "$@"; }`,
    })
    declare('')
    rmSync(join(directory, '.local'), { recursive: true })
    expect(await placeOf('--method', 'tpe', '--sampler-on', 'm3', '--from-env', "image:it's")).toMatchObject({
      setUp: `python3() { docker run --rm --init -i 'it'\\''s' python3 "$@"; }`,
    })
  })

  test('nowhere for a method that needs none', async () => {
    expect(await placeOf('--method', 'random')).toBeUndefined()
  })

  test.each([
    [['--method', 'tpe'], 'needs a host on which Optuna is installed'],
    [['--method', 'tpe', '--sampler-on', 'm9'], '--sampler-on m9: hosts.yaml has no such host'],
    [['--method', 'random', '--sampler-on', 'm1'], 'need --method tpe or optuna:SAMPLER'],
    [['--method', 'grid', '--sampler-option', 'a=1'], 'need --method tpe or optuna:SAMPLER'],
    [['--method', 'tpe', '--sampler-on', 'm1', '--sampler-option', 'a'], 'Write it as n_startup_trials=20.'],
    [['--method', 'optuna:os.system'], 'unknown method: optuna:os.system'],
    [['--method', 'optuna:'], 'unknown method: optuna:'],
  ])('refuses %j', async (options, words) => {
    expect(await create(...options)).toMatchObject({ exitCode: 2, messages: expect.stringContaining(words) })
  })
})
