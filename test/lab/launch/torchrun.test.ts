/** PyTorch's ranks through the queue: most with a fake agent that behaves as torchrun does, some with Debian's torch and gloo. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid')
const hasTorch = canRun && requirement('python torch')

/** Two ranks on each of two hosts. */
const FOUR = ['--launch', 'torchrun', '--bundles', '2', '--procs', '2', '--strategy', 'STRICT_SPREAD'] as const
const FAKE = [...FOUR, '--torchrun', '/srv/fake_torchrun', '--']
const REAL = ['--torchrun', '/srv/torchrun'] as const

describe.skipIf(!canRun)('a job launched by torchrun', { timeout: 240_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    // One job at a time has room.
    queue = labQueue(lab, hostsFileOf(lab, 'torch', 'cpu: 1, gpu: 0, memory: 1GiB'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  /** In the directory of a bundle, which is its host's own. */
  const inBundle = async (host: string, id: string, rank: number, command: string) =>
    (await lab.host(host).exec(`cd ~/.local/state/muster/jobs/*-${id}-1-${rank} && ${command}`)).stdout

  it('names the rank that failed first in 20 of 20 runs, although the agents of all hosts claim their own', async () => {
    const ways = ['raise', 'exit', 'late', 'kill', 'raise'] as const
    const runs = Array.from({ length: 20 }, (_, index) => ({ how: ways[index % 5] ?? 'raise', rank: index % 4 }))
    const ids: string[] = []
    for (const { how, rank } of runs) ids.push(await queue.submit(...FAKE, `/srv/fake_rank.py ${how} ${rank}`))
    expect(await queue.work().ended).toEqual([0, null])
    const reasons = new Map((await queue.list()).map(({ job, reason = '' }) => [String(job), reason]))
    const ends = {
      raise: 'exit 1\\b.*: ValueError: bad batch',
      exit: 'exit 3\\b',
      kill: 'exit 137 .SIGKILL.',
      // Its agent ends it while it lingers, or it ends by itself.
      late: 'exit (134 .SIGABRT.|143 .SIGTERM.).*: ValueError: bad batch',
    }
    for (const [index, { how, rank }] of runs.entries())
      expect(reasons.get(ids[index] ?? '')).toMatch(
        new RegExp(`^rank ${rank} on m${rank < 2 ? 1 : 2} failed first: ${ends[how]}`),
      )
  })

  it.skipIf(!hasTorch)('reduces over gloo with a file for each rank, and runs each rank in a line of sh', async () => {
    const id = await queue.submit(...FOUR, ...REAL, '--', '/srv/torch_all_reduce.py')
    const line = await queue.submit(...FOUR, ...REAL, '--', 'echo "$RANK of $WORLD_SIZE" && python3 -c "print(1)"')
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/state: +done/)
    expect((await queue.job('logs', id)).stdout).toContain('rank 0/4 local 0 on m1 sum 10.0')
    expect(await inBundle('m1', id, 0, 'cat rank.1')).toContain('rank 1/4 local 1 on m1 sum 10.0')
    expect(await inBundle('m2', id, 1, 'cat rank.2 rank.3')).toMatch(
      /rank 2\/4 local 0 on m2 sum 10\.0[\s\S]*rank 3\/4 local 1/,
    )
    expect(await inBundle('m2', line, 1, 'cat rank.3')).toBe('3 of 4\n1\n')
  })
})
