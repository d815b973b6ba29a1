/** Ray Train through the queue: what `muster plan` says that it needs, and a directory of results that is one on both hosts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../../lab/cluster/python-environment.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'launch')
/** Where hosts see the fixtures. */
const PLACE = '/srv'
const PATIENCE_MS = 240_000

const canRun = requirement(
  ...(['root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'environment ray-libraries', 'python torch'] as const),
)

describe.skipIf(!canRun)('Ray Train through the queue', { timeout: 600_000 }, () => {
  let lab: Lab
  let worker: ChildProcess | undefined

  const argv = (...args: readonly string[]) => [
    ...PROGRAM,
    ...['--hosts', join(lab.directory, 'train.yaml'), '--connect-timeout', '40'],
    ...args,
  ]
  const muster = async (...args: readonly string[]) => await lab.run(argv(...args), { timeoutMs: 300_000 })
  /** Its needs are those that the plan names. */
  const train = async (storage: string): Promise<string> => {
    const line = 'ScalingConfig(num_workers=2, placement_strategy="SPREAD")'
    const { needs } = JSON.parse((await muster('plan', 'train', '--from-command', line, '--json')).stdout)
    expect(needs).toBe('2x{CPU:1} SPREAD')
    const command = ['python', '-W', 'ignore', `${PLACE}/ray_train.py`, storage]
    const how = ['--engine', 'ray', '--needs', needs, '--storage', storage, '--', ...command]
    const { code, stdout, stderr } = await muster('job', 'submit', ...how)
    expect(code, stderr).toBe(0)
    const id = stdout.trim()
    const isOver = async () =>
      !['queued', 'starting', 'pending', 'running', 'ending'].includes((await show(id)).state.kind)
    await waitUntil(isOver, `the end of job ${id}`, PATIENCE_MS)
    return id
  }
  const show = async (id: string) => JSON.parse((await muster('job', 'show', id, '--json')).stdout)

  beforeAll(async () => {
    const mounts = { [ENVIRONMENT_PLACE]: await pythonEnvironment('ray-libraries'), [PLACE]: FIXTURES }
    lab = await startLab({ count: 2, perHost: (name) => (name === 'm2' ? { homeOf: 'm1' } : {}), mounts })
    const [m1, m2] = lab.hosts.map(({ address }) => address)
    const yaml = `cluster: train
defaults: { user: root, resources: { cpu: 4, memory: 1GiB } }
hosts: { m1: { address: ${m1} }, m2: { address: ${m2} } }
environment: { venv: { path: ${ENVIRONMENT} } }
ray:
  head: m1
  workers: m2
  object_store: 100MB
  env: { RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0, GLOO_SOCKET_IFNAME: eth0 }
`
    writeFileSync(join(lab.directory, 'train.yaml'), yaml)
    const up = await muster('ray', 'up', '--yes')
    expect(up.code, up.stdout + up.stderr).toBe(0)
    const [file = '', ...args] = lab.command(argv('job', 'work'))
    worker = spawn(file, args, { env: lab.environment, stdio: 'ignore' })
  }, 1_500_000)
  afterAll(async () => {
    worker?.kill('SIGKILL')
    await lab?.stop()
  })

  it('trains on both hosts, and has one checkpoint in the directory of results', async () => {
    await lab.host('m1').exec('mkdir results')
    const id = await train('/root/results')
    const { stdout } = await muster('job', 'logs', id)
    expect((await show(id)).state.kind, stdout).toBe('done')
    expect(stdout).toMatch(/checkpoint \['rank-0 of m[12]', 'rank-1 of m[12]'\]\nsum 3\.0/)
  })

  it('does not begin if the directory is another one on a host', async () => {
    for (const host of lab.hosts) await host.exec('mkdir /tmp/results')
    const id = await train('/tmp/results')
    expect(await show(id)).toMatchObject({
      state: { kind: 'failed' },
      reason: expect.stringContaining('m2: /tmp/results is not the directory that m1 has'),
    })
    for (const host of lab.hosts) expect((await host.exec('ls -A /tmp/results')).stdout).toBe('')
  })
})
