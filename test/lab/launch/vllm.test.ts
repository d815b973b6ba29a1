/** vLLM's servers on hosts, with a program in place of vLLM that takes its arguments and answers /health. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'python3')

const VLLM = ['--launch', 'vllm', '--vllm', '/srv/vllm'] as const
const MODEL = ['--', 'Qwen/Qwen3-0.6B', '--max-model-len', '8192'] as const

describe.skipIf(!canRun)('a server launched by vllm', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    queue = labQueue(lab, hostsFileOf(lab, 'vllm', 'cpu: 8, gpu: 4, memory: 1GiB'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  const output = async (id: string, rank: number) =>
    (await lab.hosts[rank]?.exec(`cat .local/state/muster/jobs/*-${id}-1-${rank}-*/out`))?.stdout
  const ready = async (id: string) => {
    const line = async () => /ready: +(\S+)/.exec(await queue.show(id))?.[1]
    await waitUntil(async () => (await line()) !== undefined, `job ${id} is ready`)
    return await line()
  }
  const programs = () =>
    lab.hosts.flatMap((host) => host.processes()).filter(({ command }) => command.includes('/srv/vllm'))

  it('serves a model on the GPUs of two hosts, is ready when it answers, and ends on both when it is cancelled', async () => {
    const id = await queue.submit(...VLLM, '--bundles', '2', '--tp', '4', '--pp', '2', ...MODEL)
    const { seen } = queue.work()
    await seen(isJob(id, 'running'))
    expect(await ready(id)).toMatch(/^http:\/\/10\.81\.0\.1:46\d{3}\/v1$/)
    expect((await queue.job('list')).stdout).toMatch(new RegExp(`^${id}\tready\t`, 'm'))
    expect([await output(id, 0), await output(id, 1)]).toEqual(
      [0, 1].map((rank) => `rank ${rank} model Qwen/Qwen3-0.6B gpus 0,1,2,3 card eth0\n`),
    )
    await queue.job('cancel', id)
    await seen(isJob(id, 'cancelled'))
    expect(programs()).toEqual([])
  })

  it('runs copies of a model on each host behind one server', async () => {
    const id = await queue.submit(...VLLM, '--bundles', '2', '--tp', '2', '--dp', '4', ...MODEL)
    queue.work()
    await ready(id)
    expect(await output(id, 1)).toContain('rank 1 model')
    await queue.job('cancel', id)
  })

  it('gives the addresses of several servers to a job that was submitted after them, once they are ready', async () => {
    const [ids = ''] = [await queue.submit(...VLLM, '--tp', '2', '--engines', '3', ...MODEL)]
    const [first = 0, last = 0] = ids.split('-').map(Number)
    expect(last - first).toBe(2)
    const caller = await queue.submit('--after', ids, '--', 'echo "$MUSTER_ENDPOINTS"')
    expect(await queue.show(caller)).toMatch(/waiting for jobs/)
    const { seen } = queue.work()
    await seen(isJob(caller, 'done'))
    const endpoints = (await queue.job('logs', caller)).stdout.trim().split(',')
    expect(endpoints).toEqual(await Promise.all([first, first + 1, last].map(async (id) => await ready(String(id)))))
    expect(new Set(endpoints).size).toBe(3)
    await queue.job('cancel', ids)
    await seen(isJob(String(last), 'cancelled'))
  })

  it('fails with the words of the server that failed, and a job after it is cancelled', async () => {
    const id = await queue.submit(...VLLM, '--env', 'VLLM_FAKE_FAIL=1', '--bundles', '2', '--tp', '8', ...MODEL)
    const after = await queue.submit('--after', id, '--', 'true')
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(
      /ended: .* rank 1 on m2 failed first: exit 1.*: RuntimeError: CUDA out of memory/,
    )
    expect(await queue.find(after)).toMatchObject({ state: 'cancelled' })
  })

  it('refuses sizes that do not go together', async () => {
    const { stderr } = await queue.job('submit', ...VLLM, '--bundles', '2', '--tp', '3', ...MODEL)
    expect(stderr).toContain('--tp 3 × --pp 1 × --dp 1 = 3 GPUs cannot be split evenly over 2 bundles')
  })
})
