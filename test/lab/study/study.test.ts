/** Studies on hosts behind real OpenSSH: no point twice and none lost while the scheduler is killed, and trials that are stopped early. */
import { appendFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../cluster/python-environment.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'flock', 'python environments')

const METHODS = ['random', 'brute', 'grid', 'quasi-random', 'tpe']
/** The environment may have to be installed. */
const BUILD_MS = 1_200_000
const KILLS = Number(process.env.MUSTER_ROUNDS ?? 30)
/** A scheduler is killed at most this long after its start, which itself takes about a second; Optuna takes longer. */
const LONGEST_MS = 2_000
const LONGEST_OPTUNA_MS = 5_000
const SIZES = Array.from({ length: 20 }, (_, index) => String(10 + index * 10))

type TrialLine = {
  readonly trial: number
  readonly job: number
  readonly state: string
  readonly parameters: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<string, number>>
  readonly reason?: string
}

describe.skipIf(!canRun)('studies', { timeout: 600_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  const onHosts = async (command: string) =>
    await Promise.all(lab.hosts.map(async (host) => (await host.exec(command)).stdout))
  const results = async (name: string): Promise<readonly TrialLine[]> =>
    (await queue.study('results', name, '--json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TrialLine)

  beforeAll(async () => {
    lab = await startLab({ count: 4, mounts: { [ENVIRONMENT_PLACE]: await pythonEnvironment('optuna') } })
    const file = hostsFileOf(lab, 'studies', 'cpu: 5, gpu: 0, memory: 1GiB')
    appendFileSync(file, `environment:\n  venv: { path: ${ENVIRONMENT} }\n`)
    queue = labQueue(lab, file)
  }, BUILD_MS)
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  it(`tries 20 points once, by each method, with 20 at once on 4 hosts and a scheduler that is killed ${KILLS} times`, async () => {
    const random = seededRandom()
    let kills = 0
    for (let round = 0; round < METHODS.length || kills < KILLS; round++) {
      const method = METHODS[round % METHODS.length] as string
      const name = `${method}-${round}`
      // It takes 0 to 3 s.
      const command = 'echo $size >>ran.$MUSTER_STUDY; echo acc=$size; sleep $((size / 10 * 7 % 4))'
      const options = ['--param', 'size=int:10:200:10', '--metric', 'max:acc', '--at-once', '20', '--method', method]
      const sampler = method === 'tpe' ? ['--sampler-on', 'm1'] : []
      await queue.study('create', name, ...options, ...sampler, '--', command)
      const longestMs = method === 'tpe' ? LONGEST_OPTUNA_MS : LONGEST_MS
      // What is left when it is this one's turn is done in peace.
      for (const most = kills + Math.ceil(KILLS / METHODS.length); kills < most; kills++) {
        const { child, ended } = queue.work()
        await Promise.race([delay(random() * longestMs), ended])
        if (child.exitCode !== null) break
        child.kill('SIGKILL')
        await ended
      }
      expect(await queue.work().ended).toEqual([0, null])
      const trials = await results(name)
      expect(trials.map(({ state }) => state)).toEqual(SIZES.map(() => 'done'))
      expect(trials.map(({ parameters }) => parameters.size).toSorted(numeric)).toEqual(SIZES)
      expect(trials.map(({ metrics }) => String(metrics.acc))).toEqual(trials.map(({ parameters }) => parameters.size))
      const ran = (await onHosts(`cat ran.${name}`)).join('').trim().split('\n')
      expect(ran.toSorted(numeric)).toEqual(SIZES)
      const { stdout } = await queue.job('list', '--json', '--limit', '1000')
      expect(stdout.split('\n').filter((line) => line.includes(`"name":"${name}"`))).toHaveLength(20)
    }
  })

  it('stops trials early that are worse than the median of the others, and gives back what they had', async () => {
    // Seven good ones end after a step; the bad one would never end.
    const command =
      'step=1; until echo step=$step loss=$size; [ $size -lt 8 ]; do step=$((step + 1)); sleep 0.4321; done'
    const options = ['--param', 'size=int:1:8', '--metric', 'min:loss', '--method', 'grid', '--at-once', '7']
    await queue.study('create', 'early', ...options, '--prune', 'median', '--', command)
    expect(await queue.work().ended).toEqual([0, null])
    const trials = await results('early')
    expect(trials.filter(({ state }) => state === 'done')).toHaveLength(7)
    expect(trials.filter(({ state }) => state === 'pruned')).toMatchObject([
      {
        parameters: { size: '8' },
        reason: expect.stringMatching(
          /^at step \d+ its loss 8 is worse than the median [\d.]+ of [5-7] trials( at step 1)?$/,
        ),
      },
    ])
    expect(
      lab.hosts.flatMap((host) => host.processes().filter(({ command: line }) => line === 'sleep 0.4321')),
    ).toEqual([])
    const next = await queue.submit('--bundles', '4', '--strategy', 'STRICT_SPREAD', '--cpu', '5', '--', 'true')
    expect(await queue.work().ended).toEqual([0, null])
    expect((await queue.find(next)).state).toBe('done')
  })
})

const numeric = (one: string | undefined, other: string | undefined): number => Number(one) - Number(other)
