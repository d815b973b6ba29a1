/** Real DI-engine through the queue: who hears whom, and that a deaf worker fails the job (docs/launch.md). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT } from '../../lab/cluster/python-environment.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from '../../lab/jobs/lab-queue.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ditaskMounts, HELLO } from './ditask-parts.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ip',
  'nsenter',
  'setsid',
  'redis-server',
  'environment di-engine',
)

describe.skipIf(!canRun)('a job launched by ditask', { timeout: 180_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: await ditaskMounts() })
    queue = labQueue(lab, hostsFileOf(lab, 'ditask'))
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  const submit = async (peers: readonly number[], ...args: readonly string[]) => {
    const variables = ['--env', `PEERS=${JSON.stringify({ ...peers })}`, '--env', 'HOME=/tmp']
    const launcher = [
      '--launch',
      'ditask',
      '--ditask',
      `${ENVIRONMENT}/bin/ditask`,
      '--bundles',
      '2',
      '--strategy',
      'STRICT_SPREAD',
    ]
    return await queue.submit(...variables, ...launcher, ...args, ...(args.includes('--') ? [] : ['--', HELLO]))
  }
  /** What all workers said that they heard, and why the job ended. */
  const outcome = async (id: string) => {
    const texts = await Promise.all(
      lab.hosts.map(
        async (host) =>
          (
            await host.exec(
              `cat .local/state/muster/jobs/*-${id}-1-*/out .local/state/muster/jobs/*-${id}-1-*/rank.[0-9]* 2>/dev/null`,
            )
          ).stdout,
      ),
    )
    const heard = texts.flatMap((text) => text.match(/^node \d+ heard .*$/gm) ?? []).toSorted()
    return { heard, ended: /ended: +(.*)/.exec(await queue.show(id))?.[1], state: (await queue.find(id)).state }
  }
  const run = async (peers: readonly number[], ...args: readonly string[]) => {
    const id = await submit(peers, ...args)
    expect(await queue.work().ended).toEqual([0, null])
    return await outcome(id)
  }

  it('as a star over two hosts: all hear the first one, and it hears all', async () => {
    expect(await run([3, 1, 1, 1], '--workers', '2')).toMatchObject({
      state: 'done',
      heard: ['node 0 heard [1, 2, 3]', 'node 1 heard [0]', 'node 2 heard [0]', 'node 3 heard [0]'],
    })
  })

  it('as a mesh over two hosts: each hears all others', async () => {
    expect(
      await run(
        [2, 2, 2].concat(2).map((n) => n + 1),
        '--workers',
        '2',
        '--topology',
        'mesh',
      ),
    ).toMatchObject({
      state: 'done',
      heard: ['node 0 heard [1, 2, 3]', 'node 1 heard [0, 2, 3]', 'node 2 heard [0, 1, 3]', 'node 3 heard [0, 1, 2]'],
    })
  })

  it('through a Redis server', async () => {
    const redis = lab.host('m1').exec('exec redis-server --bind 10.81.0.1 --protected-mode no --save ""')
    const client = (command: string) => lab.host('m1').exec(`redis-cli -h 10.81.0.1 ${command}`)
    await waitUntil(async () => (await client('ping')).stdout === 'PONG\n', 'redis')
    expect(await run([1, 1], '--redis', '10.81.0.1:6379')).toMatchObject({
      state: 'done',
      heard: ['node 0 heard [1]', 'node 1 heard [0]'],
    })
    await client('shutdown nosave')
    expect((await redis).code).toBe(0)
    expect(await run([1, 1], '--redis', '10.81.0.1:6379')).toMatchObject({
      state: 'failed',
      ended: expect.stringMatching(/m[12]: cannot reach Redis at 10\.81\.0\.1 port 6379: .*refused/),
    })
  })

  it('fails with the reason when a worker cannot listen, which DI-engine itself ends with 0', async () => {
    const listen = 'import socket; s = socket.create_server(("10.81.0.2", 46900)); print(s.accept()[0] is not None)'
    const holder = lab.host('m2').exec(`exec python3 -c '${listen}'`)
    // The last --ports counts.
    const id = await submit([1, 1], '--', `${HELLO} --ports 46900`)
    expect(await queue.work().ended).toEqual([0, null])
    await lab.host('m2').exec(`python3 -c 'import socket; socket.create_connection(("10.81.0.2", 46900)).close()'`)
    expect((await holder).code).toBe(0)
    expect(await outcome(id)).toMatchObject({
      state: 'failed',
      ended: expect.stringMatching(
        /rank 1 on m2 failed first: exit 1.*BusError: this worker hears no other one: pynng\.exceptions\.AddressInUse/,
      ),
    })
  })

  it('fails when a worker is killed, which the others do not notice', async () => {
    const id = await submit([1, 1])
    const { seen } = queue.work()
    await seen(isJob(id, 'running'))
    const worker = () =>
      lab
        .host('m2')
        .processes()
        .find(({ name, command }) => name === 'ditask' && command.includes('--node-ids 1'))
    await waitUntil(() => worker() !== undefined, 'the worker on m2')
    process.kill(worker()?.pid ?? 0, 'SIGKILL')
    await seen(isJob(id, 'failed'))
    expect(await outcome(id)).toMatchObject({ ended: expect.stringMatching(/rank 1 on m2 failed first: exit 137/) })
  })
})
