/** `npm run bench -- studies`: what a study costs, beside Optuna's own way and Ray Tune. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLab } from '../../lab/cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../../lab/cluster/python-environment.ts'
import { Place } from '../jobs/place.ts'
import { buildProduct } from '../support/build.ts'
import { formatTable, type Row } from '../support/statistics.ts'
import { benchGaps } from './gaps.ts'
import { benchStudyNumbers } from './numbers.ts'
import { optunaPath } from './peer.ts'
import { benchPoints } from './points.ts'
import { benchStudyQueue } from './queue.ts'
import { benchTune, PROGRAMS_PLACE } from './tune.ts'
import { benchWorkers } from './workers.ts'

export type StudiesBenchOptions = {
  readonly parts: readonly string[]
  readonly rounds: number
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

const HOSTS = 4

export async function benchStudies({ parts, rounds, root, interrupted, log }: StudiesBenchOptions): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-studies-'))
  try {
    const work = async () => {
      const rows: Row[] = []
      const add = (more: readonly Row[]) => {
        for (const row of more) log(JSON.stringify(row))
        rows.push(...more)
      }
      if (parts.includes('numbers')) add(benchStudyNumbers())
      if (parts.includes('queue')) add(benchStudyQueue(directory))
      if (parts.includes('points')) add(await benchPoints(await optunaPath(), rounds, log))
      if (!['gaps', 'workers', 'tune'].some((part) => parts.includes(part))) return formatTable(rows)
      const main = join(await buildProduct(directory, root), 'dist', 'main.js')
      const environment = await pythonEnvironment(parts.includes('tune') ? 'ray-libraries' : 'optuna')
      const mounts = { [ENVIRONMENT_PLACE]: environment, [PROGRAMS_PLACE]: import.meta.dirname }
      await using lab = await startLab({ count: HOSTS, mounts })
      const place = (name: string) => new Place(lab, main, name, { cpu: 5, gpu: 0 })
      const sampler = { host: 'm1', setUp: `PATH=${ENVIRONMENT}/bin:$PATH`, options: {} }
      if (parts.includes('gaps')) add(await benchGaps(place('gaps'), sampler))
      if (parts.includes('workers'))
        add(await benchWorkers(directory, await optunaPath(), place('workers'), sampler, rounds))
      if (parts.includes('tune')) add(await benchTune(place('tune'), lab.host('m1'), sampler, rounds))
      return formatTable(rows)
    }
    return await Promise.race([work(), interrupted])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
