/** Real Open MPI on hosts that have no keys for each other: Muster is the launch agent (docs/launch.md). */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'mpirun.openmpi', 'python mpi4py')

const THREE = ['--launch', 'mpi', '--bundles', '3'] as const

describe.skipIf(!canRun)('a job launched by mpirun', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 3, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    queue = labQueue(lab, hostsFileOf(lab, 'mpi'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it('has its ranks on all hosts, and no host has a key for another one', async () => {
    const id = await queue.submit(...THREE, '--slots', '2', '--', 'python3 /srv/mpi_all_reduce.py')
    const { ended } = queue.work()
    expect(await ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/state: +done/)
    expect((await queue.job('logs', id)).stdout).toContain('rank 0/6 on m1 sum 21')
  })

  it('fails by the rank that raised, named with its host and its words', async () => {
    const program = 'from mpi4py import MPI; r=MPI.COMM_WORLD.rank; r == 1 and [][0]; MPI.COMM_WORLD.Barrier()'
    const id = await queue.submit(...THREE, '--slots', '1', '--', 'python3', '-c', program)
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(
      /ended: .*, rank 1 on m2 failed first: exit 1, .*: IndexError: list index out of range/,
    )
  })
})
