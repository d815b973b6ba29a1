/** `npm run bench -- shells`: Muster beside tmux with synchronized panes and one `ssh -tt` a pane, on the same hosts. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { buildProduct } from '../support/build.ts'
import { cpuPercent, memoryMib } from '../support/processes.ts'
import { formatNumber, formatPair, formatTable, median, percentile, type Row } from '../support/statistics.ts'
import { BARE_ENTRY, timeBareKeys } from './bare.ts'
import { CONNECT_ENTRIES, connectFleet, connectProcesses } from './connect.ts'
import { mostDiscarded } from './discard.ts'
import { Flood } from './flood.ts'
import { echoOnlyIn, type FloodResult, measureFlood, timeAttach, timeKeys } from './measures.ts'
import { type Program, type ProgramOptions, type StartTimes, startMuster, startTmux } from './programs.ts'
import { type Servers, type ShellName, startServers } from './servers.ts'

export type ShellsOptions = {
  readonly hosts: readonly number[]
  /** Keys a measurement. */
  readonly keys: number
  /** Shells that are opened against as many ssh processes; 0: none. */
  readonly connections: number
  readonly repeats: number
  /** Only attaching after the client was killed, only keys without other output, or only as much output as can be had. */
  readonly part: 'attach' | 'keys' | 'most' | undefined
  readonly shell: ShellName
  /** How long CPU is counted while nothing is typed, after `SETTLE_MS`. */
  readonly idleMs: number
  readonly floods: readonly number[]
  readonly nodeArguments: readonly string[]
  /** Whose console is measured. */
  readonly root: string
  /** Rejects when the user wants to stop. */
  readonly interrupted: Promise<never>
  log(line: string): void
}

/** Goals of the key-to-paint times under 10 MB/s, p50 and p99 in milliseconds. */
const FLOOD_GOALS: Readonly<Record<number, readonly [number, number]>> = { 16: [0.5, 5], 32: [0.5, 5], 64: [0.5, 8] }
/** Goals of the time to the last prompt, in parts of tmux's. */
const READY_GOALS: Readonly<Record<number, number>> = { 4: 1, 64: 0.4 }
const KEYS_A_BLOCK = 25
/** How long an idle program may take to give memory back. */
const SETTLE_MS = 20_000

type Side = { readonly start: (options: ProgramOptions) => Promise<Program>; readonly label: string }
const SIDES: readonly [Side, Side] = [
  { start: startMuster, label: 'muster' },
  { start: startTmux, label: 'tmux' },
]

