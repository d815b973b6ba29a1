/** The same study by Ray Tune: which points are tried, how long a place is empty between two trials, and how long all of it takes. */
import type { SamplerPlace } from '../../../src/scheduler/study/study.ts'
import type { LabHost } from '../../lab/cluster/host.ts'
import { ENVIRONMENT } from '../../lab/cluster/python-environment.ts'
import type { Place } from '../jobs/place.ts'
import { SPEC } from '../jobs/store.ts'
import { formatNumber, formatPair, median, type Row } from '../support/statistics.ts'
import { linesOfHomes, removeFromHomes } from './home-files.ts'

/** Where hosts see the programs of this directory. */
export const PROGRAMS_PLACE = '/srv'

const VALUES = 20
const TRIALS = 20
const AT_ONCE = 4
/** All moments are of this machine's clock, which the hosts share. */
const COMMAND = `${ENVIRONMENT}/bin/python ${PROGRAMS_PLACE}/trial.py $x times`

type Ran = {
  readonly repeated: number
  readonly tried: number
  readonly gapsMs: readonly number[]
  /** From the start of the first trial to the end of the last. */
  readonly trialsS: number
  /** With the start of the program, and of Ray on its node. */
  readonly allS: number
}

/** `ray`: the host that is Ray's node. */
export async function benchTune(
  place: Place,
  ray: LabHost,
  sampler: SamplerPlace,
  rounds: number,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const method of ['random', 'tpe'])
    for (const actors of ['new-actors', 'reuse_actors']) {
      const ours: Ran[] = []
      const theirs: Ran[] = []
      for (let seed = 1; seed <= rounds; seed++) {
        theirs.push(await runTune(place, ray, method, actors, seed))
        ours.push(await runOurs(place, `${method}-${actors}-${seed}`, method, seed, sampler))
      }
      rows.push({
        what: `${method}, ${actors}: of ${TRIALS} trials, those that repeat a point; points tried of ${VALUES}; ms from the end of a trial to the start of the next (p50 / p99); s from first start to last end; s in all (medians of ${rounds}; ms of all rounds together)`,
        ours: text(ours),
        peer: text(theirs),
        goal: '0 repeated',
        isReached: ours.every(({ repeated, tried }) => repeated === 0 && tried === VALUES),
      })
    }
  return rows
}

async function runTune(place: Place, ray: LabHost, method: string, actors: string, seed: number): Promise<Ran> {
  return await timed(place, async () => {
    const words = [method, actors, seed, TRIALS, VALUES, AT_ONCE]
    const program = `${ENVIRONMENT}/bin/python -W ignore ${PROGRAMS_PLACE}/tune_peer.py ${words.join(' ')}`
    const { code, stderr } = await ray.exec(
      `rm -rf results && PYTHONDONTWRITEBYTECODE=1 RAY_USAGE_STATS_ENABLED=0 ${program}`,
    )
    if (code !== 0) throw new Error(`tune_peer.py: exit ${code}: ${stderr.slice(-2000)}`)
  })
}

async function runOurs(place: Place, name: string, method: string, seed: number, sampler: SamplerPlace): Promise<Ran> {
  using store = place.openStore()
  const metrics = [{ name: 'loss' }]
  const rest = { seed, metrics, repeat: 1, failures: TRIALS, atOnce: AT_ONCE, ...(method === 'tpe' ? { sampler } : {}) }
  const spec = { parameters: [`x=int:1:${VALUES}`], method, ...rest }
  const job = { ...SPEC, command: COMMAND, metrics }
  store.studies.create({ name, user: 'bench', priority: 0, spec, trials: TRIALS, job }, Date.now())
  return await timed(place, async () => await place.run('work', '--until-empty', '--json'))
}

async function timed(place: Place, work: () => Promise<unknown>): Promise<Ran> {
  removeFromHomes(place, 'times')
  const sinceMs = performance.now()
  await work()
  const allS = (performance.now() - sinceMs) / 1000
  const lines = linesOfHomes(place, 'times').map((line) => line.split(' '))
  const of = (word: string) => lines.filter(([kind]) => kind === word)
  const momentsOf = (word: string) =>
    of(word)
      .map(([, at]) => Number(at) / 1e6)
      .toSorted((one, other) => one - other)
  const [starts, ends] = [momentsOf('start'), momentsOf('end')]
  if (starts.length !== TRIALS || ends.length !== TRIALS) throw new Error(`${starts.length} of ${TRIALS} trials ran`)
  const tried = new Set(of('start').map(([, , x]) => x)).size
  return {
    repeated: TRIALS - tried,
    tried,
    // Places are taken in the order in which they become free.
    gapsMs: starts.slice(AT_ONCE).map((start, index) => start - (ends[index] ?? Number.NaN)),
    trialsS: ((ends.at(-1) ?? Number.NaN) - (starts[0] ?? Number.NaN)) / 1000,
    allS,
  }
}

function text(ran: readonly Ran[]): string {
  const of = (key: Exclude<keyof Ran, 'gapsMs'>) => formatNumber(median(ran.map((one) => one[key])))
  return [of('repeated'), of('tried'), formatPair(ran.flatMap(({ gapsMs }) => gapsMs)), of('trialsS'), of('allS')].join(
    '; ',
  )
}
