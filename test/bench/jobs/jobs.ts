/** `npm run bench -- jobs`: the queue of jobs on nine hosts behind real OpenSSH (root), beside task-spooler and Slurm in the same run. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLab } from '../../lab/cluster/lab.ts'
import { buildProduct } from '../support/build.ts'
import { formatTable, type Row } from '../support/statistics.ts'
import { benchDispatch, benchWaits } from './dispatch.ts'
import { benchEnded } from './ended.ts'
import { benchKills } from './kills.ts'
import { benchMix } from './mix.ts'
import { Place } from './place.ts'
import { benchStore } from './store.ts'

export type JobsBenchOptions = {
  readonly parts: readonly string[]
  /** Of kills. */
  readonly rounds: number
  /** Of kills: no more rounds after these. */
  readonly seconds: number
  /** Of the mix, 1: 5,000 jobs. */
  readonly scale: number
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

const HOSTS = 9
const CORES = 16
const MIXED = { cpu: 32, gpu: 8 }

export async function benchJobs({
  parts,
  rounds,
  seconds,
  scale,
  root,
  interrupted,
  log,
}: JobsBenchOptions): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-jobs-'))
  try {
    const main = join(await buildProduct(directory, root), 'dist', 'main.js')
    const work = async () => {
      const rows: Row[] = []
      const add = (more: readonly Row[]) => {
        for (const row of more) log(JSON.stringify(row))
        rows.push(...more)
      }
      if (parts.includes('kills')) add(await benchKills(directory, main, rounds, seconds, log))
      if (parts.includes('ended')) add(benchEnded(directory, log))
      if (parts.every((part) => part === 'kills' || part === 'ended')) return formatTable(rows)
      await using lab = await startLab({ count: HOSTS })
      const place = (name: string, resources = { cpu: CORES, gpu: 0 }) => new Place(lab, main, name, resources)
      if (parts.includes('store')) add(await benchStore(directory, place('store')))
      const alone = new Place(lab, main, 'alone', { cpu: CORES, gpu: 0 }, true)
      if (parts.includes('dispatch')) add(await benchDispatch({ spread: place('dispatch'), alone, directory, log }))
      if (parts.includes('waits')) add(await benchWaits({ spread: place('waits'), alone }))
      if (parts.includes('mix')) add(await benchMix(place('mix', MIXED), MIXED, scale))
      return formatTable(rows)
    }
    return await Promise.race([work(), interrupted])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
