/** The queue of jobs on a Ray cluster where resources run out, jobs are cancelled, and the cluster is taken down. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../cluster/ray-environment.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'flock', 'python environments')

/** A process a processor, started for the first job, would be eight here. */
const VARIABLES = 'RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0'

describe.skipIf(!canRun)('the queue on a Ray cluster', { timeout: 400_000 }, () => {
  let lab: Lab
  let worker: ChildProcess | undefined

  const argv = (...args: readonly string[]) => [
    ...PROGRAM,
    ...['--hosts', join(lab.directory, 'ray.yaml'), '--connect-timeout', '40'],
    ...args,
  ]
  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run(argv(...args), { timeoutMs: 300_000 })
  const submit = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await muster('job', 'submit', '--engine', 'ray', ...args)
    expect(code, stderr).toBe(0)
    return stdout.trim()
  }
  const stateOf = async (id: string): Promise<string> =>
    JSON.parse((await muster('job', 'show', id, '--json')).stdout).state.kind
  const reaches = async (id: string, state: string): Promise<void> =>
    await waitUntil(async () => (await stateOf(id)) === state, `job ${id} to be ${state}`, 120_000)

  beforeAll(async () => {
    lab = await startLab({ names: ['m10', 'm8'], mounts: { [RAY_PLACE]: await rayEnvironment() } })
    const [m10, m8] = lab.hosts.map(({ address }) => address)
    const yaml = (environment: string) => `cluster: lab
defaults: { user: root }
hosts:
  m10: { address: ${m10}, resources: { cpu: 4, gpu: 2, memory: 1GiB } }
  m8: { address: ${m8}, resources: { cpu: 4, gpu: 2, memory: 1GiB } }
environment: { venv: ${environment} }
ray: { head: m10, workers: m8, port: 6333, object_store: 100MB, env: { ${VARIABLES} } }
`
    writeFileSync(join(lab.directory, 'ray.yaml'), yaml(`{ path: ${RAY_VENV} }`))
    writeFileSync(join(lab.directory, 'missing.yaml'), yaml('{ path: /root/venv, requirements: requirements.txt }'))
    const up = await muster('ray', 'up', '--yes')
    expect(up.code, up.stdout + up.stderr).toBe(0)
    const [file = '', ...args] = lab.command(argv('job', 'work'))
    worker = spawn(file, args, {
      env: lab.environment,
      stdio: 'ignore',
    })
  }, 1_500_000)
  afterAll(async () => {
    worker?.kill('SIGKILL')
    await lab?.stop()
  })

  it('cancels a job that waits in Ray for more GPUs than any node has, and leaves the others alone', async () => {
    const impossible = await submit('--gpu', '3', '--', 'true')
    await waitUntil(async () => (await muster('ray', 'jobs')).stdout.includes('PENDING'), 'Ray to have it', 120_000)
    const other = await submit('--gpu', '1', '--', 'until test -e /root/go; do sleep 0.2; done')
    await reaches(other, 'running')
    expect((await muster('job', 'cancel', impossible)).code).toBe(0)
    await reaches(impossible, 'cancelled')
    expect(await stateOf(other)).toBe('running')
    for (const host of lab.hosts) await host.exec('touch go')
    await reaches(other, 'done')
    expect((await muster('ray', 'jobs')).stdout).not.toMatch(/PENDING|RUNNING/)
  })

  it('shows GPUs of a placement group as used in each view', async () => {
    const gang = await submit('--bundles', '2', '--gpu', '2', '--strategy', 'STRICT_SPREAD', '--', 'sleep infinity')
    await reaches(gang, 'running')
    await waitUntil(async () => {
      const { stdout } = await muster('ray', 'watch', '--once')
      return /^m10 \(head\) +\S+ +2\/2 /m.test(stdout) && /^m8 +\S+ +2\/2 /m.test(stdout)
    }, 'both nodes to be full')
    const lines = (await muster('pack', '--engine', 'ray', '--json')).stdout.trim().split('\n')
    const nodes = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'node')
    expect(nodes).toMatchObject([{ gpuUsedMilli: 2000 }, { gpuUsedMilli: 2000 }])
  })

  it('tries each point of a study once, and refuses metrics, which it cannot read there', async () => {
    const create = async (...args: readonly string[]) =>
      await muster(
        ...['study', 'create', 'rates', '--engine', 'ray', '--param', 'lr=0.1,0.2,0.3', '--at-once', '2', ...args],
        ...['--', 'echo $lr >>/root/rates'],
      )
    expect(await create('--metric', 'loss')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--engine ray cannot be used with --metric'),
    })
    const { code, stderr } = await create()
    expect(code, stderr).toBe(0)
    const trials = async () =>
      (await muster('study', 'export', 'rates', '--json')).stdout.split('\n').filter((line) => line.includes('"done"'))
    await waitUntil(async () => (await trials()).length === 3, 'all trials to be done', 120_000)
    const files = await Promise.all(lab.hosts.map(async (host) => (await host.exec('cat rates')).stdout))
    expect(files.join('').trim().split('\n').toSorted()).toEqual(['0.1', '0.2', '0.3'])
  })

  it('ends waiting and running jobs when the cluster is taken down', async () => {
    const waiting = await submit('--gpu', '1', '--', 'true')
    await reaches(waiting, 'starting')
    const down = await muster('ray', 'down', '--yes')
    expect(down.code, down.stdout).toBe(0)
    expect(down.stderr).toMatch(/^muster: job \d+ \(.*\) runs on Ray, and ends with it$/m)
    expect(down.stderr).toContain(`muster: job ${waiting} (true) waits in Ray, which ends\n`)
    expect((await muster('job', 'cancel', waiting)).code).toBe(0)
    await reaches(waiting, 'cancelled')
    worker?.kill('SIGINT')
    if (worker !== undefined) await once(worker, 'exit')
    // Nothing is left that a queue without its cluster would wait for.
    expect((await muster('job', 'work', '--until-empty')).code).toBe(0)
  })
  it('is not started if Ray is missing in the environment, and the plan shows the fix', async () => {
    const requirements = join(lab.directory, 'requirements.txt')
    const other = ['--hosts', join(lab.directory, 'missing.yaml')]
    writeFileSync(requirements, 'numpy\n')
    for (const mode of ['--dry-run', '--yes']) {
      const { code, stdout } = await muster(...other, 'up', 'ray', mode)
      expect(stdout).toContain('! there is no ray in /root/venv. Create the environment first: muster up env.')
      expect(stdout).toContain('2 blocked')
      expect(code).toBe(5)
    }
    const whole = await muster(...other, 'up', '--dry-run')
    expect(whole.stdout).toContain('~ risk: requirements.txt does not name ray.')
    writeFileSync(requirements, 'numpy\nray[default]\n')
    const named = await muster(...other, 'up', '--dry-run')
    expect(named.stdout).not.toContain('does not name ray')
    expect(named.stdout).toContain('start the head')
  })
})
