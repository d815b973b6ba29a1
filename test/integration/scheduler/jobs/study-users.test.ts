/** What users do to the jobs of a study, at any moment: its budget holds, every trial is settled, and no answer changes by itself. */
import { expect, it } from 'vitest'
import { isActive, isFinal, isInLine, type Job, type JobEvent } from '../../../../src/scheduler/jobs/job.ts'
import { continueStudy, retryJobs, stopStudy } from '../../../../src/scheduler/jobs/study-change.ts'
import { QueueWorld, worldSpec } from '../../../support/queue-world.ts'
import { randomRuns } from '../../../support/random-runs.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const HOSTS = ['m1', 'm2', 'm3', 'm4'].map((name) => ({
  ...{ name, cpuMilli: 3000, memoryBytes: 2 ** 34, gpus: [], labels: {} },
}))
const METRICS = [{ name: 'acc', isMost: true }, { name: 'step' }]
let random: () => number
const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T

const ofJob: readonly JobEvent[] = [
  { kind: 'hold' },
  { kind: 'release' },
  { kind: 'retry' },
  { kind: 'requeue' },
  { kind: 'stop', reason: 'cancelled' },
]

/** Returns whether it may have begun trials anew. */
function disturb(world: QueueWorld, id: number, job: Job): boolean {
  const { store, nowMs } = world
  const study = store.studies.get(id)
  if (study === undefined) return false
  switch (pick(['job', 'job', 'job', 'edit', 'clean', 'stop', 'more', 'host', 'killed'])) {
    case 'job': {
      const event = pick(ofJob)
      if (event.kind === 'retry') retryJobs(store, [job.id], nowMs)
      // A user who lets it start before its turn has more of them run at once.
      else if (event.kind !== 'release' || !isInLine(job)) store.applyAll([{ id: job.id, event }], nowMs)
      return event.kind === 'retry'
    }
    case 'edit':
      store.editAll([job.id], ({ spec }) => ({ spec: { ...spec, name: 'edited' }, priority: 3 }))
      return false
    case 'clean':
      store.forgetEnded(nowMs + 1, 100)
      return false
    case 'stop':
      stopStudy(store, study, { now: random() < 0.5 }, nowMs)
      return false
    case 'more':
      try {
        continueStudy(store, study, pick([undefined, 3]), nowMs)
      } catch (error) {
        expect(error).toMatchObject({ code: 'usage' })
      }
      return true
    case 'host':
      if (world.down.size > 0) world.down.clear()
      else world.down.add('m1')
      return false
    default:
      expect(() =>
        store.together(() => {
          world.tick()
          throw new Error('killed')
        }),
      ).toThrow('killed')
      world.restart()
      return false
  }
}

function printAll({ store }: QueueWorld, isLast: boolean): void {
  for (const { id, attempt, state } of store.list([], 1000)) {
    const values = { acc: pick(['1', 'inf', 'nan', '0.5', '-3']), step: pick(['1', '2', '4', '9', 'inf', 'nan', '-1']) }
    if (isFinal(state)) {
      if (isLast || random() < 0.6) store.results.note({ job: id, attempt, values, isFinal: true })
    } else if (isActive(state) && random() < 0.3) store.results.note({ job: id, attempt, values, isFinal: false })
  }
}

it.each([
  'grid',
  'random',
  'brute',
  'quasi-random',
])('a study by %s comes to its end whatever its user does', (method) => {
  random = seededRandom()
  for (let run = 0; run < randomRuns(4); run++) {
    using world = new QueueWorld(HOSTS, true)
    const { store } = world
    const [repeat, atOnce, trials] = [pick([1, 3]), pick([undefined, 1, 6]), pick([undefined, 7, 15])]
    const prune = { rule: pick(['median', 'halving'] as const), stepMetric: 'step', fromStep: 1, fromTrials: 2 }
    const id = store.studies.create(
      {
        ...{ name: 'wf', user: 'ann', priority: 0, ...(trials !== undefined && { trials }) },
        spec: {
          ...{ parameters: ['size=int:10:200:10'], method, seed: run, metrics: METRICS.slice(0, 1), repeat, prune },
          ...{ failures: pick([5, 1000]), ...(atOnce !== undefined && { atOnce }) },
        },
        job: worldSpec({ runS: 3, metrics: METRICS, isPreemptible: true }),
      },
      world.nowMs,
    )
    let ends = new Map<number, unknown>()
    for (let tick = 0; tick < 260; tick++) {
      world.nowMs += 1000
      const jobs = tick < 80 ? store.list([], 1000) : []
      const isAnew = jobs.length > 0 && random() < 0.4 && disturb(world, id, pick(jobs))
      if (tick === 80) {
        world.down.clear()
        const event: JobEvent = { kind: 'release' }
        store.applyAll(
          store.list(['held'], 1000).flatMap((job) => (isInLine(job) ? [] : [{ id: job.id, event }])),
          world.nowMs,
        )
      }
      world.tick()
      world.act()
      printAll(world, tick > 250)
      const now = store.studies.trials(id)
      if (!isAnew)
        for (const [number, end] of ends) {
          expect(now.find((each) => each.number === number)?.end).toEqual(end)
        }
      ends = new Map(now.flatMap(({ number, end }) => (end === undefined ? [] : [[number, end]])))
      const most = store.studies.get(id)?.state.trials ?? Number.POSITIVE_INFINITY
      expect(now.filter(({ end }) => end?.reason === 'its job was deleted')).toEqual([])
      expect(now.length).toBeLessThanOrEqual(Math.min(most, 20 * repeat))
      const unfinished = store.list([], 1000).filter((job) => !isFinal(job.state) && !isInLine(job))
      expect(unfinished.length).toBeLessThanOrEqual(atOnce ?? 1000)
    }
    expect(store.studies.open(id)).toEqual([])
    expect(store.studies.get(id)?.state.kind).not.toBe('running')
  }
})
