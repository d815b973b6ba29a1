/** TensorFlow's roles through the queue, with a program that reads TF_CONFIG and serves as TensorFlow does. The real one: test/heavy. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid')

const THREE = ['--launch', 'tf', '--role', 'chief=1', '--role', 'worker=1', '--role', 'ps=1:cpu=0.5'] as const
const SPREAD = [...THREE, '--strategy', 'STRICT_SPREAD', '--'] as const

describe.skipIf(!canRun)('a job launched by tf', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 3, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    queue = labQueue(lab, hostsFileOf(lab, 'tf'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  const servers = async () =>
    await Promise.all(
      lab.names.map(async (name) => (await lab.host(name).exec("pgrep -fc '^python3 .*fake_tf'")).stdout),
    )

  it('is done when its chief is, and its servers are stopped then', async () => {
    const id = await queue.submit(...SPREAD, '/srv/fake_tf.py')
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.find(id)).toMatchObject({ state: 'done' })
    expect((await queue.job('logs', id)).stdout).toBe('chief 0, called, worker 0, ps 0\n')
    expect(await queue.show(id)).toMatch(/nothing left on m1 m2 m3/)
    expect(await servers()).toEqual(['0\n', '0\n', '0\n'])
  })

  it('has a port for each of the tasks that share a host, and is done without a chief when all workers are', async () => {
    const roles = ['--launch', 'tf', '--role', 'worker=3', '--role', 'ps=2', '--strategy', 'STRICT_PACK'] as const
    const id = await queue.submit(...roles, '--', '/srv/fake_tf.py')
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.find(id)).toMatchObject({ state: 'done' })
    expect((await queue.job('logs', id)).stdout).toBe('worker 0, called, worker 1, worker 2, ps 0, ps 1\n')
  })

  it('fails when a server does, which is named by its role', async () => {
    const id = await queue.submit(...SPREAD, '/srv/fake_tf.py fail ps')
    expect(await queue.work().ended).toEqual([0, null])
    expect((await queue.find(id)).reason).toMatch(
      /^ps 0 on m\d failed first: exit 1.*: RuntimeError: out of memory on the server$/,
    )
    expect(await servers()).toEqual(['0\n', '0\n', '0\n'])
  })

  it('does not begin where a task cannot be reached by all others', async () => {
    // The ports of all launchers, on the host of the ps alone.
    const { stdout } = await queue.job('submit', ...THREE, '--strategy', 'STRICT_SPREAD', '--dry-run', '--', 'true')
    const host = /bundle 2: (m\d)/.exec(stdout)?.[1] ?? ''
    const rule = 'INPUT -p tcp --dport 46000:46999 -j DROP'
    expect((await lab.host(host).exec(`iptables -A ${rule}`)).code).toBe(0)
    const id = await queue.submit(...SPREAD, '/srv/fake_tf.py')
    expect(await queue.work().ended).toEqual([0, null])
    await lab.host(host).exec(`iptables -D ${rule}`)
    expect((await queue.find(id)).reason).toMatch(
      new RegExp(`^m\\d: cannot reach ${host} at \\S+ port 46\\d+: timed out`),
    )
  })
})
