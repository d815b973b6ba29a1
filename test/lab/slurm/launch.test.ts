/** `--launch` on a real Slurm: real torchrun and mpirun in its gangs, and what a TensorFlow task finds. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { requirement } from '../../support/requirements.ts'
import type { Lab } from '../cluster/lab.ts'
import { SLURM_PROGRAMS, type SlurmLab } from '../cluster/slurm-lab.ts'
import type { LabQueue } from '../jobs/lab-queue.ts'
import { type SlurmQueue, slurmQueue } from './slurm-queue.ts'

const canRun = requirement(
  ...(['root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'python torch', 'python mpi4py'] as const),
  ...([...SLURM_PROGRAMS, 'mpirun.openmpi', 'mpiexec.hydra', 'mpicc.mpich'] as const),
)

const FIXTURES = join(packageRoot(), 'test', 'fixtures', 'launch')
const PLACE = '/srv'
const APART = ['--bundles', '2', '--strategy', 'STRICT_SPREAD', '--cpu', '2'] as const

describe.skipIf(!canRun)('launchers on a real Slurm', { timeout: 240_000 }, () => {
  let made: SlurmQueue
  let lab: Lab
  let slurm: SlurmLab
  let queue: LabQueue

  const submit = async (...args: readonly string[]): Promise<string> =>
    (await queue.submit('--engine', 'slurm', ...args)).split('\n')[0] ?? ''
  const ends = async (id: string): Promise<{ readonly state: string; readonly lines: readonly string[] }> => {
    await queue.work().ended
    const { state, attempt } = await queue.find(id)
    const text = await slurm.run(`cat .local/state/muster/jobs/*-${id}-${attempt}-0-*/out.*`)
    return { state, lines: text.trim().split('\n').toSorted() }
  }

  beforeAll(async () => {
    made = await slurmQueue({}, { mounts: { [PLACE]: FIXTURES } })
    ;({ lab, slurm, queue } = made)
  })
  afterEach(async () => await made?.stop())
  afterAll(async () => await lab?.stop())

  it('reduces with torchrun on two nodes, two ranks on each', async () => {
    const launch = ['--launch', 'torchrun', '--torchrun', `${PLACE}/torchrun`, '--procs', '2']
    const { state, lines } = await ends(await submit(...APART, ...launch, '--', `python3 ${PLACE}/torch_all_reduce.py`))
    expect(lines.join('\n')).toMatch(/rank 3\/4 local 1 on n\d sum 10\.0/)
    expect(new Set(lines.flatMap((line) => /rank \d\/4 local \d on (n\d) sum 10\.0/.exec(line)?.[1] ?? [])).size).toBe(
      2,
    )
    expect(state).toBe('done')
  })

  it.each([
    ['Open MPI', [], `/usr/bin/python3 ${PLACE}/mpi_all_reduce.py`],
    // Hosts of the lab have one kernel, by which UCX takes them for one machine with shared memory. Over TCP, MPI_Finalize of Debian's
    // MPICH 4.0 does not always return, also without Muster.
    ['MPICH', ['--mpi', 'mpich', '--env', 'UCX_TLS=tcp,self', '--retries', '5'], 'timeout 20 ~/reduce'],
  ])('reduces with %s, started once, on two nodes', async (name, options, command) => {
    if (name === 'MPICH') await slurm.run(`mpicc.mpich -o ~/reduce ${PLACE}/mpi_all_reduce.c`)
    const id = await submit(...APART, '--launch', 'mpi', ...options, '--', command)
    const { state, lines } = await ends(id)
    expect(lines.map((line) => line.replace(/ on n\d/, ''))).toEqual(
      [0, 1, 2, 3].map((rank) => `rank ${rank}/4 sum 10`),
    )
    expect(new Set(lines.map((line) => / on (n\d)/.exec(line)?.[1])).size).toBe(2)
    expect(state).toBe('done')
    for (const rank of [0, 3]) {
      const { stdout } = await queue.job('logs', id, '--rank', String(rank))
      expect(stdout).toMatch(new RegExp(`^rank ${rank}/4 on n\\d sum 10\n$`))
    }
    const all = await queue.job('logs', id, '--all')
    expect(all.stdout).toMatch(/^ {2}0-3~? +rank \d\/4 on n\d sum 10\n$/)
    expect(await queue.job('logs', id, '--rank', '4')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`job ${id} has no rank 4: there are ranks 0-3`),
    })
  })

  it('names the rank that says something of its own', async () => {
    const line = 'echo began; sleep 1; [ $RANK != 1 ] || { echo bad batch; exit 3; }; exec sleep 4321'
    const id = await submit(...APART, '--cpu', '1', '--launch', 'mpi', '--as-is', '--', line)
    expect((await ends(id)).state).toBe('failed')
    expect((await queue.job('logs', id, '--rank', '1')).stdout).toBe('began\nbad batch\n')
    const { stdout } = await queue.job('logs', id, '--all')
    expect(stdout).toMatch(/^ {2}0-1 +began$/m)
    expect(stdout).toMatch(/^> 1 +bad batch$/m)
  })

  it('reads the metric of rank 0 where one bundle has several ranks', async () => {
    const line = 'echo loss=0.$((5 + RANK))'
    const id = await submit('--cpu', '2', '--launch', 'mpi', '--as-is', '--metric', 'loss', '--', line)
    expect((await ends(id)).state).toBe('done')
    expect(await queue.show(id)).toMatch(/^loss: +0\.5$/m)
    expect((await queue.job('logs', id, '--rank', '1')).stdout).toBe('loss=0.6\n')
  })

  it('tells each task of TensorFlow its role, and ends when the chief does', async () => {
    const roles = ['--role', 'chief=1', '--role', 'worker=1', '--role', 'ps=1:gpu=0']
    const task = `python3 -c 'import os; print(os.environ["TF_CONFIG"], flush=True)'; [ $MUSTER_TF_JOB != ps ] || exec sleep 4321`
    const id = await submit('--launch', 'tf', '--cpu', '1', ...roles, '--', task)
    const { state, lines } = await ends(id)
    expect(state).toBe('done')
    const told = lines
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { cluster: Record<string, string[]>; task: { type: string } })
    expect(told.map(({ task: { type } }) => type).toSorted()).toEqual(['chief', 'ps', 'worker'])
    const [{ cluster } = { cluster: {} }] = told
    for (const one of told) expect(one.cluster).toEqual(cluster)
    const places = Object.values(cluster).flat()
    expect(places).toHaveLength(3)
    expect(new Set(places).size).toBe(3)
    for (const place of places) expect(place).toMatch(/^10\.81\.0\.\d:2\d{4}$/)
    expect(lab.hosts.flatMap((host) => host.processes().filter(({ command }) => command === 'sleep 4321'))).toEqual([])
  })

  it('fails with the first rank that fails, and says why', async () => {
    const id = await submit(...APART, '--launch', 'torchrun', '--torchrun', '/srv/absent', '--', 'python3 x.py')
    expect((await ends(id)).state).toBe('failed')
    expect(await queue.show(id)).toMatch(/has no \/srv\/absent in PATH/)
  })
})
