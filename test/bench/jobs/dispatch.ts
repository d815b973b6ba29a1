/** How many short jobs begin a second, and how long one waits on an idle queue: nine hosts over SSH, and one host beside the peers. */
import type { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { formatNumber, formatPair, type Row } from '../support/statistics.ts'
import { type Figures, measurePeers, PUBLISHED, SLOTS } from './peers.ts'
import type { Place } from './place.ts'
import { SHORT_JOBS, startWaits } from './short-jobs.ts'
import { SPEC, submission } from './store.ts'

const JOBS = 2000
const WAIT = 'from an acknowledged submission to the first action of the job on an idle queue, ms'

export type DispatchOptions = {
  readonly spread: Place
  /** One host with as many cores as peers have slots. */
  readonly alone: Place
  readonly directory: string
  log(line: string): void
}

export async function benchDispatch({ spread, alone, directory, log }: DispatchOptions): Promise<readonly Row[]> {
  const ours = await measureOurs(spread, JOBS)
  log(`muster over SSH ${JSON.stringify(ours)}`)
  const oursAlone = await measureOurs(alone, SHORT_JOBS)
  log(`muster on one host ${JSON.stringify(oursAlone)}`)
  const peers = await measurePeers(directory, log)
  const beside = (published: string, text: (figures: Figures) => string) =>
    [...peers.map(([name, figures]) => `${name} ${text(figures)}`), published].join('; ')
  return [
    {
      what: `jobs of \`true\` per second, from the first start to the last end: ${JOBS} on nine hosts over SSH`,
      ours: formatNumber(ours.perSecond),
      peer: '',
      goal: '200',
      isReached: ours.perSecond >= 200,
    },
    {
      what: `the same with ${SHORT_JOBS} on this machine alone, in ${SLOTS} slots (peers: including the time to submit)`,
      ours: formatNumber(oursAlone.perSecond),
      peer: beside(PUBLISHED.perSecond, ({ perSecond }) => formatNumber(perSecond)),
    },
    { what: `${WAIT} (p50 / p99): nine hosts over SSH`, ours: formatPair(ours.waitsMs), peer: '' },
    {
      what: 'the same on this machine alone',
      ours: formatPair(oursAlone.waitsMs),
      peer: beside(PUBLISHED.waits, ({ waitsMs }) => formatPair(waitsMs)),
    },
  ]
}

export async function benchWaits({
  spread,
  alone,
}: Pick<DispatchOptions, 'spread' | 'alone'>): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const [where, place] of [
    ['nine hosts over SSH', spread],
    ['this machine alone', alone],
  ] as const) {
    using store = place.openStore()
    const ours = (await measureWaits(place, store)).map((ms) => ms.toFixed(1)).sort((one, other) => +one - +other)
    rows.push({ what: `${WAIT}: ${where}; each`, ours: ours.join(' '), peer: '' })
  }
  return rows
}

async function measureOurs(place: Place, count: number): Promise<Figures> {
  using store = place.openStore()
  store.submit(submission(SPEC, count), Date.now())
  await place.run('work', '--until-empty', '--json')
  const spans = store
    .list(['done'], count)
    .flatMap(({ state }) =>
      state.kind === 'done' && state.placedMs !== undefined ? [[state.placedMs, state.endedMs] as const] : [],
    )
  if (spans.length !== count) throw new Error(`${spans.length} of ${count} jobs were done`)
  const seconds = (Math.max(...spans.map(([, end]) => end)) - Math.min(...spans.map(([start]) => start))) / 1000
  return { perSecond: count / seconds, waitsMs: await measureWaits(place, store) }
}

/** From each acknowledged submission to the job's first action, on an idle queue. */
async function measureWaits(place: Place, store: JobStore): Promise<readonly number[]> {
  const driving = place.spawn('work')
  driving.child.stdout.resume()
  try {
    return await startWaits('~', place.homes, async (command) => {
      store.submit(submission({ ...SPEC, command }), Date.now())
    })
  } finally {
    driving.child.kill('SIGTERM')
    await driving.ended
  }
}
