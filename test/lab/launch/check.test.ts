/** `muster launch check`, and what a launched job finds out before a rank begins, on real hosts. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'mpirun.openmpi', 'python mpi4py')

describe.skipIf(!canRun)('muster launch check', { timeout: 120_000 }, () => {
  let lab: Lab
  let file: string

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    file = hostsFileOf(lab, 'check')
  })
  afterAll(async () => await lab?.stop())

  const muster = async (...args: readonly string[]) => await lab.run([...PROGRAM, '--hosts', file, ...args])
  const check = async (...args: readonly string[]) =>
    await muster('launch', 'check', 'mpi', '--bundles', '2', '--slots', '1', ...args)

  it('finds hosts that are ready, and leaves nothing there', async () => {
    const { code, stdout } = await check('--', 'python3 -c pass')
    expect(stdout).toMatch(/^m2\t1\teth0\t1500\t3\.\d+\.\d+\tmpi4py\t\t\d+\tyes\t/m)
    expect(stdout).toMatch(/^m\[1-2\]: ready to start$/m)
    expect(code).toBe(0)
    for (const host of lab.hosts)
      expect((await host.exec('ls -A ~/.local/state/muster/jobs 2>/dev/null; true')).stdout).toBe('')
  })

  it('names a script that is missing or old on one host, and a job with it starts no rank', async () => {
    await lab.host('m1').exec('echo 1 >train.py')
    const missing = await check('--', 'python3 train.py')
    expect(missing.code).toBe(1)
    expect(missing.stdout).toMatch(/^blocker +m2: train\.py is not in its directory; copy it to all hosts: --copy-dir/m)
    expect(missing.stdout).toMatch(/^m2: blocked$/m)
    const launched = await muster('launch', 'mpi', '--bundles', '2', '--slots', '1', '--', 'python3 train.py')
    expect(launched.code).toBe(1)
    expect(launched.stderr).toMatch(/job \d+: failed: m2: train\.py is not in its directory/)
    await lab.host('m2').exec('echo 22 >train.py')
    const old = await check('--json', '--', 'python3 train.py')
    expect(old.code).toBe(0)
    expect(old.stdout).toMatch(/"type":"finding","host":"m2","gravity":"risk","id":"script-differs"/)
  })

  it('warns of another MTU, also when the job starts', async () => {
    await lab.host('m2').exec('ip link set eth0 mtu 1400')
    const { code, stderr } = await muster('launch', 'mpi', '--bundles', '2', '--slots', '1', '--', 'python3 -c pass')
    expect(stderr).toMatch(/warning: the MTU of its network card is not the same on all hosts \(m1 1500, m2 1400\)/)
    expect(code).toBe(0)
    await lab.host('m2').exec('ip link set eth0 mtu 1500')
  })

  it('finds the script in a directory that it copied', async () => {
    const directory = join(lab.directory, 'project')
    mkdirSync(directory)
    writeFileSync(join(directory, 'copied.py'), 'from mpi4py import MPI\nprint("sum", MPI.COMM_WORLD.allreduce(1))\n')
    const words = ['--bundles', '2', '--slots', '1', '--copy-dir', directory, '--', 'python3 copied.py'] as const
    const { code, stdout, stderr } = await muster('launch', 'mpi', ...words)
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: 'sum 2\n' })
  })

  it.skipIf(!requirement('python torch'))('imports torch with the Python of torchrun, on all hosts', async () => {
    const words = [
      '--bundles',
      '2',
      '--per-host',
      '1',
      '--torchrun',
      '/srv/torchrun',
      '--',
      '/srv/torch_all_reduce.py',
    ] as const
    const { code, stdout } = await muster('launch', 'check', 'torchrun', ...words)
    expect(stdout).toMatch(/^m1\t0\teth0\t1500\t3\.\d+\.\d+\t1\.13\S*\t\S*\t\d+\t/m)
    expect(stdout).toMatch(/^m\[1-2\]: ready to start$/m)
    expect(code).toBe(0)
  })
})
