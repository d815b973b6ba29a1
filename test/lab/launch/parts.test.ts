/** The launchers that Debian brings, as tests of jobs use them, without Muster: what fails here is not Muster's fault. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'launch')
/** Where hosts see the fixtures. */
const PLACE = '/srv'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'python torch', 'python mpi4py')
const hasMpi = canRun && requirement('mpirun.openmpi', 'mpiexec.hydra', 'mpicc.mpich', 'ssh')

describe.skipIf(!canRun)("Debian's launchers", () => {
  let lab: Lab

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: { [PLACE]: FIXTURES } })
  })
  afterAll(async () => await lab?.stop())

  it('reduce over gloo on two hosts with torchrun, a file for each rank', async () => {
    const answers = await Promise.all(
      lab.names.map((name, index) =>
        lab.host(name).exec(`export GLOO_SOCKET_IFNAME=eth0
          ${PLACE}/torchrun --nnodes 2 --nproc_per_node 2 --node_rank ${index} \\
          --master_addr ${lab.host('m1').address} --master_port 29500 --redirects 3 --tee 3 --log_dir /tmp/ranks \\
          ${PLACE}/torch_all_reduce.py && cat /tmp/ranks/*/attempt_0/*/stdout.log`),
      ),
    )
    expect(answers.map(({ code, stderr }) => (code === 0 ? '' : stderr))).toEqual(['', ''])
    for (const [index, { stdout }] of answers.entries()) {
      const ranks = [2 * index, 2 * index + 1].map(
        (rank) => `rank ${rank}/4 local ${rank % 2} on m${index + 1} sum 10.0`,
      )
      // Once from the agent, which adds the rank, and once from the file.
      for (const rank of ranks) expect(stdout.match(new RegExp(`^(\\[.*\\]:)?${rank} in `, 'gm'))).toHaveLength(2)
    }
  })

  it.skipIf(!hasMpi)('reduce with Open MPI, and with MPICH beside it', async () => {
    const sorted = ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) =>
      code === 0 ? stdout.trim().split('\n').toSorted() : stderr
    const openMpi = `mpirun.openmpi --allow-run-as-root --oversubscribe -np 2 --mca btl_tcp_if_include lo \\
      /usr/bin/python3 -m mpi4py ${PLACE}/mpi_all_reduce.py`
    const lines = ['rank 0/2 on m1 sum 3', 'rank 1/2 on m1 sum 3']
    expect(sorted(await lab.host('m1').exec(openMpi))).toEqual(lines)
    const mpich = `mpicc.mpich -o /tmp/reduce ${PLACE}/mpi_all_reduce.c && mpiexec.hydra -np 2 /tmp/reduce`
    expect(sorted(await lab.host('m1').exec(mpich))).toEqual(lines)
  })
})
