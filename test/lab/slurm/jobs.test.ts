/** `--engine slurm` on a real Slurm: where jobs run, how they end, and why they wait. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Lab } from '../cluster/lab.ts'
import { SLURM_PROGRAMS, type SlurmLab } from '../cluster/slurm-lab.ts'
import type { LabQueue } from '../jobs/lab-queue.ts'
import { type SlurmQueue, slurmQueue } from './slurm-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', ...SLURM_PROGRAMS)

const PLACE = '.local/state/muster/jobs'
const TELL =
  'echo "$RANK $LOCAL_RANK/$WORLD_SIZE $SLURMD_NODENAME $MUSTER_HOSTS gpu:$CUDA_VISIBLE_DEVICES $MUSTER_ADDRESSES $MASTER_ADDR"'

describe.skipIf(!canRun)('jobs on a real Slurm', { timeout: 240_000 }, () => {
  let made: SlurmQueue
  let lab: Lab
  let slurm: SlurmLab
  let queue: LabQueue

  const submit = async (...args: readonly string[]): Promise<string> => {
    const [first = ''] = (await queue.submit('--engine', 'slurm', ...args)).split('\n')
    return first
  }
  const printed = async (id: string, file = 'out'): Promise<string> =>
    await slurm.run(`cat ${PLACE}/*-${id}-1-0-*/${file}`)
  const rows = async (id: string): Promise<readonly (readonly string[])[]> =>
    (await printed(id, 'out.*'))
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
  const stateOf = async (id: string): Promise<string> => (await queue.find(id)).state
  const reaches = async (id: string, state: string) =>
    await waitUntil(async () => (await stateOf(id)) === state, `job ${id} to be ${state}`, 60_000)
  /** The number that Slurm gave it. */
  const slurmId = async (id: string): Promise<string> => (await slurm.run(`cat ${PLACE}/*-${id}-1-0-*/slurm-id`)).trim()

  beforeAll(async () => {
    // Slurm forgets jobs within seconds.
    made = await slurmQueue({ minJobAgeS: 5 })
    ;({ lab, slurm, queue } = made)
  })
  afterEach(async () => await made?.stop())
  afterAll(async () => {
    await lab?.stop()
  })

  it('places one job, an array, and a gang of each strategy with their devices and ranks', async () => {
    const one = await submit('--gpu', '1', '--metric', 'loss', '--', `${TELL}; echo loss=0.5; echo loss=0.25`)
    const array = await submit('--array', '0-5', '--', 'echo $MUSTER_ARRAY_INDEX')
    const gang = (strategy: string, count: number, gpu = '0') =>
      submit('--bundles', String(count), '--gpu', gpu, '--strategy', strategy, '--', TELL)
    const pack = await gang('PACK', 3, '1')
    const tight = await gang('STRICT_PACK', 2, '1')
    const apart = await gang('STRICT_SPREAD', 3)
    await queue.work().ended
    // It asks for as many hosts as have room.
    const spread = await gang('SPREAD', 3)
    await queue.work().ended
    const states = (await queue.list()).map(({ state }) => state)
    expect(states).toEqual(Array.from({ length: 11 }, () => 'done'))
    expect((await queue.job('logs', one)).stdout).toMatch(
      /^0 0\/1 n([12]) n\1 gpu:[01] (10\.81\.0\.[23]) \2\nloss=0.5\nloss=0.25\n$/,
    )
    expect(await queue.show(one)).toMatch(/^loss: +0\.25$/m)
    expect(await queue.show(one)).toMatch(/^bundle 0: +Slurm on n[12]: exit 0$/m)
    const [from = 0, to = 0] = array.split('-').map(Number)
    const indices = Array.from({ length: to - from + 1 }, (_, index) => printed(String(from + index)))
    expect(await Promise.all(indices)).toEqual(['0\n', '1\n', '2\n', '3\n', '4\n', '5\n'])

    for (const id of [pack, tight, spread, apart]) {
      const ranks = await rows(id)
      // MUSTER_HOSTS has the hosts in the order of ranks.
      expect(ranks.map(([rank]) => rank)).toEqual(ranks.map((_, index) => String(index)))
      const hosts = ranks.map(([, , host = '']) => host)
      const addresses = hosts.map((host) => lab.host(host).address)
      const same = ranks.map(([, , , names, , at, master]) => [names, at, master])
      expect(same).toEqual(ranks.map(() => [hosts.join(), addresses.join(), addresses[0]]))
    }
    const hostsOf = async (id: string) => (await rows(id)).map(([, , host]) => host)
    expect(new Set(await hostsOf(pack)).size).toBe(2)
    const devices = (await rows(pack)).map(([, , host, , gpu]) => `${host} ${gpu}`)
    expect(new Set(devices).size).toBe(3)
    expect(new Set(await hostsOf(tight)).size).toBe(1)
    expect(new Set(await hostsOf(spread)).size).toBe(3)
    expect(new Set(await hostsOf(apart)).size).toBe(3)
    // A job without GPUs sees none.
    expect((await rows(apart)).every(([, , , , gpu]) => gpu === 'gpu:')).toBe(true)
    expect((await queue.job('logs', apart, '--rank', '2')).stdout).toBe(`${(await rows(apart))[2]?.join(' ')}\n`)
  })

  it('keeps exit codes, tries again, cancels, and stops at the limit', async () => {
    const failing = await submit('--', 'exit 3')
    const gang = await submit('--bundles', '3', '--', '[ $RANK != 1 ] || exit 7; sleep 300')
    const again = await submit('--retries', '1', '--', '[ $MUSTER_ATTEMPT = 2 ] || exit 5')
    const limited = await submit('--limit', '2', '--', 'sleep 300')
    const here = await submit('--', 'sleep 300')
    const there = await submit('--retries', '5', '--', 'sleep 300')
    const never = await submit('--gpu', '3', '--', 'true')
    // Only n3 has as many cores.
    const fallen = await submit('--cpu', '8', '--priority', '-2', '--', 'sleep 300')
    const work = queue.work()
    await Promise.all([here, there, fallen].map((id) => reaches(id, 'running')))
    expect(await slurm.run(`scontrol show job ${await slurmId(fallen)}`)).toContain(' Nice=200 ')
    await slurm.run('scontrol update nodename=n3 state=down reason=test')
    await queue.job('cancel', here)
    await slurm.run(`scancel ${await slurmId(there)}`)
    await work.ended
    // It may have come back by itself.
    await slurm.run('scontrol update nodename=n3 state=resume || :')
    const states = Object.fromEntries((await queue.list()).map((line) => [line.job, line]))
    expect(states[failing]).toMatchObject({ state: 'failed', reason: 'exit 3' })
    expect(states[gang]).toMatchObject({ state: 'failed', reason: 'exit 7' })
    expect(states[again]).toMatchObject({ state: 'done', attempt: 2 })
    expect(states[limited]).toMatchObject({ state: 'timed-out' })
    expect(states[here]).toMatchObject({ state: 'cancelled' })
    expect(states[there]).toMatchObject({ state: 'cancelled', attempt: 1, reason: 'cancelled in Slurm' })
    expect(states[never]).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('Slurm refused it: Requested node configuration is not available. '),
    })
    expect(states[fallen]).toMatchObject({ state: 'lost', reason: 'a node failed while it ran: n3' })
    expect((await slurm.run('squeue -h')).trim()).toBe('')
  })

  it('knows how jobs ended that Slurm has forgotten', async () => {
    const failed = await submit('--', 'exit 4')
    const done = await submit('--', 'true')
    const cut = await submit('--', 'sleep 300')
    const late = await submit('--limit', '600', '--', 'sleep 300')
    const ids = [failed, done, cut, late]
    queue.work()
    // A driver that is stopped before it has its number may not have handed it over.
    const handedOver = async (id: string) =>
      (await stateOf(id)) !== 'queued' && /^\d+$/.test(await slurmId(id).catch(() => ''))
    await Promise.all(ids.map((id) => waitUntil(() => handedOver(id), `Slurm to have job ${id}`, 60_000)))
    await queue.stop()
    const ends = async () =>
      (await slurm.run(`ls ${PLACE}/*-${failed}-1-0-*/end ${PLACE}/*-${done}-1-0-*/end 2>/dev/null || :`)).trim()
    await waitUntil(async () => (await ends()).split('\n').length === 2, 'both to end', 60_000)
    // Slurm takes no other end of a job that has not begun.
    const isOn = async () => (await slurm.run(`squeue -h -t running -j ${await slurmId(late)}`)) !== ''
    await waitUntil(isOn, 'the last to run', 60_000)
    await slurm.run(`scancel ${await slurmId(cut)}; scontrol update jobid=${await slurmId(late)} EndTime=now`)
    await waitUntil(async () => (await slurm.run('squeue -h -t all')).trim() === '', 'all to be forgotten', 120_000)
    await queue.work().ended
    expect(await stateOf(done)).toBe('done')
    // No poll saw them run.
    for (const { started, ended } of [await queue.find(done), await queue.find(failed)])
      expect(Date.parse(ended ?? '') - Date.parse(started ?? '')).toBeLessThan(10_000)
    expect(await queue.find(failed)).toMatchObject({ state: 'failed', reason: 'exit 4' })
    expect(await queue.find(cut)).toMatchObject({ state: 'cancelled', reason: 'cancelled in Slurm' })
    expect(await queue.find(late)).toMatchObject({ state: 'timed-out', reason: 'stopped by Slurm at its time limit' })
  })

  it('says why a job waits, and when it is expected to start', async () => {
    const holder = await submit('--cpu', '8', '--limit', '600', '--', 'sleep 300')
    const work = queue.work()
    await reaches(holder, 'running')
    const next = await submit('--cpu', '8', '--limit', '600', '--', 'true')
    const trial = await queue.job(
      'submit',
      '--engine',
      'slurm',
      '--dry-run',
      '--cpu',
      '8',
      '--limit',
      '60',
      '--',
      'echo $RANK',
    )
    expect(trial.stdout).toContain('#SBATCH --cpus-per-task=8\n')
    expect(trial.stdout).toContain("exec /bin/sh -c 'echo $RANK'")
    expect(trial.stdout).toMatch(/^Slurm would start it at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d on n3$/m)
    const refused = await queue.job('submit', '--engine', 'slurm', '--dry-run', '--gpu', '3', '--', 'true')
    expect([refused.code, refused.stdout.trim().split('\n').at(-1)]).toEqual([
      1,
      'Slurm refused it: Requested node configuration is not available. To see what its nodes have, run: muster pack --engine slurm',
    ])
    const strict = (...args: readonly string[]) => queue.job('submit', '--engine', 'slurm', '--strict', ...args)
    for (const much of [
      ['--gpu', '3'],
      ['--cpu', '200'],
    ])
      expect(await strict(...much, '--', 'true')).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('Slurm refused it: '),
      })
    const wide = await submit('--bundles', '9', '--strategy', 'STRICT_SPREAD', '--', 'true')
    const large = await submit('--cpu', '9', '--', 'true')
    await queue.says(next, /waiting for other jobs to free what it asks for \(Resources\)/)
    await queue.says(next, /expected: +(in \d+ (s|min)|at \d\d:\d\d)$/m)
    await queue.says(wide, /more nodes than the partition has or allows: it never starts \(PartitionNodeLimit\)/)
    await queue.says(large, /failed/)
    expect((await queue.find(large)).reason).toContain('Slurm refused it: ')
    const last = await submit('--cpu', '8', '--limit', '600', '--', 'true')
    await queue.says(last, /jobs of higher priority go first \(Priority\)/)

    const failed = (await slurm.run('sbatch --parsable --mem=1 -o /dev/null --wrap false')).trim()
    await waitUntil(async () => (await slurm.run(`squeue -h -t F -j ${failed}`)) !== '', 'another job to fail', 60_000)
    await slurm.run(`scontrol update jobid=${await slurmId(last)} dependency=afterok:${failed}`)
    await queue.says(last, /a job that it depends on failed: it never starts \(DependencyNeverSatisfied\)/)

    await slurm.run('scontrol update nodename=n3 state=drain reason=test')
    await queue.says(next, /nodes that it needs are down, drained or reserved/)
    await slurm.run('scontrol update nodename=n3 state=resume')
    for (const id of [holder, next, wide, last]) await queue.job('cancel', id)
    await work.ended
  })

  it('waits while the controller is away, and running jobs continue', async () => {
    const running = await submit('--', 'until test -e /root/go; do sleep 0.2; done; exit 9')
    const work = queue.work()
    await reaches(running, 'running')
    await slurm.stopController()
    const next = await submit('--after', running, '--', 'true')
    const held = await submit('--hold', '--', 'true')
    await waitUntil(
      async () => (await queue.show(running)).includes('its controller does not answer'),
      'it to say so',
      60_000,
    )
    await slurm.run('touch /root/go; slurmctld')
    await work.ended
    expect(await queue.find(running)).toMatchObject({ state: 'failed', reason: 'exit 9' })
    expect(await queue.find(next)).toMatchObject({ state: 'cancelled' })
    expect(await stateOf(held)).toBe('held')
    await queue.job('release', held)
    await queue.work().ended
    expect(await stateOf(held)).toBe('done')
  })

  it('runs a study, and reads its metric from the output of its jobs', async () => {
    await queue.study(
      ...['create', 'grid', '--engine', 'slurm', '--method', 'grid', '--param', 'x=1,2,3', '--metric', 'loss'],
      ...['--', 'echo loss=$(( (x - 2) * (x - 2) ))'],
    )
    await queue.work().ended
    const results = await queue.study('results', 'grid', '--json')
    const found = results
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === 'trial')
      .map(({ parameters, metrics }) => `${parameters.x} ${metrics.loss}`)
    expect(found.toSorted()).toEqual(['1 1', '2 0', '3 1'])
  })
})
