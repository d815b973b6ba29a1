/** Real Horovod with Debian's torch on two hosts that have no keys for each other, by MPI and by Gloo. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../../lab/cluster/python-environment.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../../lab/jobs/lab-queue.ts'
import { requirement } from '../../support/requirements.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ip',
  'nsenter',
  'setsid',
  'mpirun.openmpi',
  'environment horovod',
)

describe.skipIf(!canRun)('Horovod', { timeout: 180_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    const mounts = {
      [ENVIRONMENT_PLACE]: await pythonEnvironment('horovod'),
      '/srv': join(packageRoot(), 'test', 'fixtures', 'launch'),
    }
    lab = await startLab({ count: 2, mounts })
    queue = labQueue(lab, hostsFileOf(lab, 'horovod'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it.each(['mpi', 'gloo'])('sums over four ranks on two hosts by %s', async (controller) => {
    const options = ['--launch', 'horovod', '--bundles', '2', '--slots', '2', '--from-env', `venv:${ENVIRONMENT}`]
    const chosen = controller === 'gloo' ? ['--controller', 'gloo'] : []
    const id = await queue.submit(...options, ...chosen, '--', 'python3 /srv/horovod_sum.py')
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/state: +done/)
    expect((await queue.job('logs', id)).stdout).toBe(`rank 0/4 local 0 on m1 sum 10.0 over ${controller}\n`)
    expect((await queue.job('logs', id, '--rank', '3')).stdout).toBe(
      `rank 3/4 local 1 on m2 sum 10.0 over ${controller}\n`,
    )
  })

  it('by gloo fails by the rank that raised', async () => {
    const line = 'python3 -c "import horovod.torch as h; h.init(); h.rank() == 3 and [][0]; h.join()"'
    const options = ['--launch', 'horovod', '--bundles', '2', '--slots', '2', '--from-env', `venv:${ENVIRONMENT}`]
    const id = await queue.submit(...options, '--controller', 'gloo', '--', line)
    expect(await queue.work().ended).toEqual([0, null])
    const shown = await queue.show(id)
    expect(shown).toMatch(/rank 3 on m2 failed first: exit 1.*IndexError: list index out of range/)
    expect(shown).toMatch(/nothing left on m1 m2/)
  })
})
