/** How many short jobs begin a second, and how long one waits on an idle queue, beside task-spooler and Slurm with one node. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findProgram } from '../../support/requirements.ts'
import { formatNumber, formatPair, type Row } from '../support/statistics.ts'
import type { Place } from './place.ts'
import { type Slurm, startSlurm } from './slurm.ts'
import { SPEC, submission } from './store.ts'

const JOBS = 2000
const PEER_JOBS = 400
const SINGLES = 20
const WAIT_LIMIT_MS = 30_000
/** Slots of a peer: all on this machine, where Muster has as many on each of nine hosts. */
const SLOTS = 16

const execute = promisify(execFile)

type Figures = { readonly perSecond: number; readonly waitsMs: readonly number[] }

export async function benchDispatch(
  place: Place,
  directory: string,
  log: (line: string) => void,
): Promise<readonly Row[]> {
  const ours = await measureOurs(place)
  log(`muster ${JSON.stringify(ours)}`)
  const peers: (readonly [string, Figures])[] = []
  if (findProgram('tsp')) peers.push(['task-spooler', await measureSpooler(directory)])
  if (findProgram('slurmctld') && findProgram('slurmd') && findProgram('munged')) {
    const slurm = await startSlurm(join(directory, 'slurm'), SLOTS)
    try {
      peers.push(['Slurm', await measureSlurm(slurm, directory)])
    } finally {
      await slurm[Symbol.asyncDispose]()
    }
  }
  for (const [name, figures] of peers) log(`${name} ${JSON.stringify(figures)}`)
  const of = (text: (figures: Figures) => string) =>
    peers.map(([name, figures]) => `${name} ${text(figures)}`).join(', ')
  return [
    {
      what: `jobs of \`true\` a second, from the first start to the last end: ${JOBS} on nine hosts; peers ${PEER_JOBS} on this machine`,
      ours: formatNumber(ours.perSecond),
      peer: of(({ perSecond }) => formatNumber(perSecond)),
      goal: '200',
      isReached: ours.perSecond >= 200,
    },
    {
      what: 'from an acknowledged submission to the first act of the job on an idle queue, ms (p50 / p99)',
      ours: formatPair(ours.waitsMs),
      peer: of(({ waitsMs }) => formatPair(waitsMs)),
    },
  ]
}

async function measureOurs(place: Place): Promise<Figures> {
  using store = place.openStore()
  store.submit(submission(SPEC, JOBS), Date.now())
  await place.run('work', '--until-empty', '--json')
  const spans = store
    .list(['done'], JOBS)
    .flatMap(({ state }) =>
      state.kind === 'done' && state.startedMs !== undefined ? [[state.startedMs, state.endedMs] as const] : [],
    )
  if (spans.length !== JOBS) throw new Error(`${spans.length} of ${JOBS} jobs were done`)
  const seconds = (Math.max(...spans.map(([, end]) => end)) - Math.min(...spans.map(([start]) => start))) / 1000
  const driving = place.spawn('work')
  driving.child.stdout.resume()
  const waitsMs = await waits('~', place.homes, async (command) => {
    store.submit(submission({ ...SPEC, command }), Date.now())
  })
  driving.child.kill('SIGTERM')
  await driving.ended
  return { perSecond: JOBS / seconds, waitsMs }
}

async function measureSpooler(directory: string): Promise<Figures> {
  const env = { ...process.env, TS_SOCKET: join(directory, 'spooler'), TS_MAXFINISHED: '10', TMPDIR: directory }
  const tsp = async (...args: readonly string[]) => await execute('tsp', args, { env })
  await tsp('-S', String(SLOTS))
  try {
    const sinceMs = performance.now()
    await execute('sh', ['-c', `i=0; while [ $i -lt ${PEER_JOBS} ]; do tsp -n true; i=$((i+1)); done; tsp -w`], { env })
    const perSecond = PEER_JOBS / ((performance.now() - sinceMs) / 1000)
    return {
      perSecond,
      waitsMs: await waits(directory, [directory], async (command) => void (await tsp('-n', 'sh', '-c', command))),
    }
  } finally {
    await tsp('-K')
  }
}

async function measureSlurm(slurm: Slurm, directory: string): Promise<Figures> {
  const sinceMs = performance.now()
  await slurm.run('sbatch', '--wait', '-o', '/dev/null', `--array=0-${PEER_JOBS - 1}`, '--wrap', 'true')
  const perSecond = PEER_JOBS / ((performance.now() - sinceMs) / 1000)
  const waitsMs = await waits(directory, [directory], async (command) => {
    await slurm.run('sbatch', '-o', '/dev/null', '--wrap', command)
  })
  return { perSecond, waitsMs }
}

/**
 * Each job writes when it begins, into a directory that it knows as `inside`; the next one is submitted when it has.
 * `places`: where that is, seen from here.
 */
async function waits(
  inside: string,
  places: readonly string[],
  submit: (command: string) => Promise<void>,
): Promise<readonly number[]> {
  const results: number[] = []
  for (let index = 0; index < SINGLES; index++) {
    const name = `began-${index}`
    await submit(`date +%s%N >${inside}/${name}.new && mv ${inside}/${name}.new ${inside}/${name}`)
    const submittedMs = Date.now()
    const untilMs = submittedMs + WAIT_LIMIT_MS
    let file: string | undefined
    while (file === undefined) {
      if (Date.now() > untilMs) throw new Error(`a job did not begin within ${WAIT_LIMIT_MS / 1000} s`)
      await delay(2)
      file = places.map((place) => join(place, name)).find((path) => existsSync(path))
    }
    results.push(Math.max(0, Number(readFileSync(file, 'utf8')) / 1e6 - submittedMs))
    rmSync(file)
  }
  return results
}
