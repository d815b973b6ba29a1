/** The queue's file alone: one submission after the other, many lines through the verb, and what is done beside 100,000 that wait. */
import { join } from 'node:path'
import type { JobSpec } from '../../../src/scheduler/jobs/job.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../support/apply-event.ts'
import { testSpec } from '../../support/test-job.ts'
import { formatNumber, formatPair, median, type Row } from '../support/statistics.ts'
import { diskPerSecond } from './disk.ts'
import type { Place } from './place.ts'

const WAITING = 100_000
const ONE_BY_ONE = 500
const ROUNDS = 7
/** Through the verb, each line after the number of the one before; of each submitter. */
const ANSWERED = 300
const SUBMITTERS = 4
const LINES = 20_000
const LOOKS = 200

export const SPEC = testSpec({ name: 'true', command: 'true' })
export const submission = (spec: JobSpec, count = 1) => ({
  spec,
  user: 'bench',
  priority: 0,
  isHeld: false,
  after: [],
  variants: Array.from({ length: count }, () => ({})),
})

export async function benchStore(directory: string, place: Place): Promise<readonly Row[]> {
  using store = new JobStore(join(directory, 'store.db'))
  const nowMs = Date.now()
  const rounds = Array.from({ length: ROUNDS }, () => ({
    ...diskPerSecond(directory, ONE_BY_ONE),
    ours: perSecond(ONE_BY_ONE, () => times(ONE_BY_ONE, () => store.submit(submission(SPEC), nowMs))),
  }))
  const of = (key: 'ours' | 'inPlace' | 'growing') => median(rounds.map((round) => round[key]))
  const single = of('ours')
  const alone = await answeredPerSecond(place, 1)
  const together = await answeredPerSecond(place, SUBMITTERS)
  const array = perSecond(WAITING, () => store.submit(submission(SPEC, WAITING), nowMs))
  const list = times(LOOKS, () => store.list([], 50))
  const submit = times(LOOKS, () => store.submit(submission(SPEC), nowMs))
  const cancel = times(LOOKS, (index) => {
    applyEvent(store, 1000 + index, { kind: 'stop', reason: 'cancelled' }, nowMs)
    store.get(1000 + index)
  })
  const plan = times(20, (index) => {
    applyEvent(store, 5000 + index, { kind: 'hold' }, nowMs)
    applyEvent(store, 5000 + index, { kind: 'release' }, nowMs)
    store.queued(1000)
  })
  const lines = await linesPerSecond(place)
  const isFast = (values: readonly number[]) =>
    values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.99)] as number
  return [
    {
      what: `jobs submitted one after the other, each on disk before the next, per second; peer: the bare disk, writes of 20 KB with fdatasync (medians of ${ROUNDS} times ${ONE_BY_ONE}, taking turns)`,
      ours: formatNumber(single),
      peer: `${formatNumber(of('inPlace'))} in place, ${formatNumber(of('growing'))} growing the file`,
      goal: '2,000',
      isReached: single >= 2000,
    },
    {
      what: `through \`submit --from -\`, each line written after the number of the one before was read, per second: one program, ${SUBMITTERS} programs together`,
      ours: `${formatNumber(alone)}, ${formatNumber(together)}`,
      peer: '',
      goal: '2,000',
      isReached: together >= 2000,
    },
    {
      what: `${LINES.toLocaleString('en')} lines through \`submit --from -\`, each number printed when its job is on disk, per second`,
      ours: formatNumber(lines),
      peer: '',
      goal: '2,000',
      isReached: lines >= 2000,
    },
    {
      what: 'jobs of an array of 100,000, on disk, per second',
      ours: formatNumber(array),
      peer: '',
      goal: '2,000',
      isReached: array >= 2000,
    },
    ...(
      [
        ['list 50', list],
        ['submit one', submit],
        ['cancel one', cancel],
        ['hold, release and read the first 1,000', plan],
      ] as const
    ).map(([what, values]) => ({
      what: `with 100,000 waiting jobs: ${what}, ms (p50 / p99)`,
      ours: formatPair(values),
      peer: '',
      goal: '50',
      isReached: isFast(values) < 50,
    })),
  ]
}

/** From the first number that is printed to the last: the start of the program is not the queue's. */
async function linesPerSecond(place: Place): Promise<number> {
  const { child, ended } = place.spawn('submit', '--from', '-')
  child.stdin.write('true\n')
  let count = 0
  let firstMs = 0
  let lastMs = 0
  child.stdout.on('data', (bytes: Buffer) => {
    lastMs = performance.now()
    if (count === 0) {
      firstMs = lastMs
      child.stdin.end('true\n'.repeat(LINES))
    }
    for (const byte of bytes) if (byte === 10) count++
  })
  const [code] = await ended
  if (code !== 0 || count !== LINES + 1) throw new Error(`submit --from -: exit ${code}, ${count} numbers`)
  return LINES / ((lastMs - firstMs) / 1000)
}

/** From the last one's first number on; several programs: of all of them together. */
async function answeredPerSecond(place: Place, submitters: number): Promise<number> {
  const programs = Array.from({ length: submitters }, () => {
    const { child, ended } = place.spawn('submit', '--from', '-')
    const answer = async () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      child.stdout.once('data', () => resolve())
      child.stdin.write('true\n')
      await Promise.race([promise, ended.then(() => Promise.reject(new Error('submit --from - ended')))])
    }
    return { child, ended, answer }
  })
  await Promise.all(programs.map(({ answer }) => answer()))
  const sinceMs = performance.now()
  await Promise.all(
    programs.map(async ({ answer }) => {
      for (let index = 0; index < ANSWERED; index++) await answer()
    }),
  )
  const seconds = (performance.now() - sinceMs) / 1000
  for (const { child, ended } of programs) {
    child.stdin.end()
    await ended
  }
  return (submitters * ANSWERED) / seconds
}

function times(count: number, work: (index: number) => unknown): readonly number[] {
  return Array.from({ length: count }, (_, index) => {
    const sinceMs = performance.now()
    work(index)
    return performance.now() - sinceMs
  })
}

function perSecond(count: number, work: () => unknown): number {
  const sinceMs = performance.now()
  work()
  return count / ((performance.now() - sinceMs) / 1000)
}
