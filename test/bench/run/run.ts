/** `npm run bench -- run`: `muster run` beside pdsh, clush, pssh, Ansible and plain ssh, in turns, on hosts of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram, requirement } from '../../support/requirements.ts'
import { buildProduct } from '../support/build.ts'
import { formatNumber, median } from '../support/statistics.ts'
import { type Contender, createContenders, type Task } from './contenders.ts'
import { ControlGroup } from './control-group.ts'
import { startHosts } from './hosts.ts'
import { Track } from './measure.ts'

export type RunBenchOptions = {
  readonly rounds: number
  /** Undefined: all. */
  readonly parts: readonly string[] | undefined
  readonly nodeArguments: readonly string[]
  /** Whose program is measured. */
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

type Part = {
  readonly name: string
  readonly title: string
  readonly contenders: readonly Contender[]
  readonly task: Task
  /** Memory instead of time. */
  readonly isMemory?: boolean
  goals?(rows: readonly Result[]): readonly Goal[]
}

type Result = {
  readonly name: string
  readonly seconds: number
  readonly least: number
  readonly most: number
  readonly cpuSeconds: number
  readonly peakMib: number
}

type Goal = { readonly what: string; readonly value: number; readonly limit: number; readonly unit?: string }

const PROGRAMS = ['root', 'sshd', 'ip', 'unshare', 'xargs', 'pdsh', 'clush', 'parallel-ssh', 'ansible']

