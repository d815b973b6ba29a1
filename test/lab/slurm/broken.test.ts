/** Slurm and its login host fail while jobs run; several schedulers use the same cluster. */
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Lab } from '../cluster/lab.ts'
import { signalProcess } from '../cluster/processes.ts'
import { homesOfSlurm, SLURM_PROGRAMS, type SlurmLab } from '../cluster/slurm-lab.ts'
import { type LabQueue, labQueue } from '../jobs/lab-queue.ts'
import { slurmQueue } from './slurm-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', ...SLURM_PROGRAMS)

const MUNGED =
  'munged --key-file=/run/munge/key --pid-file=/run/munge/munged.pid --log-file=/run/munge/munged.log --seed-file=/run/munge/seed'
/** Stands in for sbatch: once, it waits for a file to go. */
const HELD_SBATCH = `#!/bin/sh
if mv /root/programs/hold /root/programs/held 2> /dev/null; then
  while [ -e /root/programs/held ]; do sleep 0.2; done
fi
exec /usr/bin/sbatch "$@"
`

describe.skipIf(!canRun)('a Slurm that breaks', { timeout: 300_000 }, () => {
  let lab: Lab
  let slurm: SlurmLab
  let queue: LabQueue
  let file: string

  const submit = async (own: LabQueue, ...args: readonly string[]): Promise<string> =>
    await own.submit('--engine', 'slurm', ...args, '--', 'echo $MUSTER_JOB $SLURM_JOB_ID >> /root/ran')
  const ran = async (): Promise<readonly string[]> =>
    (await slurm.run('cat /root/ran; rm /root/ran')).trim().split('\n')

  beforeAll(async () => {
    ;({ lab, slurm, queue, file } = await slurmQueue(
      {
        // The larger one does not share the home directory.
        nodes: [
          { cpus: 4, memoryMb: 8000, gpus: 0 },
          { cpus: 8, memoryMb: 16_000, gpus: 0 },
        ],
        // How long programs of Slurm try to reach the controller.
        lines: ['MessageTimeout=3'],
        section: 'slurm: { login: c1, bin: /root/programs }\n',
      },
      { perHost: homesOfSlurm(['n1']) },
    ))
    await slurm.run(
      `mkdir programs; cat > programs/sbatch << 'PROGRAM'\n${HELD_SBATCH}PROGRAM\nchmod 755 programs/sbatch`,
    )
  })
  afterEach(async () => {
    await queue?.stop()
  })
  afterAll(async () => {
    await lab?.stop()
  })

  it('says what to do about a node that does not share the home directory', async () => {
    const id = await submit(queue, '--cpu', '8')
    await queue.work().ended
    const { state, reason } = await queue.find(id)
    expect(state).toBe('failed')
    expect(reason).toMatch(
      /^n2 could not start it .* set directory in slurm of hosts.yaml to one that all nodes share$/,
    )
    // No other test may get it; a killed controller forgets that a node is drained.
    await slurm.run('scontrol update nodename=n2 state=drain reason=test')
    for (const { pid, name } of lab.host('n2').processes()) if (name === 'slurmd') signalProcess(pid, 'SIGTERM')
  })

  it('hands a job over once if its controller is killed while a round is under way', async () => {
    await slurm.run('touch programs/hold')
    const id = await submit(queue)
    const { ended } = queue.work()
    await waitUntil(
      async () => (await slurm.controller.exec('test -e programs/held')).code === 0,
      'the scheduler to submit',
      60_000,
    )
    for (const { pid, name } of slurm.controller.processes()) if (name === 'slurmctld') signalProcess(pid, 'SIGKILL')
    await slurm.run('rm programs/held')
    await queue.says(id, /its controller does not answer/)
    await slurm.run('slurmctld')
    await ended
    expect(await queue.find(id)).toMatchObject({ state: 'done', attempt: 1 })
    expect(await ran()).toHaveLength(1)
  })

  it.each([
    ['munged', 'kill $(cat /run/munge/munged.pid)', MUNGED, /munged is not running on the login host/],
    ['flock', 'mount --bind /dev/null /usr/bin/flock', 'umount /usr/bin/flock', /c1 has no flock\. Install util-linux/],
  ])('says that %s is missing on the login host, and continues when it is back', async (_, remove, restore, words) => {
    await slurm.run(remove)
    const id = await submit(queue)
    const { ended } = queue.work()
    await queue.says(id, words)
    await slurm.run(restore)
    await ended
    expect((await queue.find(id)).state).toBe('done')
    expect(await ran()).toHaveLength(1)
  })

  it('runs each job once for two queues, and for a copy of a queue on another machine', async () => {
    const home = (name: string) => join(lab.directory, name)
    const [first, copy, other] = ['first', 'copy', 'other'].map((name) =>
      labQueue(lab, file, { XDG_STATE_HOME: home(name) }),
    ) as [LabQueue, LabQueue, LabQueue]
    const queues = [first, copy, other]
    try {
      for (const own of [first, other]) await submit(own, '--array', '0-3')
      cpSync(home('first'), home('copy'), { recursive: true })
      await Promise.all(queues.map((own) => own.work().ended))
      for (const own of queues)
        expect((await own.list()).map(({ state, reason = '' }) => `${state} ${reason}`)).toEqual(Array(4).fill('done '))
      const lines = await ran()
      expect(new Set(lines).size).toBe(8)
      expect(lines).toHaveLength(8)
    } finally {
      for (const own of queues) await own.stop()
    }
  })
})
