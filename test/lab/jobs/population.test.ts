/** `muster study create --method pbt` on two real hosts: bad members end with the good one's checkpoint, also when schedulers are killed. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'flock')

const STEPS = 60
/**
 * Trains so that what was reached is in the checkpoint alone: `line` has the trials that trained it. Best at lr = 0.5. The weights
 * take a while to copy.
 */
const PROGRAM_TEXT = `d=$MUSTER_CHECKPOINT step=0 acc=0 line=
[ ! -f $d/state ] || read -r step acc line <$d/state
line="$line $MUSTER_TRIAL"
save() { echo "$step $acc $line" >$d/state.new && mv $d/state.new $d/state; }
[ -f $d/weights ] || head -c 30000000 /dev/urandom >$d/weights
trap 'save; exit 0' TERM
while [ $step -lt ${STEPS} ]; do
  step=$((step + 1)); acc=$(awk "BEGIN { x = $lr - 0.5; print $acc + 1 - 4 * x * x }")
  save; echo "step=$step acc=$acc"; sleep 0.4
done`

type Row = {
  readonly trial: number
  readonly state: string
  readonly member: number
  readonly parent?: number
  readonly parentStep?: number
  readonly host?: string
  readonly reason?: string
  readonly parameters: Readonly<Record<string, string>>
}

describe.skipIf(!canRun)('population-based training', { timeout: 240_000 }, () => {
  let lab: Lab
  let hostsFile: string
  let queue: LabQueue

  const study = async (...args: readonly string[]) => {
    const result = await lab.run([...PROGRAM, '--hosts', hostsFile, 'study', ...args], { environment: lab.environment })
    if (result.code !== 0) throw new Error(result.stderr)
    return result.stdout
  }
  const rows = async (name: string): Promise<readonly Row[]> =>
    (await study('results', name, '--limit', '1000', '--json'))
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Row)
      .toSorted((one, other) => one.trial - other.trial)
  const onHosts = async (command: string) =>
    (await Promise.all(lab.hosts.map(async (host) => (await host.exec(command)).stdout))).join('')

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    hostsFile = hostsFileOf(lab, 'lab', 'cpu: 2, gpu: 0, memory: 1GiB')
    queue = labQueue(lab, hostsFile)
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  let created = 0
  /** Returns its number. */
  const create = async (name: string, seed: string) => {
    await study(
      ...[
        'create',
        name,
        '--method',
        'pbt',
        '--population',
        '4',
        '--time-attr',
        'step',
        '--metric',
        'max:acc',
        '--seed',
        seed,
      ],
      ...['--perturbation-interval', '4', '--quantile-fraction', '0.25', '--resample-probability', '0.25'],
      ...['--mutate', 'lr=uniform:0:1', '--', PROGRAM_TEXT],
    )
    created += 1
    return created
  }

  /** Each checkpoint was trained by the trials from which its last one descends, and by no others. */
  const check = async (name: string, id: number) => {
    const trials = await rows(name)
    const line = (number: number): readonly number[] => {
      const parent = trials[number]?.parent
      return parent === undefined ? [number] : [...line(parent), number]
    }
    const states = (await onHosts(`cat .local/state/muster/studies/*-${id}-*/member-*/state`)).trim().split('\n')
    expect(states).toHaveLength(4)
    const found = states.map((text) => text.split(/ +/)).map(([step, , ...own]) => ({ step, own: own.map(Number) }))
    for (const { step, own } of found) {
      expect(step).toBe(String(STEPS))
      expect(own).toEqual(line(own.at(-1) ?? -1))
    }
    expect(trials.length).toBeGreaterThan(4)
    for (const { trial, parent, member, host, parentStep = 0 } of trials.filter((row) => row.parent !== undefined)) {
      const before = trials.findLast((row) => row.member === member && row.trial < trial)
      expect(before).toMatchObject({
        state: 'pruned',
        host,
        reason: expect.stringMatching(/^replaced by member \d's checkpoint at step \d+: [\d.]+ against [\d.]+$/),
      })
      expect(parentStep).toBeGreaterThanOrEqual(4)
      expect(parent).toBeLessThan(trial)
    }
    expect(new Set(trials.map(({ parameters }) => JSON.stringify(parameters))).size).toBe(trials.length)
    // All of the last ones descend from one of the better first ones.
    const firsts = new Set(found.map(({ own }) => own[0] ?? -1))
    expect(firsts.size).toBeLessThan(4)
    expect(await onHosts(`ls -A .local/state/muster/studies/*-${id}-* | grep -e copy -e old`)).toBe('')
    return trials
  }

  it('ends with checkpoints of good members in the bad ones', async () => {
    const id = await create('wf', '3')
    const { ended } = queue.work()
    expect(await ended).toEqual([0, null])
    const trials = await check('wf', id)
    expect(trials.filter(({ state }) => state === 'done')).toHaveLength(4)
    const shown = await study('show', 'wf')
    expect(shown).toMatch(/descent: +the best: trial \d+/)
    expect(shown).toMatch(/member 0 {2}trial 0 .*from the start .*lr=/)
  })

  it('loses nothing when schedulers are killed while they copy, stop and move', async () => {
    const id = await create('killed', '4')
    let pruned = 0
    let kills = 0
    for (const moment of ['copy', 'pruned', 'copy', 'pruned', 'copy']) {
      const { child, ended } = queue.work()
      await waitUntil(async () => {
        if (child.exitCode !== null) return true
        if (moment === 'copy')
          return (await onHosts(`ls -A .local/state/muster/studies/*-${id}-* 2>/dev/null | grep copy`)) !== ''
        return (await rows('killed')).filter(({ state }) => state === 'pruned').length > pruned
      }, moment)
      // On a fast machine the study may be over before the last moment.
      if (child.exitCode === 0) break
      expect(child.exitCode).toBeNull()
      child.kill('SIGKILL')
      kills += 1
      await ended
      pruned = (await rows('killed')).filter(({ state }) => state === 'pruned').length
    }
    expect(kills).toBeGreaterThanOrEqual(3)
    const { ended } = queue.work()
    expect(await ended).toEqual([0, null])
    await check('killed', id)
  })
})
