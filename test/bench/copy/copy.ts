/**
 * `muster copy` beside scp, rsync, clush, pdcp and `tar | ssh tar`, in turns, on real OpenSSH hosts in namespaces (root): one
 * large file to one host and to eight whose links, and this machine's, have one speed; and a tree of small files to one.
 */
import { randomBytes } from 'node:crypto'
import { createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { findProgram } from '../../support/requirements.ts'
import { buildProduct } from '../support/build.ts'
import { formatNumber, formatTable, median, type Row } from '../support/statistics.ts'

export type CopyBenchOptions = {
  readonly hosts: number
  readonly mebibytes: number
  readonly megabitsPerSecond: number
  /** Of each program, in turns; the large file goes to all hosts once by each peer. */
  readonly rounds: number
  readonly parts: readonly string[]
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

type Contender = { readonly name: string; readonly needs?: string; command(target: string): readonly string[] }

const LIMIT_MS = 1_200_000
const SMALL = { directories: 20, files: 100, bytes: 4096 }

export async function benchCopy(options: CopyBenchOptions): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-copy-'))
  try {
    const main = join(await buildProduct(directory, options.root), 'dist', 'main.js')
    const lab = await startLab({ count: options.hosts })
    try {
      return await Promise.race([measure(lab, main, options), options.interrupted])
    } finally {
      await lab.stop()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function measure(lab: Lab, main: string, options: CopyBenchOptions): Promise<string> {
  const rows: Row[] = []
  if (options.parts.includes('small')) rows.push(await measureSmall(lab, main, options))
  if (options.parts.includes('large')) rows.push(...(await measureLarge(lab, main, options)))
  return formatTable(rows)
}

async function measureLarge(lab: Lab, main: string, options: CopyBenchOptions): Promise<Row[]> {
  const { hosts, mebibytes, megabitsPerSecond, rounds } = options
  const big = join(lab.directory, 'home', 'big')
  const block = randomBytes(1024 * 1024)
  const blocks = Array.from({ length: mebibytes }, (_, index) => {
    block.writeUInt32BE(index)
    return Buffer.from(block)
  })
  await pipeline(Readable.from(blocks), createWriteStream(big))
  for (const host of lab.hosts) await host.shape({ bitsPerSecond: megabitsPerSecond * 1e6 })
  await lab.shapeUplink({ bitsPerSecond: megabitsPerSecond * 1e6 })
  const muster = (name: string, ...args: readonly string[]): Contender => ({
    name,
    command: (target) => [process.execPath, main, '--hosts', lab.hostsFile, 'copy', ...args, target, big, 'big'],
  })
  const list = (target: string) => (target === 'all' ? lab.names : [target])
  const each = (line: string) => (target: string) =>
    ['sh', '-c', `for h in ${list(target).join(' ')}; do ${line} & done; wait`] as const
  const peers: readonly Contender[] = [
    muster('muster --via direct', '--via', 'direct'),
    { name: 'scp', command: each(`scp -q ${big} $h:big`) },
    { name: 'rsync', needs: 'rsync', command: each(`rsync -t ${big} $h:big`) },
    {
      name: 'clush --copy',
      needs: 'clush',
      command: (target) => ['clush', '-w', list(target).join(','), '--copy', big, '--dest', 'big'],
    },
    {
      name: 'pdcp',
      needs: 'pdcp',
      command: (target) => ['pdcp', '-R', 'ssh', '-w', list(target).join(','), big, 'big'],
    },
  ]
  const isThere = ({ needs }: Contender) => needs === undefined || findProgram(needs) !== undefined
  const contenders = [muster('muster'), ...(options.parts.includes('peers') ? peers.filter(isThere) : [])]
  const times = { one: new Map<string, number[]>(), all: new Map<string, number[]>() }
  const said: string[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of contenders) {
      await timed(lab, contender, 'm1', 'big', times.one, options)
      // To all hosts through one uplink: that takes as long as the arithmetic says, with any program.
      if (round > 0 && contender.name !== 'muster') continue
      said.push(...(await timed(lab, contender, 'all', 'big', times.all, options)))
    }
  }
  const mine = (part: 'one' | 'all') => median(times[part].get('muster') ?? [])
  const others = (part: 'one' | 'all') => describe(times[part], 'muster')
  const ratio = mine('all') / mine('one')
  const path = said.flatMap((text) => /path: .*/.exec(text)?.[0] ?? []).at(-1)
  options.log(path ?? 'no path was told')
  const what = `${mebibytes} MiB at ${megabitsPerSecond} Mbit/s`
  return [
    { what: `${what} to 1 host, s`, ours: formatNumber(mine('one')), peer: others('one') },
    {
      what: `${what} to ${hosts} hosts, s (multiple of the time to 1 host)`,
      ours: `${formatNumber(mine('all'))} (${formatNumber(ratio)})`,
      peer: others('all'),
      goal: '≤ 1.3 × 1 host',
      isReached: ratio <= 1.3,
    },
  ]
}

async function measureSmall(lab: Lab, main: string, options: CopyBenchOptions): Promise<Row> {
  const home = join(lab.directory, 'home')
  for (let one = 0; one < SMALL.directories; one += 1) {
    const below = join(home, 'tree', `d${one}`)
    mkdirSync(below, { recursive: true })
    for (let other = 0; other < SMALL.files; other += 1)
      writeFileSync(join(below, `f${other}`), randomBytes(SMALL.bytes))
  }
  const contenders: readonly Contender[] = [
    {
      name: 'muster',
      command: (target) => [
        process.execPath,
        main,
        '--hosts',
        lab.hostsFile,
        'copy',
        target,
        join(home, 'tree'),
        'tree',
      ],
    },
    { name: 'tar | ssh tar', command: (target) => ['sh', '-c', `tar -C ${home} -cf - tree | ssh ${target} tar -xf -`] },
    { name: 'scp -r', command: (target) => ['scp', '-qrp', join(home, 'tree'), `${target}:tree`] },
    { name: 'rsync', needs: 'rsync', command: (target) => ['rsync', '-a', join(home, 'tree'), `${target}:`] },
  ]
  const times = new Map<string, number[]>()
  for (let round = 0; round < Math.max(5, options.rounds); round += 1) {
    for (const contender of contenders) {
      if (contender.needs !== undefined && findProgram(contender.needs) === undefined) continue
      await timed(lab, contender, 'm1', 'tree', times, options)
    }
  }
  const ratio = median(times.get('muster') ?? []) / median(times.get('tar | ssh tar') ?? [])
  return {
    what: `${SMALL.directories * SMALL.files} files of ${SMALL.bytes / 1024} KiB to 1 host, s (multiple of tar | ssh tar)`,
    ours: `${formatNumber(median(times.get('muster') ?? []))} (${formatNumber(ratio)})`,
    peer: describe(times, 'muster'),
    goal: '≤ 1.2 × tar',
    isReached: ratio <= 1.2,
  }
}

/** Removes what an earlier turn left, runs one, and looks whether it did its work. */
async function timed(
  lab: Lab,
  { name, command }: Contender,
  target: string,
  result: string,
  times: Map<string, number[]>,
  { log }: CopyBenchOptions,
): Promise<readonly string[]> {
  for (const host of lab.hosts) await host.exec(`rm -rf ${result} .muster-*`)
  const start = performance.now()
  const { code, stdout, stderr } = await lab.run(command(target), { timeoutMs: LIMIT_MS })
  const seconds = (performance.now() - start) / 1000
  if (code !== 0) throw new Error(`${name}: exit ${code}\n${stdout}${stderr}`)
  const size = `find ${result} -type f -exec cat {} + | wc -c`
  const expected = (await lab.run(['sh', '-c', `cd ${join(lab.directory, 'home')} && ${size}`])).stdout.trim()
  for (const host of target === 'all' ? lab.hosts : [lab.host(target)]) {
    const { stdout: found } = await host.exec(size)
    if (found.trim() !== expected)
      throw new Error(`${name} brought ${found.trim()} of ${expected} bytes to ${host.name}`)
  }
  times.set(name, [...(times.get(name) ?? []), seconds])
  log(`${name} to ${target}: ${formatNumber(seconds)} s, load ${readFileSync('/proc/loadavg', 'utf8').split(' ')[0]}`)
  return [stdout + stderr]
}

function describe(times: ReadonlyMap<string, readonly number[]>, without: string): string {
  const others = [...times].filter(([name]) => name !== without)
  return others.map(([name, values]) => `${name} ${formatNumber(median(values))}`).join(', ')
}
