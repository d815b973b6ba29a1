/** The console on a job that mpirun started: its ranks on real hosts, their steps and logs, who failed first, and a host that is down. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'mpirun.openmpi', 'python mpi4py')

/** Ranks print their steps, and rank 3 a line of its own; when they are told to, rank 2 raises and the others wait for it. */
const PROGRAM = `
import os, time
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
print("begin", flush=True)
if rank == 3: print("loader restarted", flush=True)
print(f"epoch 1 step {40 + rank}/100", flush=True)
while not os.path.exists(os.path.expanduser("~/go")): time.sleep(0.05)
if rank == 2: raise ValueError("bad batch")
MPI.COMM_WORLD.Barrier()
`

describe.skipIf(!canRun)('the ranks of a launched job in the console', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue
  let console: ConsoleDriver | undefined

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    queue = labQueue(lab, hostsFileOf(lab, 'console'))
  })
  afterEach(async () => {
    await console?.close()
    await queue.stop()
  })
  afterAll(async () => await lab?.stop())

  const READ = { whileBusy: true }

  it('are stopped when they hang, if the job was submitted so, and only then', async () => {
    const hang = ['import time; from mpi4py import MPI; print("begin", flush=True)', 'time.sleep(1e6)'].join('; ')
    const gang = ['--launch', 'mpi', '--bundles', '2', '--', 'python3', '-c', hang]
    const left = await queue.submit('--silent', '2s', ...gang)
    const stopped = await queue.submit('--silent', '4s:end', ...gang)
    const { seen } = queue.work()
    await seen(isJob(stopped, 'failed'))
    expect(await queue.show(stopped)).toMatch(/ended: .*silent: nothing was written for 4 s and no processor used/)
    expect((await queue.find(left)).state).toBe('running')
    console = await openConsole({ in: lab, args: ['--hosts', `${lab.directory}/console.yaml`], size: [120, 40] })
    await console.expectAllOpen()
    await console.leader('5')
    await console.key('Down', 'Enter')
    await console.expectScreen(/looks stuck: no rank has written anything for \d+ s/, READ)
    await console.expectScreen(/Waiting: ranks 0-1 in \w+/, READ)
    await queue.job('cancel', left)
    await seen(isJob(left, 'cancelled'))
  })

  it('show steps and one log of all, where a rank is, and after the end who failed first', async () => {
    const id = await queue.submit(
      ...['--launch', 'mpi', '--bundles', '2', '--slots', '2', '--name', 'four', '--', 'python3', '-c', PROGRAM],
    )
    const { seen } = queue.work()
    await seen(isJob(id, 'running'))
    console = await openConsole({ in: lab, args: ['--hosts', `${lab.directory}/console.yaml`], size: [120, 40] })
    await console.expectAllOpen()
    await console.leader('5')
    await console.expectScreen(/▸3 +running .*four/)
    await console.key('Enter')
    await console.expectScreen(/four · mpi · 4 ranks on 2 hosts · attempt 1 · running \d+:\d\d/, READ)
    await console.expectScreen(/m1 +▸0 ● 40 +1 ● 41[\s\S]*m2 +2 ● 42 +3 ● 43/, READ)
    await console.expectScreen(/log of 4 ranks, 1 of 3 lines differ/, READ)
    await console.expectScreen(/all +begin[\s\S]*▸3 +loader restarted/, READ)
    await console.key('Down', 'Right', 'Enter')
    await console.expectScreen(/log of rank 3 on m2[\s\S]*begin[\s\S]*loader restarted[\s\S]*step 43\/100/, READ)
    await console.key('s')
    await console.expectScreen(/stack of rank 3 on m2[\s\S]*(thread \d+ \(python3\) is in |Thread \d+)/, READ)
    await console.key('q')

    await lab.host('m2').killSshd()
    await console.expectScreen(/m2 +2 \? +▸3 \? /, READ)
    await lab.host('m2').startSshd()
    await console.leader('R')
    await console.expectScreen(/m2 +2 ● 42 +▸3 ● 43/, READ)

    for (const host of lab.hosts) await host.exec('touch go')
    await console.expectScreen(/rank 2 on m2 failed first: exit 1.*ValueError: bad batch/, READ)
    await console.expectScreen(/m2 +2 ✗ /, READ)
    await console.key('q')
    await console.expectScreen(/▸3 +failed .*four/, READ)
  })
})
