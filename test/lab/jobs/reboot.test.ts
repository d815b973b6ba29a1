/** Hosts that are started anew under their jobs: kernel hosts, with a boot id and a disk of their own, of which one runs systemd. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { kernelImage } from '../cluster/kernel-image.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'kernel hosts')

/** `sync`: what it notes outlives a host that loses its power. */
const NOTED =
  'n=$MUSTER_JOB.$RANK.$MUSTER_ATTEMPT; (set -C; : >began.$n) 2>/dev/null || echo $n >>twice; echo $n >>ran; sync;'
const ONCE = `${NOTED} [ $MUSTER_ATTEMPT = 2 ] || sleep 5000`

describe.skipIf(!canRun)('jobs on a host that reboots', { timeout: 900_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({
      count: 0,
      kernelHosts: { k1: 'service', k2: 'systemd' },
      sshConfig: ['Host *', '  ServerAliveInterval 3', '  ServerAliveCountMax 3'],
    })
    queue = labQueue(lab, hostsFileOf(lab, 'reboot'))
  }, 600_000)
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  const both = async (name: string) => {
    const plain = await queue.submit('--on', name, '--', ONCE)
    const again = await queue.submit('--on', name, '--retries', '1', '--', ONCE)
    return { plain, again }
  }

  it('after a power loss they are lost or retried, and never run twice', async () => {
    const k1 = lab.kernelHost('k1')
    const ran = async () => (await k1.mustExec('cat ran; cat twice 2>/dev/null || :')).trim().split('\n').sort()
    const before = await both('k1')
    const { seen, ended } = queue.work()
    for (const id of Object.values(before)) await seen(isJob(id, 'running'))
    await k1.mustExec('sync')
    const { plain, again } = await both('k1')
    for (const id of [plain, again]) await seen(isJob(id, 'running'))
    await k1.crash()
    await k1.boot()
    expect(await ended).toEqual([0, null])
    for (const id of [before.plain, plain]) {
      const { state, reason } = await queue.find(id)
      expect([state, reason]).toEqual(['lost', expect.stringMatching(/the host rebooted|no trace of it/)])
    }
    expect((await queue.find(before.plain)).reason).toBe('the host rebooted')
    for (const id of [before.again, again]) expect(await queue.find(id)).toMatchObject({ state: 'done', attempt: 2 })
    const noted = await ran()
    expect(noted).toContain(`${again}.0.2`)
    expect(noted).toHaveLength(new Set(noted).size)
  })

  it('after an orderly shutdown they are lost or retried as well', async () => {
    const k2 = lab.kernelHost('k2')
    const { plain, again } = await both('k2')
    const { seen, ended } = queue.work()
    for (const id of [plain, again]) await seen(isJob(id, 'running'))
    await k2.reboot()
    expect(await ended).toEqual([0, null])
    expect(await queue.find(plain)).toMatchObject({
      state: 'lost',
      reason: expect.stringMatching(/host (was shut down|rebooted)/),
    })
    expect(await queue.find(again)).toMatchObject({ state: 'done', attempt: 2 })
    expect((await k2.mustExec('cat ran')).trim().split('\n').sort()).toEqual([
      `${plain}.0.1`,
      `${again}.0.1`,
      `${again}.0.2`,
    ])
  })
})
