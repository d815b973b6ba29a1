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

  const work = () => {
    const [file = '', ...args] = lab.command(argv('job', 'work'))
    worker = spawn(file, args, { env: lab.environment, stdio: 'ignore' })
  }
  const trialsOf = async (study: string) =>
    (await muster('study', 'results', study, '--json')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  const isOver = async (study: string): Promise<void> =>
    await waitUntil(
      async () => JSON.parse((await muster('study', 'show', study, '--json')).stdout).state === 'done',
      `study ${study} to be over`,
      240_000,
    )

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
    work()
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

  it('reads the metrics of the first rank of a gang, and shows its GPUs as used in each view', async () => {
    const options = ['--bundles', '2', '--gpu', '2', '--strategy', 'STRICT_SPREAD', '--metric', 'loss']
    const gang = await submit(
      ...[...options, '--', 'printf "10%% loss=3\\r20%% loss=$((MUSTER_RANK + 4))\\r"; sleep infinity'],
    )
    await reaches(gang, 'running')
    const shown = async () => (await muster('job', 'show', gang)).stdout
    await waitUntil(async () => /^loss: +4$/m.test(await shown()), 'its metric', 60_000)
    await waitUntil(async () => {
      const { stdout } = await muster('ray', 'watch', '--once')
      return /^m10 \(head\)\t\S+\t2\/2\t/m.test(stdout) && /^m8\t\S+\t2\/2\t/m.test(stdout)
    }, 'both nodes to be full')
    const lines = (await muster('pack', '--engine', 'ray', '--json')).stdout.trim().split('\n')
    const nodes = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'node')
    expect(nodes).toMatchObject([{ gpuUsedMilli: 2000 }, { gpuUsedMilli: 2000 }])
  })

  it('tries each point of a study once and reads what it has reached, though the scheduler is killed', async () => {
    const command = 'echo $size >>ran; echo loss=$(((size - 3) * (size - 3))); sleep 1'
    const options = ['--param', 'size=int:1:6', '--metric', 'min:loss', '--method', 'random', '--at-once', '3']
    const created = await muster('study', 'create', 'points', '--engine', 'ray', ...options, '--', command)
    expect(created.code, created.stderr).toBe(0)
    await waitUntil(async () => (await trialsOf('points')).some(({ state }) => state === 'done'), 'one to end', 120_000)
    worker?.kill('SIGKILL')
    if (worker !== undefined) await once(worker, 'exit')
    work()
    await isOver('points')
    const trials = await trialsOf('points')
    expect(trials.map(({ state }) => state)).toEqual(Array(6).fill('done'))
    expect(trials.map(({ metrics, parameters }) => [Number(parameters.size), metrics.loss]).toSorted()).toEqual([
      [1, 4],
      [2, 1],
      [3, 0],
      [4, 1],
      [5, 4],
      [6, 9],
    ])
    expect(trials[0].parameters).toEqual({ size: '3' })
    const ran = (await Promise.all(lab.hosts.map(async (host) => (await host.exec('cat ran')).stdout))).join('')
    expect(ran.trim().split('\n').toSorted()).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  it('stops a trial of a study that is worse than the others', async () => {
    // Six good ones end at once; the bad one would never end.
    const command = `if [ $size -lt 7 ]; then echo step=100 loss=0
else step=0; while step=$((step + 1)); do echo step=$step loss=1; sleep 0.4321; done; fi`
    const options = ['--param', 'size=int:1:7', '--metric', 'min:loss', '--method', 'grid', '--prune', 'halving']
    const created = await muster('study', 'create', 'early', '--engine', 'ray', ...options, '--', command)
    expect(created.code, created.stderr).toBe(0)
    await isOver('early')
    const trials = await trialsOf('early')
    expect(trials.filter(({ state }) => state === 'done')).toHaveLength(6)
    const pruned = trials.filter(({ state }) => state === 'pruned')
    expect(pruned).toMatchObject([
      {
        parameters: { size: '7' },
        reason: expect.stringMatching(/^at step \d+ its loss 1 ranks \d of \d trials; /),
      },
    ])
    await reaches(String(pruned[0].job), 'cancelled')
    expect(
      lab.hosts.flatMap((host) => host.processes().filter(({ command: line }) => line === 'sleep 0.4321')),
    ).toEqual([])
  })

  it('ends waiting and running jobs when the cluster is taken down', async () => {
    const waiting = await submit('--gpu', '1', '--', 'true')
    await reaches(waiting, 'pending')
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
