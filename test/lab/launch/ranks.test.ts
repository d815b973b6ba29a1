/** Ranks of a job that mpirun started, as `muster job ranks` and `muster job logs` show them. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'mpirun.openmpi', 'python mpi4py')

/** Each rank prints its step; rank 2 raises when it is told to, the others wait for it. */
const PROGRAM = `
import os, time
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
print("begin", flush=True)
print(f"epoch 1 step {40 + rank}/100", flush=True)
while not os.path.exists(os.path.expanduser("~/go")): time.sleep(0.05)
if rank == 2: raise ValueError("bad batch")
MPI.COMM_WORLD.Barrier()
`

/** On m2, rank 2 pretends that its host has ranks 0 and 1 as well, and that rank 1 failed. */
const LIAR = `cd "$MUSTER_DIRECTORY"
if [ "$RANK" = 2 ]; then
  printf '0 9 1\\n1 9 1\\n' >>ranks
  echo lie >>out
  echo lie >rank.1
  echo "rank 1 9 5 1.0 lie" >say
fi
echo "real $RANK"
until [ -e ~/over ]; do sleep 0.05; done`

describe.skipIf(!canRun)('ranks of a launched job', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    queue = labQueue(lab, hostsFileOf(lab, 'ranks'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  const ranks = async (...args: readonly string[]) => {
    const { stdout } = await queue.job('ranks', ...args, '--json')
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]))
  }

  it('show their hosts and steps while they run, and the one that failed first after it', async () => {
    const id = await queue.submit(
      ...['--launch', 'mpi', '--bundles', '2', '--slots', '2', '--', 'python3', '-c', PROGRAM],
    )
    const { ended } = queue.work()
    await waitUntil(
      async () => (await ranks(id)).filter(({ step }) => typeof step === 'number').length === 4,
      'four steps',
    )
    expect(await ranks(id)).toMatchObject([
      { rank: 0, host: 'm1', state: 'running', step: 40, line: 'epoch 1 step 40/100' },
      { rank: 1, host: 'm1', state: 'running', step: 41 },
      { rank: 2, host: 'm2', state: 'running', step: 42, process: { pid: expect.any(Number) } },
      { rank: 3, host: 'm2', state: 'running', step: 43 },
    ])
    expect((await queue.job('logs', id, '--rank', '3')).stdout).toBe('begin\nepoch 1 step 43/100\n')
    // They are not left over from an earlier job.
    const check = ['launch', 'check', 'mpi', '--bundles', '2', '--slots', '1', '--', 'python3 -c pass'] as const
    const checked = (await queue.muster(...check)).stdout
    expect(checked).toContain('m[1-2]: ready to start')
    expect(checked).not.toContain('earlier jobs')
    for (const host of lab.hosts) await host.exec('touch go')
    expect(await ended).toEqual([0, null])
    expect(await ranks(id, '--failed')).toMatchObject([{ rank: 2, host: 'm2', reason: 'ValueError: bad batch' }])
    const all = (await queue.job('logs', id, '--all')).stdout
    expect(all).toContain('  0-3  begin\n  0-3  epoch 1 step 40/100\n')
    expect(all).toMatch(/^> 2 {4}ValueError: bad batch$/m)
    expect((await queue.job('logs', id, '--failed')).stdout).toMatch(
      /^==> rank 2 on m2: failed, exit 1 <==\n {2}begin\n(?: {2}.*\n)* {2}ValueError: bad batch\n$/,
    )
    expect((await queue.job('logs', id, '--bundle', '0')).stderr).toContain('MPI_ABORT was invoked on rank 2')
  })

  it('are read from the host that has them, although another one says that it has them and that they failed', async () => {
    const id = await queue.submit(...['--launch', 'mpi', '--bundles', '2', '--slots', '2', '--', LIAR])
    const { ended } = queue.work()
    const read = async (...args: readonly string[]) => (await queue.job('logs', id, ...args)).stdout
    await waitUntil(async () => (await read('--all')).includes('0-3  real 0'), 'the output of four ranks')
    const states = (await ranks(id)).map(({ rank, host, state }) => `${rank} ${host} ${state}`)
    expect(states).toEqual(['0 m1 running', '1 m1 running', '2 m2 running', '3 m2 running'])
    expect(await read('--rank', '0')).toBe('real 0\n')
    expect(await read('--rank', '1')).toBe('real 1\n')
    expect(await read('--all')).toBe('  0-3  real 0\n')
    for (const host of lab.hosts) await host.exec('touch over')
    expect(await ended).toEqual([0, null])
    expect((await ranks(id)).map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done'])
    expect(await ranks(id, '--failed')).toEqual([])
  })
})
