/** What the scheduler and the verbs do with a study of 10,000 trials in the queue's file. */
import { join } from 'node:path'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { StudyPass } from '../../../src/scheduler/jobs/study-pass.ts'
import { rankTrials } from '../../../src/scheduler/study/front.ts'
import { SPEC } from '../jobs/store.ts'
import type { Row } from '../support/statistics.ts'
import { row } from './numbers.ts'

const TRIALS = 10_000
const OPEN = 20
const METRICS = [{ name: 'acc', isMost: true }]
const SPACE = { parameters: ['x=float:0:1', 'size=int:1:1000', 'opt=adam,sgd'], seed: 1, repeat: 1, failures: TRIALS }

export function benchStudyQueue(directory: string): readonly Row[] {
  using store = new JobStore(join(directory, 'studies.db'))
  const nowMs = Date.now()
  const job = { ...SPEC, metrics: METRICS }
  const spec = { ...SPACE, method: 'random', metrics: METRICS, atOnce: OPEN }
  const id = store.together(() => store.studies.create({ name: 'wf', user: 'bench', priority: 0, spec, job }, nowMs))
  using pass = newPass(store)
  const run = () => store.together(() => pass.run(nowMs))
  const end = (count: number) => {
    const queued = store.queued(count)
    store.applyAll(
      queued.map((one) => ({ id: one.id, event: { kind: 'stop', reason: 'cancelled' } })),
      nowMs,
    )
  }
  // With ends of their own: a model of the hosts would take most of the time.
  while (store.studies.nextNumber(id) < TRIALS + OPEN) {
    run()
    store.together(() => {
      for (const { trial } of store.studies.open(id))
        store.studies.settle(id, trial, { kind: 'done', values: { acc: trial.point.x ?? '' }, endedMs: nowMs })
      end(OPEN)
    })
  }
  run()
  const last = store.studies.last(id)
  return [
    row('first pass of a scheduler, which adds a trial', 50, () => {
      end(1)
      using first = newPass(store)
      store.together(() => first.run(nowMs))
    }),
    row(`pass in which nothing has changed, ${OPEN} trials running`, 5, run),
    row('pass that settles a trial and adds one', 20, () => {
      end(1)
      run()
    }),
    row('`study list`: studies and their counts', 50, () =>
      store.studies.list(200).map((one) => store.studies.counts(one.id)),
    ),
    row('`study results`: all trials, best first', 50, () => rankTrials(store.studies.trials(id), METRICS)),
    row('means of all, for a suggestion of a point that runs', 20, () => store.studies.means(id, METRICS)),
    row('a point that was tried', 5, () => last && store.studies.ofPoint(id, last.point)),
  ]
}

const newPass = (store: JobStore): StudyPass =>
  new StudyPass({ store, signal: new AbortController().signal, onAnswer() {} })
