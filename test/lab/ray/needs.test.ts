/** Jobs on a Ray cluster that say what they need: they wait in the queue for room, and their results go to a directory of all hosts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../cluster/ray-environment.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'flock', 'python environments')

/** A process a processor, started for the first job, would be eight here. */
const VARIABLES = 'RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0'

/** Takes a placement group of so many GPUs, as training does, and ends when ~/NAME is there. */
const train = (gpus: number, name: string): string => `python -u -c '
import os, ray, time
from ray.util.placement_group import placement_group
ray.init(log_to_driver=False, logging_level="ERROR")
group = placement_group([{"GPU": 1}] * ${gpus}, strategy="PACK")
ray.get(group.ready())
print("placed", flush=True)
while not os.path.exists(os.path.expanduser("~/${name}")): time.sleep(0.2)
'`

describe.skipIf(!canRun)('jobs on Ray that say what they need', { timeout: 400_000 }, () => {
  let lab: Lab
  let worker: ChildProcess | undefined

  const argv = (...args: readonly string[]) => [
    ...PROGRAM,
    ...['--hosts', join(lab.directory, 'ray.yaml'), '--connect-timeout', '40'],
    ...args,
  ]
  const muster = async (...args: readonly string[]) => await lab.run(argv(...args), { timeoutMs: 300_000 })
  const submit = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await muster('job', 'submit', '--engine', 'ray', ...args)
    expect(code, stderr).toBe(0)
    return stdout.trim()
  }
  const show = async (id: string) => JSON.parse((await muster('job', 'show', id, '--json')).stdout)
  const reaches = async (id: string, ...states: readonly string[]): Promise<string> => {
    let state = ''
    const isThere = async () => {
      state = (await show(id)).state.kind
      return states.includes(state)
    }
    await waitUntil(isThere, `job ${id} to be ${states.join(' or ')}`, 120_000)
    return state
  }
  const prints = async (id: string, text: string): Promise<void> =>
    await waitUntil(
      async () => (await muster('job', 'logs', id)).stdout.includes(text),
      `${text} of job ${id}`,
      120_000,
    )
  const touch = async (name: string) => await lab.host('m10').exec(`touch ${name}`)
  const proofs = async () =>
    (await lab.host('m10').exec('find /root /tmp -name ".muster-proof-*"; find /root -maxdepth 1 -name "*.muster*"'))
      .stdout

  beforeAll(async () => {
    const perHost = (name: string) => (name === 'm8' ? { homeOf: 'm10' } : {})
    lab = await startLab({ names: ['m10', 'm8'], perHost, mounts: { [RAY_PLACE]: await rayEnvironment() } })
    const [m10, m8] = lab.hosts.map(({ address }) => address)
    const yaml = `cluster: lab
defaults: { user: root }
hosts:
  m10: { address: ${m10}, resources: { cpu: 4, gpu: 2, memory: 1GiB } }
  m8: { address: ${m8}, resources: { cpu: 4, gpu: 2, memory: 1GiB } }
environment: { venv: { path: ${RAY_VENV} } }
ray: { head: m10, workers: m8, port: 6333, object_store: 100MB, env: { ${VARIABLES} } }
`
    writeFileSync(join(lab.directory, 'ray.yaml'), yaml)
    const up = await muster('ray', 'up', '--yes')
    expect(up.code, up.stdout + up.stderr).toBe(0)
    const [file = '', ...args] = lab.command(argv('job', 'work'))
    worker = spawn(file, args, { env: lab.environment, stdio: 'ignore' })
  }, 1_500_000)
  afterAll(async () => {
    worker?.kill('SIGKILL')
    await lab?.stop()
  })

  it('refuses bundles that the cluster can never hold', async () => {
    const { code, stderr } = await muster('job', 'submit', '--engine', 'ray', '--needs', '2x{gpu:3}', '--', 'true')
    expect(code).toBe(2)
    expect(stderr).toContain(
      'can never be placed: Ray has no room for 2 × {GPU 3} PACK and {CPU 1} for the job itself, even when it is idle (m[8,10] 2 of 2 GPU, 4 of 4 CPU)',
    )
  })

  it('keeps a job in the queue until the groups of another one are gone, and says what is missing', async () => {
    const first = await submit('--needs', '4x{gpu:1}', '--', train(4, 'first'))
    await prints(first, 'placed')
    const second = await submit('--needs', '2x{gpu:1} SPREAD', '--', train(2, 'second'))
    await waitUntil(async () => (await show(second)).why[0]?.includes('no room'), 'the reason', 60_000)
    expect((await show(second)).why).toEqual([
      'Ray has no room for 2 × {GPU 1} SPREAD and {CPU 1} for the job itself: 0 of 2 bundles fit.',
      expect.stringMatching(/^Free: m10 0 of 2 GPU, \d of 4 CPU; m8 0 of 2 GPU, \d of 4 CPU\.$|^Free: m\[8,10\] /),
    ])
    expect((await muster('job', 'show', second)).stdout).toMatch(/^why not now: {2}Ray has no room for/m)
    expect((await muster('ray', 'jobs', '--json')).stdout).not.toContain(`-${second}-1-0`)
    await touch('first')
    await reaches(first, 'done')
    await prints(second, 'placed')
    await touch('second')
    await reaches(second, 'done')
  })

  it('hands over one of two that need more than half, though it takes its group only later', async () => {
    const [one = '', other = ''] = [
      await submit('--needs', '3x{gpu:1}', '--', train(3, 'third')),
      await submit('--needs', '3x{gpu:1}', '--', train(3, 'third')),
    ]
    await prints(one, 'placed')
    // What the first one holds counts once.
    const isSeen = async () => (await show(other)).why[0]?.endsWith(': 1 of 3 bundles fits.') === true
    await waitUntil(isSeen, 'the group of the first one', 60_000)
    await touch('third')
    await reaches(one, 'done')
    await reaches(other, 'done')
  })

  it('proves that the directory of results is one on all hosts', async () => {
    await lab.host('m10').exec('mkdir -p /root/results')
    const shared = await submit('--storage', '/root/results', '--', 'true')
    const fresh = await submit('--storage', '/root/new/', '--', 'true')
    await reaches(shared, 'done')
    await reaches(fresh, 'done')
    expect(await proofs()).toBe('')
  })

  it('does not start a job whose directory of results is another one on some host, and names it', async () => {
    for (const host of lab.hosts) await host.exec('mkdir -p /tmp/results')
    const apart = await submit('--storage', '/tmp/results', '--', 'touch /tmp/results/started')
    await reaches(apart, 'failed')
    expect((await show(apart)).reason).toBe(
      'm8: /tmp/results is not the directory that m10 has. Declare it in nfs: of hosts.yaml, then run: muster up nfs',
    )
    await lab.host('m8').exec('rm -rf /tmp/results && touch /tmp/results')
    const file = await submit('--storage', '/tmp/results', '--', 'true')
    await reaches(file, 'failed')
    expect((await show(file)).reason).toBe('m8: /tmp/results is not a directory. Give another path.')
    for (const host of lab.hosts) expect((await host.exec('ls /tmp/results')).stdout).not.toContain('started')
    expect(await proofs()).toBe('')
  })

  it('finds what a killed check left, and removes it', async () => {
    await lab.host('m8').exec('touch /root/results/.muster-proof-0123456789abcdef01234567')
    await lab.host('m8').exec('touch -d "2 hours ago" /root/results/.muster-proof-0123456789abcdef01234567')
    const { stdout } = await muster('left', 'm8', '--area', 'jobs')
    expect(stdout).toContain('proof of a shared directory: /root/results/.muster-proof-0123456789abcdef01234567')
    expect((await muster('job', 'clean')).code).toBe(0)
    expect(await proofs()).toBe('')
  })
})
