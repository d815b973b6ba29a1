/**
 * What measuring and watching cost: `net mesh` against its rounds times the time of each, the console's processor while it
 * watches 64 hosts once a second, and what the script of a watched host uses of the host. On a lab of its own (root).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { WATCH_SCRIPT } from '../../../src/ops/net/watch/sample.ts'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { OuterTerminal } from '../shells/outer-terminal.ts'
import { buildProduct } from '../support/build.ts'
import { cpuPercent } from '../support/processes.ts'

export type NetBench = {
  /** Some of: sampler, watch, mesh. */
  readonly parts: readonly string[]
  readonly hosts: number
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

const TICKS_PER_SECOND = 100
const WATCHED_MS = 20_000
const MESH_HOSTS = 8
const MESH_SECONDS = 5

export async function benchNet({ parts, hosts, root, interrupted, log }: NetBench): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-net-'))
  try {
    const build = await buildProduct(directory, root)
    const rows: string[] = []
    const measure = async (part: string, run: () => Promise<string>) => {
      if (!parts.includes(part)) return
      log(`${part} …`)
      rows.push(await Promise.race([run(), interrupted]))
    }
    await measure('sampler', sampler)
    await measure('watch', () => watch(hosts, build, directory))
    await measure('mesh', () => mesh(build))
    return ['| what | reached | goal |', '| --- | --- | --- |', ...rows].join('\n')
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** The script by itself, with the shells of Debian, of most others, and of small systems. */
async function sampler(): Promise<string> {
  const shells = [['sh'], ['bash'], ['busybox', 'sh']]
  const used = await Promise.all(
    shells.map(async ([file = 'sh', ...args]) => {
      const child = spawn(file, [...args, '-c', WATCH_SCRIPT], {
        stdio: ['ignore', 'ignore', 'ignore'],
        detached: true,
      })
      const closed = once(child, 'close')
      await delay(2000)
      const before = ticksWithChildren(child.pid)
      const start = performance.now()
      await delay(WATCHED_MS)
      const percent = (ticksWithChildren(child.pid) - before) / TICKS_PER_SECOND / ((performance.now() - start) / 1e5)
      process.kill(-(child.pid ?? 0), 'SIGKILL')
      await closed
      return `${percent.toFixed(2)} % (${[file, ...args].join(' ')})`
    }),
  )
  return `| CPU of the script on a watched host, of one core | ${used.join(', ')} | ≤ 1 % |`
}

/** utime, stime, and those of children that have ended (proc_pid_stat(5)). */
function ticksWithChildren(pid: number | undefined): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0)
}

async function watch(hosts: number, build: string, directory: string): Promise<string> {
  await using lab = await startLab({ count: hosts })
  const home = join(directory, 'home')
  mkdirSync(home)
  const terminalOf = (...args: readonly string[]) => {
    const [file = '', ...rest] = lab.command(programOf(build, lab, ...args))
    const environment = { ...lab.environment, TERM: 'xterm-256color', XDG_STATE_HOME: home } as Record<string, string>
    return new OuterTerminal({ file, args: rest, environment })
  }
  const percentOf = async (terminal: OuterTerminal, isReady: () => boolean) => {
    await terminal.until(isReady, 'the table', 120_000)
    await delay(5000)
    return (await cpuPercent([terminal.pid], WATCHED_MS)).toFixed(1)
  }
  const all = new RegExp(`${hosts} of ${hosts} hosts`)
  let verb = ''
  {
    await using terminal = terminalOf('net', 'watch')
    verb = await percentOf(terminal, () => all.test(terminal.text()))
  }
  await using terminal = terminalOf()
  await terminal.until(() => new RegExp(`${hosts}/${hosts} up`).test(terminal.text()), 'the shells', 120_000)
  const shells = await percentOf(terminal, () => true)
  terminal.type('\x1d3')
  const tab = await percentOf(terminal, () => all.test(terminal.text()))
  return [
    `| ${hosts} hosts watched once a second, the console's processor: \`net watch\` | ${verb} % of a core | ≤ 10 % |`,
    `| the same in the console, with the Network tab open (${shells} % before it was opened) | ${tab} % of a core | ≤ 10 % |`,
  ].join('\n')
}

async function mesh(build: string): Promise<string> {
  await using lab = await startLab({ count: MESH_HOSTS })
  // Processors are not to be the limit.
  for (const host of lab.hosts) await host.shape({ bitsPerSecond: 50e6 })
  const start = performance.now()
  const { stdout, stderr } = await lab.run(
    programOf(build, lab, 'net', 'mesh', '--time', String(MESH_SECONDS), '--json'),
  )
  const took = (performance.now() - start) / 1000
  const times = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; time: string; measured?: number })
  const links = times.filter(({ type }) => type === 'link')
  const measured = times.find(({ type }) => type === 'summary')?.measured
  if (measured !== MESH_HOSTS * (MESH_HOSTS - 1)) throw new Error(`${measured} links measured\n${stderr}`)
  const [pings, ends] = [times.findLast(({ type }) => type === 'ping'), links.at(-1)]
  const measuring = (Date.parse(ends?.time ?? '') - Date.parse(pings?.time ?? '')) / 1000
  const slots = 2 * (MESH_HOSTS - 1) * MESH_SECONDS
  return `| \`net mesh\`, ${MESH_HOSTS} hosts, ${MESH_SECONDS} s: ${measuring.toFixed(1)} s of measuring (${took.toFixed(1)} s from start to end) for ${slots} s | ${(measuring / slots).toFixed(3)} (${(took / slots).toFixed(3)}) | ≤ 1.15 |`
}

function programOf(build: string, lab: Lab, ...args: readonly string[]): string[] {
  return [process.execPath, join(build, 'dist', 'main.js'), '--hosts', lab.hostsFile, ...args]
}
