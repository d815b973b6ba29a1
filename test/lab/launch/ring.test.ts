/** Ranks in the order that avoids a slow link, and the time of an all-reduce that Muster predicts, beside what gloo takes. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { allReduceS } from '../../../src/scheduler/launch/ring.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const PLACE = '/srv'
const MBIT = 100
const SLOW_MBIT = 10
const FLOATS = 3_125_000

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ip',
  'nsenter',
  'tc',
  'iperf3',
  'python torch',
  'python mpi4py',
)

type Shown = {
  readonly places: readonly { readonly host: string }[]
  readonly ring?: { readonly hosts: readonly string[]; readonly bitsPerSecond: number; readonly measured: string }
}

describe.skipIf(!canRun)('the order of ranks', () => {
  let lab: Lab
  let queue: LabQueue
  const show = async (id: string) => JSON.parse((await queue.job('show', id, '--json')).stdout) as Shown
  const seconds = async (id: string) => {
    const { stdout } = await queue.job('logs', id)
    const times = [...stdout.matchAll(/sum 6\.0 in ([\d.]+) s$/gm)].map(([, time]) => Number(time))
    if (times.length === 0) throw new Error(stdout)
    return Math.max(...times)
  }
  const submit = async (floats: number, ...args: readonly string[]) =>
    await queue.submit(
      ...['--launch', 'torchrun', '--torchrun', `${PLACE}/torchrun`, '--bundles', '3', '--strategy', 'STRICT_SPREAD'],
      ...[...args, '--', `${PLACE}/torch_all_reduce.py`, String(floats), '3'],
    )

  beforeAll(async () => {
    const fixtures = join(packageRoot(), 'test', 'fixtures', 'launch')
    lab = await startLab({ count: 3, mounts: { [PLACE]: fixtures } })
    const slowTo = lab.host('m1').address
    for (const host of lab.hosts) {
      const shaped = await host.exec(`set -e
        echo reno > /proc/sys/net/ipv4/tcp_congestion_control
        tc qdisc replace dev eth0 root handle 1: htb default 10 r2q 1000
        tc class add dev eth0 parent 1: classid 1:10 htb rate ${MBIT}mbit
        tc class add dev eth0 parent 1: classid 1:20 htb rate ${SLOW_MBIT}mbit
        test ${host.name} != m2 || tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst ${slowTo} flowid 1:20`)
      expect(shaped).toMatchObject({ code: 0, stderr: '' })
    }
    const hostsFile = hostsFileOf(lab, 'ring')
    queue = labQueue(lab, hostsFile)
    const mesh = await lab.run([...PROGRAM, '--hosts', hostsFile, 'net', 'mesh', '--time', '2'])
    expect(mesh.code).toBe(0)
  })
  afterAll(async () => {
    await queue?.stop()
    await lab?.stop()
  })

  it('avoids the slow direction of a link, and takes the time that was predicted', async () => {
    const id = await submit(FLOATS)
    await queue.work().ended
    const { places, ring } = await show(id)
    // gloo sends to the previous rank: m1 to m2, m2 to m3, m3 to m1.
    expect(places.map(({ host }) => host)).toEqual(['m1', 'm3', 'm2'])
    expect(ring?.hosts).toEqual(['m1', 'm2', 'm3'])
    if (ring === undefined) return
    expect(ring.bitsPerSecond / 1e6).toBeGreaterThan(0.7 * MBIT)
    const trial = await queue.job('submit', '--dry-run', '--launch', 'mpi', '--bundles', '3', '--', 'true')
    expect(trial.stdout).toMatch(/^bundle 0: m1\nbundle 1: m2\nbundle 2: m3\nring: m1 → m2 → m3 → m1, slowest /)
    expect(await queue.show(id)).toMatch(
      /^ring: +m1 → m2 → m3 → m1, slowest \d+(\.\d)? Mbit\/s; an all-reduce of 100 MB/m,
    )
    const predicted = allReduceS(ring, FLOATS * 4)
    const took = await seconds(id)
    expect(took / predicted).toBeGreaterThan(0.7)
    expect(took / predicted).toBeLessThan(1.3)
  })

  it('is what the ring of Open MPI follows, which goes the other way round', async () => {
    const program = [
      'import array, time; from mpi4py import MPI; world = MPI.COMM_WORLD',
      `one = array.array("f", [1 + world.rank]) * ${FLOATS}; all = array.array("f", [0]) * ${FLOATS}`,
      'world.Barrier(); begin = time.time(); world.Allreduce([one, MPI.FLOAT], [all, MPI.FLOAT])',
      'print("sum", all[0], "in", round(time.time() - begin, 3), "s", flush=True)',
    ].join('; ')
    const tuned = 'OMPI_MCA_coll_tuned'
    const ringAlgorithm = ['--env', `${tuned}_use_dynamic_rules=1`, '--env', `${tuned}_allreduce_algorithm=4`]
    const id = await queue.submit(
      ...['--launch', 'mpi', '--slots', '1', '--bundles', '3', ...ringAlgorithm, '--', 'python3', '-c', program],
    )
    await queue.work().ended
    const { places, ring } = await show(id)
    expect(places.map(({ host }) => host)).toEqual(['m1', 'm2', 'm3'])
    expect(ring?.hosts).toEqual(['m1', 'm2', 'm3'])
    expect(await seconds(id)).toBeLessThan(2 * allReduceS(ring ?? { hosts: [], bitsPerSecond: 0 }, FLOATS * 4))
  })

  it('is that of the placement on request, which takes many times as long here', async () => {
    const id = await submit(FLOATS / 10, '--order', 'as-placed')
    await queue.work().ended
    const { places, ring } = await show(id)
    expect(places.map(({ host }) => host)).toEqual(['m1', 'm2', 'm3'])
    expect(ring).toBeUndefined()
    const fast = allReduceS({ hosts: lab.names, bitsPerSecond: MBIT * 1e6 }, (FLOATS / 10) * 4)
    expect(await seconds(id)).toBeGreaterThan(4 * fast)
  })
})
