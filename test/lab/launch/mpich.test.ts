/** Real MPICH on hosts that have no keys for each other: Muster starts its proxies (docs/launch.md). */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'mpiexec.hydra', 'mpicc.mpich')

/** Hosts of the lab have one kernel, by which UCX takes them for one machine with shared memory. */
const THREE = ['--launch', 'mpi', '--mpi', 'mpich', '--bundles', '3', '--env', 'UCX_TLS=tcp,self'] as const
/** MPI_Finalize of Debian's MPICH 4.0 over UCX 1.13 and TCP does not always return, also without Muster. */
const MAY_HANG = 'timeout 20'

describe.skipIf(!canRun)('a job launched by MPICH', { timeout: 45_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 3, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    for (const host of lab.hosts)
      expect(
        (await host.exec('mpicc.mpich -o reduce /srv/mpi_all_reduce.c && mpicc.mpich -o end /srv/mpi_end.c')).code,
      ).toBe(0)
    queue = labQueue(lab, hostsFileOf(lab, 'mpich'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it("has its ranks on all hosts, each with its own bundle's variables", { timeout: 240_000 }, async () => {
    const line = `echo "$PMI_RANK on $(uname -n) $(basename "$MUSTER_DIRECTORY")"; exec ${MAY_HANG} ./reduce`
    const id = await queue.submit(...THREE, '--slots', '2', '--retries', '5', '--', line)
    expect(await queue.work().ended).toEqual([0, null])
    const { stdout } = await queue.job('logs', id, '--rank', '5')
    expect(stdout).toMatch(/^5 on m3 \w+-\d+-\d-2-\w+\nrank 5\/6 on m3 sum 21\n$/)
    expect((await queue.job('logs', id)).stdout).toContain('rank 0/6 on m1 sum 21')
    expect(await queue.show(id)).toMatch(/nothing left on m1 m2 m3/)
  })

  it('fails by the rank that failed, named with its host', async () => {
    const id = await queue.submit(...THREE, '--slots', '1', '--', './end exit')
    expect(await queue.work().ended).toEqual([0, null])
    const shown = await queue.show(id)
    expect(shown).toMatch(/rank 1 on m2 failed first: exit 3/)
    expect(shown).toMatch(/nothing left on m1 m2 m3/)
  })

  it.each([
    ['mpiexec.hydra', 'm1'],
    ['hydra_pmi_proxy', 'm3'],
  ])('leaves nothing when %s is killed on %s', async (name, host) => {
    const id = await queue.submit(...THREE, '--slots', '1', '--', './end stay')
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    await waitUntil(async () => (await queue.job('logs', id)).stdout !== '', 'the ranks to be up')
    const found = lab
      .host(host)
      .processes()
      .find((one) => one.name === name.slice(0, 15))
    if (found === undefined) throw new Error(`there is no ${name} on ${host}`)
    process.kill(found.pid, 'SIGKILL')
    expect(await ended).toEqual([0, null])
    const shown = await queue.show(id)
    expect(shown).toMatch(/nothing left on m1 m2 m3/)
    expect(shown).toMatch(new RegExp(`the mpi launcher on ${host} failed first: exit 137`))
    expect(
      lab.hosts.flatMap((one) => one.processes().filter(({ command }) => command.startsWith('sleep 311'))),
    ).toEqual([])
  })

  it('says which ranks told no end, where one was killed with the programs that would tell it', async () => {
    const id = await queue.submit(...THREE, '--slots', '1', '--', 'sleep 3113')
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    const ofRank = () =>
      lab
        .host('m2')
        .processes()
        .filter(({ command }) => command.includes('sleep 3113'))
    await waitUntil(() => ofRank().some(({ name }) => name === 'sleep'), 'the rank to be up')
    for (const { pid } of ofRank()) process.kill(pid, 'SIGKILL')
    expect(await ended).toEqual([0, null])
    // The proxies kill the other ranks with the programs that would tell their end.
    expect(await queue.show(id)).toMatch(/the mpi launcher on m\d.* failed .*; lost: .*rank 1 on m2/)
    expect((await queue.job('ranks', id, '--failed')).stdout).toMatch(/^1\tm2\tlost\t/m)
  })

  it('ends when it is cancelled', async () => {
    const id = await queue.submit(...THREE, '--slots', '1', '--', './end stay')
    const { seen, ended } = queue.work()
    await seen(isJob(id, 'running'))
    await waitUntil(async () => (await queue.job('logs', id)).stdout !== '', 'the ranks to be up')
    expect((await queue.job('cancel', id)).code).toBe(0)
    expect(await ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/nothing left on m1 m2 m3/)
  })
})
