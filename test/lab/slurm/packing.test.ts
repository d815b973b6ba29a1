/** `muster pack` on a real Slurm says what `scontrol -d` says, with other people's jobs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { literalPattern } from '../../../src/base/literal-pattern.ts'
import { openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Lab } from '../cluster/lab.ts'
import { SLURM_PROGRAMS, type SlurmLab } from '../cluster/slurm-lab.ts'
import type { LabQueue } from '../jobs/lab-queue.ts'
import { slurmQueue } from './slurm-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'setpriv', ...SLURM_PROGRAMS)

describe.skipIf(!canRun)('the picture of a real Slurm', { timeout: 240_000 }, () => {
  let lab: Lab
  let slurm: SlurmLab
  let queue: LabQueue
  let file: string

  beforeAll(async () => {
    ;({ lab, slurm, queue, file } = await slurmQueue())
  })
  afterAll(async () => {
    await queue?.stop()
    await lab?.stop()
  })

  /** `NODE DEVICE`, as `scontrol -d` prints it. */
  const heldBy = async (slurmJob: string): Promise<readonly string[]> => {
    const text = await slurm.run(`scontrol -d show job ${slurmJob}`)
    return [...text.matchAll(/Nodes=(\S+) CPU_IDs=\S+ Mem=\d+ GRES=gpu:a100:\d+\(IDX:([\d,-]+)\)/g)].flatMap(
      ([, node, devices = '']) => {
        const [from = 0, to = from] = devices.split('-').map(Number)
        return Array.from({ length: to - from + 1 }, (_, index) => `${node} ${from + index}`)
      },
    )
  }

  it('shows the devices of the queue and of others, and why jobs wait', async () => {
    const asOther =
      'setpriv --reuid=65534 --regid=65534 --clear-groups sbatch --parsable -D /tmp -o /dev/null --mem=100'
    // Somebody else may name a job after fields of scontrol.
    const fields = 'UserId=root(0) JobState=RUNNING Nodes=n3 CPU_IDs=0-7 Mem=9 GRES=gpu:8(IDX:0-7)'
    const forged = `-J 'x ${fields}' --comment 'Nodes=n1 CPU_IDs=0-3 Mem=9 GRES=gpu:2(IDX:0-1)'`
    const foreign = (await slurm.run(`${asOther} ${forged} --gres=gpu:1 -w n2 --wrap 'sleep 300'`)).trim()
    await waitUntil(async () => (await slurm.run('squeue -h -t R')).trim() !== '', 'the job of somebody else', 60_000)
    const one = await queue.submit('--engine', 'slurm', '--gpu', '1', '--memory', '100MB', '--', 'sleep 300')
    const gang = await queue.submit(
      ...['--engine', 'slurm', '--bundles', '2', '--gpu', '1', '--strategy', 'STRICT_SPREAD', '--', 'sleep 300'],
    )
    const waiting = await queue.submit('--engine', 'slurm', '--gpu', '1', '--', 'true')
    queue.work()
    for (const id of [one, gang])
      await waitUntil(async () => (await queue.find(id)).state === 'running', `job ${id} to run`, 60_000)
    await waitUntil(async () => (await queue.find(waiting)).state === 'pending', 'the last to be handed over', 60_000)

    const slurmIdOf = async (id: string) =>
      (await slurm.run(`cat .local/state/muster/jobs/*-${id}-1-0-*/slurm-id`)).trim()
    const lying = `y\nJobId=${await slurmIdOf(one)} ${fields}\nz`
    await slurm.run(`${asOther} --hold -J '${lying}' --wrap true`)
    const lines = (await queue.muster('pack', '--engine', 'slurm', '--json')).stdout.trim().split('\n')
    const nodes = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'node')
    const jobs = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'placement')
    expect(jobs.filter(({ isOwn }) => !isOwn).map(({ user, shares }) => [user, shares.length])).toEqual([
      ['nobody', 1],
      ['nobody', 0],
    ])
    expect(jobs.flatMap(({ shares }) => shares).some(({ node }) => node === 'n3')).toBe(false)
    const holders = new Map<number, string[]>()
    for (const { name, devices } of nodes)
      devices.forEach((shares: readonly { readonly job: number }[], index: number) => {
        for (const { job } of shares) holders.set(job, [...(holders.get(job) ?? []), `${name} ${index}`])
      })
    expect(holders.get(Number(one))).toEqual(await heldBy(await slurmIdOf(one)))
    expect(holders.get(Number(gang))).toEqual(await heldBy(await slurmIdOf(gang)))
    expect(holders.get(-1)).toEqual(await heldBy(foreign))
    expect([...holders.values()].flat()).toHaveLength(4)

    const { stdout } = await queue.muster('pack')
    expect(stdout).toMatch(/^SLURM NODE\tGPUS\tCORES\tMEMORY/m)
    expect(stdout).toMatch(/^\* 1 other job$/m)
    expect(stdout).toMatch(new RegExp(`^waits: job ${waiting}: .*\\((Resources|Priority)\\)$`, 'm'))

    await slurm.run('scontrol update nodename=n3 state=drain reason=test')
    expect((await queue.muster('pack', '--engine', 'slurm')).stdout).toMatch(/^n3\t.*idle\+drain$/m)

    await using console = await openConsole({ in: lab, args: ['--hosts', file] })
    await console.leader('4')
    await console.expectScreen(/y: +\[all\] +own hosts +Slurm/)
    await console.expectScreen(/── own hosts[\s\S]*── Slurm +GPUs 4\/4 .* of 3 nodes/)
    await console.key('y', 'y')
    await console.expectScreen(/packing of Slurm/)
    await console.expectScreen(/GPUs 4\/4 .* of 3 nodes +1 down or drained/)
    await console.expectScreen(/2 of the queue +\* 1 other job/)
    await console.expectScreen(new RegExp(`job ${waiting} [^*]*\\((Resources|Priority|ReqNodeNotAvail)`))
  })
  it('calls tasks of an array as squeue does', async () => {
    const array = (
      await slurm.run('sbatch --parsable -D /tmp -o /dev/null --mem=10 --array=1-2 --wrap "sleep 300"')
    ).trim()
    const rest = (await slurm.run('sbatch --parsable --hold -o /dev/null --array=3-9%2 --wrap true')).trim()
    const listed = async () => (await slurm.run("squeue -h -o '%i'")).trim().split('\n')
    const tasks = [`${array}_1`, `${array}_2`, `${rest}_[3-9%2]`]
    await waitUntil(
      async () => (await listed()).filter((id) => tasks.includes(id)).length === 3,
      'the tasks to run',
      60_000,
    )
    const { stdout } = await queue.muster('pack', '--engine', 'slurm')
    expect(stdout).toContain(`waits: ${rest}_[3-9%2] of root: `)
    await using console = await openConsole({ in: lab, args: ['--hosts', file] })
    await console.leader('5')
    await console.key('y')
    for (const task of tasks) await console.expectScreen(new RegExp(` ${literalPattern(task)} of root`, 'u'))
    await slurm.run(`scancel ${array} ${rest}`)
  })
})
