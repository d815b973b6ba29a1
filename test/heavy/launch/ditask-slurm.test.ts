/** Real DI-engine under a real srun: who hears whom, and that a deaf worker fails the job (docs/engines.md). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Lab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT } from '../../lab/cluster/python-environment.ts'
import { SLURM_PROGRAMS, type SlurmLab } from '../../lab/cluster/slurm-lab.ts'
import { isJob, type LabQueue } from '../../lab/jobs/lab-queue.ts'
import { type SlurmQueue, slurmQueue } from '../../lab/slurm/slurm-queue.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ditaskMounts, HELLO } from './ditask-parts.ts'

const canRun = requirement(
  ...['root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'environment di-engine'],
  ...SLURM_PROGRAMS,
)

const NODE = { cpus: 4, memoryMb: 8000, gpus: 0 }

describe.skipIf(!canRun)('ditask in a job of Slurm', { timeout: 240_000 }, () => {
  let made: SlurmQueue
  let lab: Lab
  let slurm: SlurmLab
  let queue: LabQueue

  beforeAll(async () => {
    // DI-engine's own parser reads n8, n9, and one node `n[08-09],gpu5`.
    const nodes = ['n08', 'n09', 'gpu5'].map((name) => ({ ...NODE, name }))
    made = await slurmQueue({ nodes }, { mounts: await ditaskMounts() })
    ;({ lab, slurm, queue } = made)
  })
  afterEach(async () => await made?.stop())
  afterAll(async () => await lab?.stop())

  const submit = async (peers: readonly number[], bundles: number, ...args: readonly string[]) => {
    const variables = ['--env', `PEERS=${JSON.stringify({ ...peers })}`, '--env', 'HOME=/tmp']
    const launcher = ['--engine', 'slurm', '--launch', 'ditask', '--ditask', `${ENVIRONMENT}/bin/ditask`]
    const gang = ['--bundles', String(bundles), '--strategy', 'STRICT_SPREAD']
    return await queue.submit(
      ...variables,
      ...launcher,
      ...gang,
      ...args,
      ...(args.includes('--') ? [] : ['--', HELLO]),
    )
  }
  const outcome = async (id: string) => {
    const text = await slurm.run(`cat .local/state/muster/jobs/*-${id}-1-0-*/out.*`)
    const ended = /ended: +(.*)/.exec(await queue.show(id))?.[1]
    return { heard: (text.match(/^node \d+ heard .*$/gm) ?? []).toSorted(), ended, state: (await queue.find(id)).state }
  }
  const run = async (peers: readonly number[], bundles: number, ...args: readonly string[]) => {
    const id = await submit(peers, bundles, ...args)
    expect(await queue.work().ended).toEqual([0, null])
    return await outcome(id)
  }

  it('as a star over zero-padded and unlike names: all hear the first one, and it hears all', async () => {
    expect(await run([2, 1, 1], 3)).toMatchObject({
      state: 'done',
      heard: ['node 0 heard [1, 2]', 'node 1 heard [0]', 'node 2 heard [0]'],
    })
  })

  it('as a mesh of labelled workers: each hears all others', async () => {
    const roles = ['--role', 'learner=1', '--role', 'collector=1', '--workers', '2', '--topology', 'mesh']
    expect(await run([3, 3, 3, 3], 1, ...roles)).toMatchObject({
      state: 'done',
      heard: ['node 0 heard [1, 2, 3]', 'node 1 heard [0, 2, 3]', 'node 2 heard [0, 1, 3]', 'node 3 heard [0, 1, 2]'],
    })
  })

  it('fails with the reason when a worker cannot listen, or cannot find a peer', async () => {
    const [, taken] = slurm.nodes
    const { address = '', name = '' } = taken ?? {}
    const listen = `import socket; s = socket.create_server(("${address}", 46900)); print(s.accept()[0] is not None)`
    const holder = taken?.exec(`exec python3 -c '${listen}'`)
    // The last --ports and --attach-to count.
    const deaf = await submit([2, 1, 1], 3, '--', `${HELLO} --ports 46900`)
    const lost = await submit([1, 1], 2, '--', `${HELLO} --attach-to tcp://nowhere.invalid:46900`)
    expect(await queue.work().ended).toEqual([0, null])
    await taken?.exec(`python3 -c 'import socket; socket.create_connection(("${address}", 46900)).close()'`)
    expect((await holder)?.code).toBe(0)
    const heard = 'BusError: this worker hears no other one: pynng\\.exceptions'
    expect(await outcome(deaf)).toMatchObject({
      state: 'failed',
      ended: expect.stringMatching(new RegExp(`exit 1: rank \\d on ${name}: ${heard}\\.AddressInUse`)),
    })
    expect(await outcome(lost)).toMatchObject({
      state: 'failed',
      ended: expect.stringMatching(new RegExp(`exit 1: rank [01] on \\S+: ${heard}\\.TryAgain`)),
    })
  })

  it('fails when a worker is killed, which the others do not notice', async () => {
    const id = await submit([1, 1], 2)
    const { seen } = queue.work()
    await seen(isJob(id, 'running'))
    const worker = () =>
      slurm.nodes
        .flatMap((node) => node.processes())
        .find(({ name, command }) => name === 'ditask' && command.includes('--node-ids 1'))
    await waitUntil(() => worker() !== undefined, 'the worker of rank 1', 60_000)
    process.kill(worker()?.pid ?? 0, 'SIGKILL')
    await seen(isJob(id, 'failed'))
    expect(await outcome(id)).toMatchObject({
      ended: expect.stringMatching(/exit 137: rank 1 on \S+: its worker was killed by signal 9/),
    })
  })
})
