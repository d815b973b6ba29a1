/** vLLM's servers on a real Ray with declared GPUs, with a program in place of vLLM that asks Ray for GPUs as vLLM does. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../cluster/ray-environment.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'flock', 'python environments')

/** A process a processor, started for the first job, would be eight here. */
const VARIABLES = 'RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0'
const VLLM = ['--launch', 'vllm', '--vllm', '/srv/vllm'] as const
const MODEL = ['--', 'Qwen/Qwen3-0.6B', '--max-model-len', '8192'] as const

describe.skipIf(!canRun)('vLLM on Ray', { timeout: 400_000 }, () => {
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
  const refused = async (...args: readonly string[]): Promise<string> => {
    const { code, stderr } = await muster('job', 'submit', '--engine', 'ray', ...args)
    expect(code).toBe(2)
    return stderr
  }
  const show = async (id: string) => JSON.parse((await muster('job', 'show', id, '--json')).stdout)
  const reaches = async (id: string, state: string): Promise<void> =>
    await waitUntil(async () => (await show(id)).state.kind === state, `job ${id} to be ${state}`, 120_000)
  const ready = async (id: string): Promise<string> => {
    let endpoint: string | undefined
    const isReady = async () => {
      endpoint = (await show(id)).state.endpoint
      return endpoint !== undefined
    }
    await waitUntil(isReady, `job ${id} to be ready`, 120_000)
    return endpoint ?? ''
  }
  const logs = async (id: string) => (await muster('job', 'logs', id)).stdout

  beforeAll(async () => {
    const mounts = { [RAY_PLACE]: await rayEnvironment(), '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') }
    lab = await startLab({ names: ['m10', 'm8'], mounts })
    const [m10, m8] = lab.hosts.map(({ address }) => address)
    const yaml = `cluster: lab
defaults: { user: root }
hosts:
  m10: { address: ${m10}, resources: { cpu: 4, gpu: 2, memory: 1GiB } }
  m8: { address: ${m8}, resources: { cpu: 4, gpu: 2, memory: 1GiB } }
environment: { venv: { path: ${RAY_VENV} } }
ray: { head: m10, workers: m8, port: 6333, object_store: 100MB, env: { ${VARIABLES} } }
launch: { interface: eth0 }
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

  it('serves a model on the GPUs of two nodes, each of which knows its own address, and is ready when it answers', async () => {
    const id = await submit(...VLLM, '--tp', '2', '--pp', '2', ...MODEL)
    const endpoint = await ready(id)
    const [, host] = /^http:\/\/(10\.81\.0\.[12]):46\d{3}\/v1$/.exec(endpoint) ?? []
    const lines = (await logs(id)).split('\n')
    const workers = lines.flatMap((line) => {
      const [, ip, own, others] = /^worker \d on (\S+) gpu [01]: {'VLLM_HOST_IP': '(.*?)', (.*)}$/.exec(line) ?? []
      return ip === undefined ? [] : [{ ip, own, others }]
    })
    const others = "'CUDA_VISIBLE_DEVICES': None, 'WORLD_SIZE': None, 'MASTER_ADDR': None, 'NCCL_SOCKET_IFNAME': 'eth0'"
    expect(workers.toSorted((one, other) => one.ip.localeCompare(other.ip))).toEqual(
      [1, 1, 2, 2].map((index) => ({ ip: `10.81.0.${index}`, own: `10.81.0.${index}`, others })),
    )
    expect(lines).toContain(`driver on ${host}: ${host} None`)
    const waiting = await submit(...VLLM, '--tp', '2', ...MODEL)
    await waitUntil(async () => (await show(waiting)).why[0]?.includes('no room'), 'the reason', 60_000)
    expect((await show(waiting)).why[0]).toMatch(/^Ray has no room for 2 × \{GPU 1\} PACK and \{CPU 1\}/)
    expect((await muster('job', 'cancel', id)).code).toBe(0)
    await reaches(id, 'cancelled')
    await ready(waiting)
    await muster('job', 'cancel', waiting)
    await reaches(waiting, 'cancelled')
    expect(lab.hosts.flatMap((one) => one.processes()).filter(({ command }) => command.includes('/srv/vllm'))).toEqual(
      [],
    )
  })

  it('gives the addresses of several servers to a job on Ray that was submitted after them', async () => {
    const ids = await submit(...VLLM, '--tp', '2', '--engines', '2', ...MODEL)
    const caller = await submit('--after', ids, '--', 'echo "$MUSTER_ENDPOINTS"')
    await reaches(caller, 'done')
    const endpoints = (await logs(caller)).trim().split(',')
    const [first = 0, last = 0] = ids.split('-').map(Number)
    expect(endpoints).toEqual([await ready(String(first)), await ready(String(last))])
    expect(new Set(endpoints).size).toBe(2)
    await muster('job', 'cancel', ids)
    await reaches(String(last), 'cancelled')
  })

  it('fails as the server does, and its log has the reason', async () => {
    const id = await submit(...VLLM, '--env', 'VLLM_FAKE_FAIL=1', ...MODEL)
    await reaches(id, 'failed')
    expect((await show(id)).reason).toBe('exit 1')
    expect(await logs(id)).toContain('RuntimeError: CUDA out of memory')
    const missing = await submit('--launch', 'vllm', ...MODEL)
    await reaches(missing, 'failed')
    expect(await logs(missing)).toBe('muster: vllm is not in PATH\n')
  })

  it('refuses what Ray cannot run, and more GPUs than the cluster has', async () => {
    expect(await refused('--launch', 'torchrun', '--', 'train.py')).toContain(
      '--launch torchrun cannot be used with --engine ray',
    )
    expect(await refused(...VLLM, '--dp', '2', ...MODEL)).toContain('Submit several servers: --engines 2.')
    expect(await refused(...VLLM, '--tp', '8', ...MODEL)).toContain(
      'can never be placed: Ray has no room for 8 × {GPU 1}',
    )
  })
})
