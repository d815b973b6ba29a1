/** What processes cost, from /proc (Linux): CPU time and memory, and how the benchmark waits for their end. */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** `getconf CLK_TCK` is 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

/** Seconds of CPU, user and system, of processes that live. */
export function cpuSeconds(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    const fields = statOf(pid)
    // utime and stime (proc_pid_stat(5)), counted after the name in parentheses.
    if (fields) ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks / TICKS_PER_SECOND
}

/** Percent of one core that the processes use in `ms`. */
export async function cpuPercent(pids: readonly number[], ms: number): Promise<number> {
  const before = cpuSeconds(pids)
  const start = performance.now()
  await delay(ms)
  return ((cpuSeconds(pids) - before) / (performance.now() - start)) * 100_000
}

/** MiB: `rss` counts shared pages in every process, `pss` shares them out. */
export function memoryMib(pids: readonly number[]): { readonly rss: number; readonly pss: number } {
  let rss = 0
  let pss = 0
  for (const pid of pids) {
    const text = readText(`/proc/${pid}/smaps_rollup`) ?? ''
    rss += Number(/^Rss:\s+(\d+)/m.exec(text)?.[1] ?? 0)
    pss += Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0)
  }
  return { rss: rss / 1024, pss: pss / 1024 }
}

/** The process and everything below it. */
export function withDescendants(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = Number(statOf(Number(name))?.[1])
    if (parent > 0) children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  const below = (id: number): number[] => [id, ...(children.get(id) ?? []).flatMap(below)]
  return below(pid)
}

export const isAlive = (pid: number): boolean => {
  const state = statOf(pid)?.[0]
  return state !== undefined && state !== 'Z'
}

/** Ends processes that the benchmark started: politely, then not. */
export async function endProcesses(pids: readonly number[], graceMs = 2000): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (const pid of pids) if (isAlive(pid)) signalProcess(pid, signal)
    const deadline = performance.now() + graceMs
    while (pids.some(isAlive) && performance.now() < deadline) await delay(5)
  }
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended by itself.
  }
}

/** The fields of /proc/PID/stat from the state on. */
function statOf(pid: number): string[] | undefined {
  const text = readText(`/proc/${pid}/stat`)
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
