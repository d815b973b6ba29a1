/** A queue that keeps a million ended jobs, beside an empty one: what each costs, and what it takes to forget half of them. */
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { PlanPass } from '../../../src/scheduler/jobs/plan-jobs.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { formatNumber, formatPair, type Row } from '../support/statistics.ts'
import { SPEC, submission } from './store.ts'

const ENDED = 1_000_000
const AT_ONCE = 50_000
const FORGOTTEN_AT_ONCE = 2_000
const ROUNDS = 50
const WAITING = 100_000
const HOSTS = Array.from({ length: 64 }, (_, index) => ({
  name: `m${index}`,
  cpuMilli: 16_000,
  memoryBytes: 2 ** 36,
  gpus: Array.from({ length: 8 }, () => ''),
}))

export function benchEnded(directory: string, log: (line: string) => void): readonly Row[] {
  const [full, empty] = [join(directory, 'ended.db'), join(directory, 'empty.db')]
  fill(full)
  log(`${ENDED} ended jobs: ${formatNumber(statSync(full).size / 1e6)} MB`)
  const [ours, peer] = [measure(full), measure(empty)]
  using store = new JobStore(full)
  const forget = times(ROUNDS, () => store.forgetEnded(Date.now() * 2, FORGOTTEN_AT_ONCE))
  for (const path of [full, empty]) rmSync(path)
  return [
    ...ours.map(([what, values], index): Row => {
      const beside = peer[index]?.[1] ?? []
      return {
        what: `with ${ENDED.toLocaleString('en')} ended jobs (peer: without): ${what}, ms (p50 / p99)`,
        ours: formatPair(values),
        peer: formatPair(beside),
        goal: '50',
        isReached: (values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.5)] ?? 0) < 50,
      }
    }),
    {
      what: `delete the records of ${FORGOTTEN_AT_ONCE.toLocaleString('en')} ended jobs, ms (p50 / p99)`,
      ours: formatPair(forget),
      peer: '',
    },
  ]
}

function fill(path: string): void {
  using store = new JobStore(path)
  const atMs = Date.now() - ENDED
  for (let count = 0; count < ENDED; count += AT_ONCE)
    store.together(() => {
      const ids = store.submit(submission(SPEC, AT_ONCE), atMs)
      const times = { startedMs: atMs, endedMs: atMs + 1000 }
      const bundles = [{ kind: 'ended', end: { kind: 'exit', code: 0 } }]
      const state = JSON.stringify({ kind: 'done', places: [{ host: 'm1', devices: [] }], bundles, ...times })
      store.file.run(
        "UPDATE jobs SET kind = 'done', state = ?, ended_ms = submitted_ms + id, ran_ms = 1000 WHERE id BETWEEN ? AND ?",
        state,
        ids[0] ?? 0,
        ids.at(-1) ?? 0,
      )
    })
}

/** All of it beside an array that waits, on hosts that are full. */
function measure(path: string): readonly (readonly [string, readonly number[]])[] {
  using store = new JobStore(path)
  using other = new JobStore(path)
  const pass = new PlanPass(store)
  const nowMs = Date.now()
  const plan = () => pass.plan({ nowMs, hosts: HOSTS, engines: [], isPreempting: false, isGathering: false })
  store.submit(submission(SPEC, WAITING), nowMs)
  store.applyAll(plan().events, nowMs)
  return [
    ['open', times(ROUNDS, () => new JobStore(path)[Symbol.dispose]())],
    ['submit one', times(ROUNDS, () => other.submit(submission(SPEC), nowMs))],
    ['list 50', times(ROUNDS, () => store.list([], 50))],
    ['count by state', times(ROUNDS, () => store.counts())],
    ['a pass of the scheduler over full hosts, after another program wrote', passes(other, plan)],
  ]
}

function passes(other: JobStore, plan: () => unknown): readonly number[] {
  return Array.from({ length: ROUNDS }, () => {
    other.submit(submission(SPEC), Date.now())
    return times(1, plan)[0] ?? 0
  })
}

function times(count: number, work: () => unknown): readonly number[] {
  return Array.from({ length: count }, () => {
    const sinceMs = performance.now()
    work()
    return performance.now() - sinceMs
  })
}
