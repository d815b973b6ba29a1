/** How long a place is empty: from the end of a trial to the start of the next one, over SSH. */
import type { SamplerPlace, StudySpec } from '../../../src/scheduler/study/study.ts'
import type { Place } from '../jobs/place.ts'
import { SPEC } from '../jobs/store.ts'
import { formatPair, median, type Row } from '../support/statistics.ts'
import { linesOfHomes, removeFromHomes } from './home-files.ts'

const TRIALS = 60
const GOAL_MS = 200
/** Both moments are of this machine's clock, which the hosts share. */
const COMMAND = 'echo start $(date +%s%N) >>times; echo acc=$x; sleep 0.15; echo end $(date +%s%N) >>times'

/** `sampler`: where Optuna runs. */
export async function benchGaps(place: Place, sampler: SamplerPlace): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const method of ['random', 'tpe'])
    for (const atOnce of [1, 4, 20]) {
      const own = method === 'tpe' ? { sampler } : {}
      const gapsMs = await measureGaps(place, { method, atOnce, ...own })
      rows.push({
        what: `${method}, ${atOnce} at once: from the end of a trial of 0.15 s to the start of the one in its place, ms (p50 / p99 of ${gapsMs.length})`,
        ours: formatPair(gapsMs),
        peer: '',
        goal: `p50 ≤ ${GOAL_MS}`,
        isReached: median(gapsMs) <= GOAL_MS,
      })
    }
  return rows
}

async function measureGaps(
  place: Place,
  { method, atOnce, ...rest }: Pick<StudySpec, 'method' | 'sampler'> & { readonly atOnce: number },
): Promise<readonly number[]> {
  using store = place.openStore()
  removeFromHomes(place, 'times')
  const metrics = [{ name: 'acc' }]
  const spec = { parameters: ['x=float:0:1'], method, seed: 1, metrics, repeat: 1, failures: TRIALS, atOnce, ...rest }
  const job = { ...SPEC, command: COMMAND, metrics }
  const id = store.studies.create(
    { name: `${method}-${atOnce}`, user: 'bench', priority: 0, spec, trials: TRIALS, job },
    Date.now(),
  )
  await place.run('work', '--until-empty', '--json')
  const done = store.studies.counts(id).get('done')
  if (done !== TRIALS) throw new Error(`${done} of ${TRIALS} trials were done: ${store.studies.get(id)?.state.trouble}`)
  const moments = linesOfHomes(place, 'times').map((line) => line.split(' '))
  const of = (word: string) =>
    moments.flatMap(([kind, at]) => (kind === word ? [Number(at) / 1e6] : [])).toSorted((one, other) => one - other)
  const ends = of('end')
  // Places are taken in the order in which they become free.
  return of('start')
    .slice(atOnce)
    .map((start, index) => start - (ends[index] ?? Number.NaN))
}
