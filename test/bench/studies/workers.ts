/** How many evaluations are of points that were tried already: four workers of Optuna with one storage, and four trials at once here. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SamplerPlace } from '../../../src/scheduler/study/study.ts'
import type { Place } from '../jobs/place.ts'
import { SPEC } from '../jobs/store.ts'
import { formatNumber, median, type Row } from '../support/statistics.ts'
import { linesOfHomes, removeFromHomes } from './home-files.ts'
import { runPeer, spawnPeer } from './peer.ts'

const VALUES = 20
const WORKERS = 4
const TRIALS = 24

type Counted = { readonly run: number; readonly repeated: number; readonly seconds: number }

export async function benchWorkers(
  directory: string,
  path: string,
  place: Place,
  sampler: SamplerPlace,
  rounds: number,
): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const storage of ['journal', 'sqlite'])
    for (const [peer, method] of [
      ['tpe', 'tpe'],
      ['constant_liar', 'tpe'],
      ['random', 'random'],
    ] as const) {
      const ours: Counted[] = []
      const theirs: Counted[] = []
      for (let round = 0; round < rounds; round++) {
        const seed = round * WORKERS
        theirs.push(await runWorkers(join(directory, `${storage}-${peer}-${round}`), path, storage, peer, seed))
        ours.push(await runOurs(place, `${storage}-${peer}-${round}`, method, seed, sampler))
      }
      rows.push({
        what: `${peer}, ${storage}: trials run, of these with a point that was tried already, s (medians of ${rounds})`,
        ours: text(ours),
        peer: text(theirs),
        goal: '0 repeated',
        isReached: ours.every(({ run, repeated }) => run === VALUES && repeated === 0),
      })
    }
  return rows
}

async function runWorkers(
  base: string,
  path: string,
  storage: string,
  sampler: string,
  seed: number,
): Promise<Counted> {
  const [file, log] = [`${base}.storage`, `${base}.log`]
  await runPeer(path, 'create', storage, file)
  const sinceMs = performance.now()
  const workers = Array.from({ length: WORKERS }, (_, index) =>
    spawnPeer(
      path,
      ...['work', storage, file, sampler, String(seed + index), String(TRIALS / WORKERS), String(VALUES), log],
    ),
  )
  await Promise.all(workers.map(async (worker) => await once(worker, 'close')))
  return count(readFileSync(log, 'utf8').trim().split('\n'), sinceMs)
}

async function runOurs(
  place: Place,
  name: string,
  method: string,
  seed: number,
  sampler: SamplerPlace,
): Promise<Counted> {
  using store = place.openStore()
  removeFromHomes(place, 'ran')
  const metrics = [{ name: 'loss' }]
  const spec = {
    ...{ parameters: [`x=int:1:${VALUES}`], method, seed, metrics, repeat: 1, failures: TRIALS, atOnce: WORKERS },
    ...(method === 'tpe' ? { sampler } : {}),
  }
  const command = 'echo $x >>ran; sleep 0.15; echo loss=$(((x - 7) * (x - 7)))'
  const job = { ...SPEC, command, metrics }
  store.studies.create({ name, user: 'bench', priority: 0, spec, trials: TRIALS, job }, Date.now())
  const sinceMs = performance.now()
  await place.run('work', '--until-empty', '--json')
  return count(linesOfHomes(place, 'ran'), sinceMs)
}

function count(points: readonly string[], sinceMs: number): Counted {
  const seconds = (performance.now() - sinceMs) / 1000
  return { run: points.length, repeated: points.length - new Set(points).size, seconds }
}

function text(counted: readonly Counted[]): string {
  const of = (key: keyof Counted) => formatNumber(median(counted.map((one) => one[key])))
  return `${of('run')}, ${of('repeated')}, ${of('seconds')}`
}
