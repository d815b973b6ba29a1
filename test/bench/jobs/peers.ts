/** What others do with short jobs on this machine, in as many slots as Muster has on one host. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../../support/requirements.ts'
import { SHORT_JOBS, startWaits } from './short-jobs.ts'
import { type Slurm, startSlurm } from './slurm.ts'

/** Slots of a peer: all on this machine. */
export const SLOTS = 16

/** A batch of starts waits for these, by default: seconds for sbatch, a full pass a minute. */
const FAST_SLURM = 'SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1'

/** Published, and not measured here. */
export const PUBLISHED = {
  perSecond: 'published: pueue adds 219 (empty) to 41 (2,000 queued) a second [1], Slurm starts 500 [2]',
  waits: 'published: pueue looks every 300 ms [1]',
}

const execute = promisify(execFile)

export type Figures = { readonly perSecond: number; readonly waitsMs: readonly number[] }

export async function measurePeers(
  directory: string,
  log: (line: string) => void,
): Promise<readonly (readonly [string, Figures])[]> {
  const peers: (readonly [string, Figures])[] = []
  const add = (name: string, figures: Figures) => {
    log(`${name} ${JSON.stringify(figures)}`)
    peers.push([name, figures])
  }
  if (findProgram('tsp')) add('task-spooler', await measureSpooler(directory))
  if (findProgram('slurmctld') && findProgram('slurmd') && findProgram('munged'))
    for (const [name, lines] of [
      ['Slurm as it comes', []],
      ['Slurm without its delays', [FAST_SLURM]],
    ] as const) {
      await using slurm = await startSlurm(join(directory, `slurm-${lines.length}`), SLOTS, lines)
      add(name, await measureSlurm(slurm, directory))
    }
  return peers
}

async function measureSpooler(directory: string): Promise<Figures> {
  const env = { ...process.env, TS_SOCKET: join(directory, 'spooler'), TS_MAXFINISHED: '10', TMPDIR: directory }
  const tsp = async (...args: readonly string[]) => await execute('tsp', args, { env })
  await tsp('-S', String(SLOTS))
  try {
    const sinceMs = performance.now()
    await execute('sh', ['-c', `i=0; while [ $i -lt ${SHORT_JOBS} ]; do tsp -n true; i=$((i+1)); done; tsp -w`], {
      env,
    })
    const perSecond = SHORT_JOBS / ((performance.now() - sinceMs) / 1000)
    const submit = async (command: string) => void (await tsp('-n', 'sh', '-c', command))
    return { perSecond, waitsMs: await startWaits(directory, [directory], submit) }
  } finally {
    await tsp('-K')
  }
}

async function measureSlurm(slurm: Slurm, directory: string): Promise<Figures> {
  const sinceMs = performance.now()
  await slurm.run('sbatch', '--wait', '-o', '/dev/null', `--array=0-${SHORT_JOBS - 1}`, '--wrap', 'true')
  const perSecond = SHORT_JOBS / ((performance.now() - sinceMs) / 1000)
  const waitsMs = await startWaits(directory, [directory], async (command) => {
    await slurm.run('sbatch', '-o', '/dev/null', '--wrap', command)
  })
  return { perSecond, waitsMs }
}