/** Measures everything and gives the table in Markdown. */
export async function benchShells(options: ShellsOptions): Promise<string> {
  const { log } = options
  const rows: Row[] = []
  await using owned = new AsyncDisposableStack()
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'))
  owned.defer(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
  log('compiling')
  const build = await buildProduct(directory, options.root, [...CONNECT_ENTRIES, BARE_ENTRY])
  const most = Math.max(...options.hosts, options.connections)
  log(`starting ${most} SSH servers`)
  const servers = owned.use(await startServers(directory, most, options.shell))
  await delay(1000)

  const shared = { servers, build, nodeArguments: options.nodeArguments }
  const measureAll = async () => {
    for (const hosts of options.hosts) await benchHosts({ ...shared, directory, hosts }, owned, options, rows)
    if (options.connections > 0) await benchConnections(servers, build, options, rows)
  }
  await Promise.race([measureAll(), options.interrupted])
  return formatTable(rows)
}

/** `owner` ends what was started if the measurement is given up. */
async function benchHosts(
  base: ProgramOptions,
  owner: AsyncDisposableStack,
  options: ShellsOptions,
  rows: Row[],
): Promise<void> {
  const { hosts } = base
  const { log, shell } = options
  const title = `${hosts} hosts, ${shell}`
  const say = (row: Row) => {
    rows.push(row)
    log(`${row.what}: ${row.ours} | ${row.peer}${row.goal === undefined ? '' : ` | goal ${row.goal}`}`)
  }
  await using owned = owner.use(new AsyncDisposableStack())
  const startSide = async (side: Side, run: number) => {
    const directory = join(base.directory, `${side.label}-${hosts}-${run}`)
    mkdirSync(directory)
    return owner.use(await side.start({ ...base, directory }))
  }
  const starts: [StartTimes[], StartTimes[]] = [[], []]
  for (let run = 1; run < (options.part === undefined ? options.repeats : 1); run++) {
    for (const [at, side] of SIDES.entries()) {
      await using program = await startSide(side, run)
      starts[at as 0 | 1].push(program.start)
    }
  }
  const muster = owned.use(await startSide(SIDES[0], 0))
  const tmux = owned.use(await startSide(SIDES[1], 0))
  starts[0].push(muster.start)
  starts[1].push(tmux.start)
  const programs = [muster, tmux] as const
  if (options.part === 'attach') return await benchAttach(programs, hosts, options, say)
  const flood = owned.use(new Flood())
  if (options.part === 'most') {
    for (const program of programs) await echoOnlyIn(program, program.shells[0])
    return await benchMost(programs, base.servers, flood, options, { title, say })
  }
  const startOf = (at: 0 | 1, when: keyof StartTimes) => median(starts[at].map((start) => start[when]))
  say({
    what: `${title}: from the start of the program to its first frame, ms`,
    ours: startOf(0, 'firstMs').toFixed(0),
    peer: startOf(1, 'firstMs').toFixed(0),
    goal: '≤ 150',
    isReached: startOf(0, 'firstMs') <= 150,
  })
  const readyGoal = READY_GOALS[hosts]
  say({
    what: `${title}: from the start of the program to the last prompt painted, s`,
    ours: formatNumber(startOf(0, 'readyMs') / 1000),
    peer: formatNumber(startOf(1, 'readyMs') / 1000),
    ...(readyGoal === undefined
      ? {}
      : {
          goal: readyGoal === 1 ? '≤ tmux' : `≤ ${readyGoal} of tmux`,
          isReached: startOf(0, 'readyMs') <= readyGoal * startOf(1, 'readyMs'),
        }),
  })

  // Compiled as it is after a minute of use.
  for (const program of programs) await timeKeys(program, KEYS_A_BLOCK, hosts)
  const quiet: [number[], number[]] = [[], []]
  for (let done = 0; done < options.keys; done += KEYS_A_BLOCK) {
    for (const at of [0, 1] as const) quiet[at].push(...(await timeKeys(programs[at], KEYS_A_BLOCK, hosts)))
  }
  say({
    what: `${title}, quiet: key to last pane painted, ms p50 / p99`,
    ours: formatPair(quiet[0]),
    peer: formatPair(quiet[1]),
    goal: 'p99 ≤ tmux',
    isReached: percentile(quiet[0], 0.99) <= percentile(quiet[1], 0.99),
  })
  if (options.part === 'keys') {
    for (const workers of [0, 2]) {
      const times = await timeBareKeys(base.servers, base.build, { hosts, keys: options.keys, workers })
      const where = workers === 0 ? 'in one thread' : `in ${workers} worker threads`
      say({
        what: `${title}: key to last echo over ssh2 alone ${where}, ms p50 / p99`,
        ours: formatPair(times),
        peer: '',
      })
    }
    return
  }
  await delay(SETTLE_MS)
  const [idleOurs = 0, idlePeer = 0] = await Promise.all(
    programs.map((program) => cpuPercent(program.pids(), options.idleMs)),
  )
  say({
    what: `${title}, idle: CPU, %`,
    ours: formatNumber(idleOurs),
    peer: formatNumber(idlePeer),
    goal: '≤ 2',
    isReached: idleOurs <= 2,
  })
  say({ what: `${title}, idle: memory of all processes, MiB PSS (RSS)`, ...memoryOf(programs) })

  for (const program of programs) await echoOnlyIn(program, program.shells[0])
  for (const megabytes of options.floods) {
    for (const whom of megabytes <= 10 ? (['first', 'all'] as const) : (['first'] as const)) {
      for (const program of programs) await program.receive(whom)
      const results: [FloodResult[], FloodResult[]] = [[], []]
      const blocks = Math.max(1, Math.ceil(options.keys / KEYS_A_BLOCK / 2))
      for (let block = 0; block < blocks; block++) {
        for (const at of [0, 1] as const) {
          const load = { bytesPerSecond: megabytes * 1e6, keys: KEYS_A_BLOCK * 2, atLeastMs: 2000 }
          results[at].push(await measureFlood(programs[at], flood, load))
        }
      }
      sayFlood(`${title}, ${megabytes} MB/s, ${whom === 'all' ? 'all receive' : 'one receives'}`, results, {
        say,
        goal: megabytes === 10 && whom === 'first' ? FLOOD_GOALS[hosts] : undefined,
      })
    }
  }
  if (hosts === Math.max(...options.hosts)) await benchMost(programs, base.servers, flood, options, { title, say })
  for (const program of programs) await echoOnlyIn(program)
  if (hosts !== Math.max(...options.hosts)) return

  await delay(SETTLE_MS)
  say({
    what: `${title}, 1,000 lines of history each: memory of all processes, MiB PSS (RSS)`,
    ...memoryOf(programs),
    goal: '≤ 250',
    isReached: memoryMib(muster.pids()).pss <= 250,
  })
  await benchAttach(programs, hosts, options, say)
}

/** As much output as each program takes, keys typed meanwhile, and what the machine could deliver to `ssh` processes that discard it. */
async function benchMost(
  programs: readonly [Program, Program],
  servers: Servers,
  flood: Flood,
  { repeats, keys }: ShellsOptions,
  { title, say }: { title: string; say(row: Row): void },
): Promise<void> {
  const rates: [number[], number[]] = [[], []]
  const times: [number[], number[]] = [[], []]
  const discarded: number[] = []
  const echoes: number[] = []
  for (const program of programs) await program.receive('first')
  for (let run = 0; run < repeats; run++) {
    for (const at of [0, 1] as const) {
      const load = { bytesPerSecond: 'most', keys: Math.ceil(keys / repeats), atLeastMs: 4000 } as const
      const result = await measureFlood(programs[at], flood, load)
      rates[at].push(result.megabytesPerSecond)
      times[at].push(...result.times)
    }
    const ssh = await mostDiscarded(servers, programs[0].shells.length, flood)
    discarded.push(ssh.megabytesPerSecond)
    echoes.push(...ssh.times)
  }
  say({
    what: `${title}: most output received, MB/s (${formatNumber(median(discarded))} by as many ssh that discard it)`,
    ours: formatNumber(median(rates[0])),
    peer: formatNumber(median(rates[1])),
    goal: '≥ 50',
    isReached: median(rates[0]) >= 50,
  })
  say({
    what: `${title}: key to paint meanwhile, ms p50 / p99 (${formatPair(echoes)} to its echo, by the ssh that discard the rest)`,
    ours: formatPair(times[0]),
    peer: formatPair(times[1]),
    goal: 'p99 ≤ 16',
    isReached: percentile(times[0], 0.99) <= 16,
  })
}

async function benchAttach(
  [muster, tmux]: readonly [Program, Program],
  hosts: number,
  { repeats }: ShellsOptions,
  say: (row: Row) => void,
): Promise<void> {
  const ours = await timeAttach(muster, repeats)
  const peer = await timeAttach(tmux, repeats)
  const seconds = (times: readonly number[]) =>
    `${formatNumber(median([...times]) / 1000)} / ${formatNumber(Math.max(...times) / 1000)}`
  say({
    what: `${hosts} hosts, client killed with -9: from the start of attach to the same cells, s median / most`,
    ours: seconds(ours.attachMs),
    peer: seconds(peer.attachMs),
    goal: '≤ 1',
    isReached: Math.max(...ours.attachMs) <= 1000,
  })
  say({
    what: `${hosts} hosts, client killed with -9: until the terminal is restored, s median / most`,
    ours: seconds(ours.restoreMs),
    peer: 'never',
  })
}

function memoryOf(programs: readonly [Program, Program]): { readonly ours: string; readonly peer: string } {
  const [ours, peer] = programs.map((program) => {
    const { pss, rss } = memoryMib(program.pids())
    return `${pss.toFixed(0)} (${rss.toFixed(0)})`
  })
  return { ours: ours ?? '', peer: peer ?? '' }
}

function sayFlood(
  what: string,
  [ours, peer]: readonly [FloodResult[], FloodResult[]],
  { say, goal }: { say(row: Row): void; goal: readonly [number, number] | undefined },
): void {
  const times = (results: FloodResult[]) => results.flatMap((result) => result.times)
  const mean = (results: FloodResult[], of: (result: FloodResult) => number) =>
    formatNumber(results.reduce((sum, result) => sum + of(result), 0) / results.length)
  say({
    what: `${what}: key to paint, ms p50 / p99`,
    ours: formatPair(times(ours)),
    peer: formatPair(times(peer)),
    ...(goal === undefined
      ? {}
      : {
          goal: `≤ ${goal[0]} / ${goal[1]}`,
          isReached: median(times(ours)) <= goal[0] && percentile(times(ours), 0.99) <= goal[1],
        }),
  })
  const side = (results: FloodResult[]) =>
    `${mean(results, (result) => result.megabytesPerSecond)} MB/s, ${mean(results, (result) => result.cpuPercent)} %, ${mean(results, (result) => result.outerKilobytesPerSecond)} KB/s`
  say({ what: `${what}: received, CPU, written to the terminal`, ours: side(ours), peer: side(peer) })
}

async function benchConnections(
  servers: Parameters<typeof connectFleet>[0],
  build: string,
  { connections, repeats, log }: ShellsOptions,
  rows: Row[],
): Promise<void> {
  const fleet = []
  const processes = []
  const quick = []
  for (let run = 0; run < repeats; run++) {
    fleet.push(await connectFleet(servers, connections, build))
    processes.push(await connectProcesses(servers, connections, []))
    quick.push(await connectProcesses(servers, connections, ['-o', 'KexAlgorithms=curve25519-sha256']))
  }
  const seconds = (results: readonly { seconds: number }[]) => median(results.map((result) => result.seconds))
  const cpu = (results: readonly { cpuMs: number }[]) => formatNumber(median(results.map((result) => result.cpuMs)))
  for (const [peer, name, goal] of [
    [processes, 'ssh processes', 0.35],
    [quick, 'ssh processes, curve25519 forced', 0.9],
  ] as const) {
    const share = seconds(fleet) / seconds(peer)
    rows.push({
      what: `${connections} shells ready beside ${name}, s (ms of CPU per connection)`,
      ours: `${formatNumber(seconds(fleet))} (${cpu(fleet)}), ${formatNumber(share)} of the peer`,
      peer: `${formatNumber(seconds(peer))} (${cpu(peer)})`,
      goal: `≤ ${goal} of the peer`,
      isReached: share <= goal,
    })
    log(JSON.stringify(rows.at(-1)))
  }
}