export async function benchRun(options: RunBenchOptions): Promise<string> {
  const missing = PROGRAMS.slice(1).filter((name) => findProgram(name) === undefined)
  if (missing.length > 0) throw new Error(`not installed: ${missing.join(', ')}`)
  if (!requirement('root')) throw new Error('namespaces and control groups need root')
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'))
  try {
    await using owned = new AsyncDisposableStack()
    const build = await buildProduct(directory, options.root)
    const contenders = createContenders(directory, build, options.nodeArguments)
    const servers = owned.use(new ControlGroup(`muster-bench-${process.pid}-servers`))
    const { names } = owned.use(await startHosts(directory, { count: 200, group: servers }))
    const parts = partsOf(contenders, names)
    const tables: string[] = []
    for (const part of parts) {
      if (options.parts !== undefined && !options.parts.includes(part.name)) continue
      tables.push(await Promise.race([measurePart(part, directory, options), options.interrupted]))
    }
    return tables.join('\n\n')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function partsOf(
  { muster, pdsh, pdshFolded, pdshOverMasters, clush, pssh, xargs, ansible }: ReturnType<typeof createContenders>,
  names: readonly string[],
): readonly Part[] {
  const echo = (count: number): Task => ({
    hosts: names.slice(0, count),
    command: 'echo BENCHOK',
    fanOut: Math.max(64, count),
    mark: 'BENCHOK',
  })
  const lines: Task = { hosts: names.slice(0, 20), command: 'seq 80000', fanOut: 64, mark: '79999' }
  const megabyte: Task = { ...echo(200), command: 'seq 160000', mark: '159999' }
  const narrow: Task = { ...megabyte, fanOut: 64 }
  return [
    {
      name: 'cold',
      title: '50 hosts, cold, `echo`',
      contenders: [...[muster(), xargs(), pdsh(), clush(), clush('-b'), pssh(), ansible('cold')]],
      task: echo(50),
      goals: ([ours, ...peers]) => [
        { what: 'wall, of the best peer', value: ratio(ours, peers, 'seconds'), limit: 0.4 },
        { what: 'CPU, of the best peer', value: ratio(ours, peers, 'cpuSeconds'), limit: 0.3 },
      ],
    },
    {
      name: 'warm',
      title: '50 hosts, warm, `echo`',
      contenders: [muster('--persist', '600'), pdshOverMasters(), ansible('warm')],
      task: echo(50),
      goals: ([ours, ...peers]) => [
        { what: 'wall, of pdsh over ControlMasters', value: ratio(ours, peers.slice(0, 1), 'seconds'), limit: 0.8 },
      ],
    },
    {
      name: 'lines',
      title: '20 hosts × 80,000 lines',
      contenders: [muster(), xargs(), pdsh(), clush(), pssh()],
      task: lines,
      goals: ([ours, ...peers]) => [
        { what: 'wall, of pdsh', value: ratio(ours, peers.slice(1, 2), 'seconds'), limit: 1 },
      ],
    },
    {
      name: 'fold',
      title: '20 hosts × 80,000 lines, folded',
      contenders: [muster('--fold'), clush('-b'), pdshFolded()],
      task: lines,
      goals: ([ours, ...peers]) => [
        { what: 'wall, of clush -b', value: ratio(ours, peers.slice(0, 1), 'seconds'), limit: 0.1 },
      ],
    },
    {
      name: 'many',
      title: '200 hosts at once, `echo`, `ulimit -n` 1024',
      contenders: [muster(), pdsh(), clush(), pssh()],
      task: echo(200),
    },
    ...(
      [
        ['echo', echo(200)],
        ['1 MB each', megabyte],
        ['1 MB each, 64 at once', narrow],
      ] as const
    ).map(
      ([title, task]): Part => ({
        name: 'memory',
        title: `200 hosts, ${title}: memory`,
        // Two of the peers take minutes for a megabyte from each.
        contenders: [muster(), muster('--fold'), ...(task.command.startsWith('echo') ? [pdsh(), clush('-b')] : [])],
        task,
        isMemory: true,
        goals: ([plain, folded]) => [
          { what: 'RSS, MiB', value: Math.max(plain?.peakMib ?? 0, folded?.peakMib ?? 0), limit: 150 },
        ],
      }),
    ),
  ]
}

function ratio(ours: Result | undefined, peers: readonly Result[], what: 'seconds' | 'cpuSeconds'): number {
  return (ours?.[what] ?? Number.NaN) / Math.min(...peers.map((peer) => peer[what]))
}

/** `warmUpHosts`: how many hosts the round that does not count needs; undefined: all. */
export async function measurePart(
  part: Part,
  directory: string,
  options: Pick<RunBenchOptions, 'rounds' | 'log'>,
  warmUpHosts?: number,
): Promise<string> {
  options.log(part.title)
  await using owned = new AsyncDisposableStack()
  const tracks = part.contenders.map((contender) => owned.use(new Track(contender, directory, options.log)))
  // The first round loads programs from disk, and makes connections that are to stay.
  const first = { ...part.task, hosts: part.task.hosts.slice(0, warmUpHosts) }
  for (const track of tracks) await track.warmUp(first)
  const rounds = part.isMemory ? Math.min(3, options.rounds) : options.rounds
  for (let round = 0; round < rounds; round += 1) {
    // Each in turn, and everybody once first.
    const next = round % tracks.length
    for (const track of [...tracks.slice(next), ...tracks.slice(0, next)]) {
      await track.round(part.task, part.isMemory === true)
    }
  }
  const results = tracks.map(({ contender, rounds: all, incomplete }): Result => {
    const seconds = all.map((each) => each.seconds)
    return {
      name:
        incomplete === 0 ? contender.name : `${contender.name} (${incomplete} of ${rounds} rounds without all hosts)`,
      seconds: median(seconds),
      least: Math.min(...seconds),
      most: Math.max(...seconds),
      cpuSeconds: median(all.map((each) => each.cpuSeconds)),
      peakMib: Math.max(...all.map((each) => each.peakMib)),
    }
  })
  return formatPart(part, results)
}

function formatPart(part: Part, results: readonly Result[]): string {
  const [ours] = results
  const cell = (result: Result): string =>
    part.isMemory
      ? `| ${result.peakMib.toFixed(0)} |`
      : `| ${formatNumber(result.seconds)} (${formatNumber(result.least)}–${formatNumber(result.most)}) | ${formatNumber(result.cpuSeconds)} | ${share(ours, result, 'seconds')} | ${share(ours, result, 'cpuSeconds')} |`
  const goals = (part.goals?.(results) ?? []).map(
    ({ what, value, limit }) =>
      `Goal: ${what} ≤ ${limit}: ${formatNumber(value)}, ${value <= limit ? 'reached' : '**not reached**'}.`,
  )
  return [
    `**${part.title}**`,
    '',
    ...(part.isMemory
      ? ['| program | peak RSS of all its processes, MiB |', '| --- | --- |']
      : [
          '| program | wall, s: p50 (min–max) | CPU, s | Muster’s share of this wall time | of this CPU |',
          '| --- | --- | --- | --- | --- |',
        ]),
    ...results.map((result) => `| ${result.name} ${cell(result)}`),
    ...(goals.length > 0 ? ['', ...goals] : []),
  ].join('\n')
}

function share(ours: Result | undefined, peer: Result, what: 'seconds' | 'cpuSeconds'): string {
  return ours === undefined || ours === peer ? '' : formatNumber(ours[what] / peer[what])
}
