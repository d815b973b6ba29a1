/** `npm run bench -- jobs`: the queue of jobs on nine hosts behind real OpenSSH (root), beside task-spooler and Slurm in the same run. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLab } from '../../lab/cluster/lab.ts'
import { buildProduct } from '../support/build.ts'
import { formatTable, type Row } from '../support/statistics.ts'
import { benchDispatch } from './dispatch.ts'
import { Place } from './place.ts'
import { benchStore } from './store.ts'

export type JobsBenchOptions = {
  readonly parts: readonly string[]
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

const HOSTS = 9
const CORES = 16

export async function benchJobs({ parts, root, interrupted, log }: JobsBenchOptions): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-jobs-'))
  try {
    const main = join(await buildProduct(directory, root), 'dist', 'main.js')
    await using lab = await startLab({ count: HOSTS })
    const work = async () => {
      const rows: Row[] = []
      const place = (name: string) => new Place(lab, main, name, { cpu: CORES, gpu: 0 })
      if (parts.includes('store')) rows.push(...(await benchStore(directory, place('store'))))
      if (parts.includes('dispatch')) rows.push(...(await benchDispatch(place('dispatch'), directory, log)))
      return formatTable(rows)
    }
    return await Promise.race([work(), interrupted])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
