/** What is measured of one program at a time. */
import { spawnSync } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { cpuSeconds } from '../support/processes.ts'
import type { Flood } from './flood.ts'
import { OuterTerminal } from './outer-terminal.ts'
import type { Program } from './programs.ts'

/** Neither the programs' own text nor the flood has them. */
const KEYS = ['Q', 'X', 'Z', 'J', 'V', 'W']
const KEY_TIMEOUT_MS = 5000
const ERASE_LINE = '\x15'
/** Until a flood is steady. */
const WARM_UP_MS = 700

/** Milliseconds from a key to its echo in the last of `cells` panes, for `count` keys at moments of no pattern. */
export async function timeKeys(program: Program, count: number, cells: number): Promise<number[]> {
  const { terminal } = program
  const keys = KEYS.filter((key) => terminal.count(key) === 0)
  const times: number[] = []
  for (let index = 0; index < count; index++) {
    const key = keys[index % keys.length]
    if (key === undefined) throw new Error(`no character is free to be typed; the screen was:\n${terminal.text()}`)
    times.push(await terminal.timeKey(key, cells, KEY_TIMEOUT_MS))
    terminal.type(ERASE_LINE)
    await terminal.until(() => terminal.count(key) === 0, `${key} to be erased`)
    await delay(20 + Math.random() * 60)
  }
  return times
}

export type FloodResult = {
  readonly times: number[]
  readonly megabytesPerSecond: number
  readonly cpuPercent: number
  readonly outerKilobytesPerSecond: number
}

export type FloodLoad = { readonly bytesPerSecond: number | 'most'; readonly keys: number; readonly atLeastMs: number }

/** All panes but the first are flooded and do not echo; keys are typed and timed in the first one. */
export async function measureFlood(program: Program, flood: Flood, load: FloodLoad): Promise<FloodResult> {
  const { terminal, shells } = program
  const flooded = shells.slice(1)
  for (const path of flooded) setEcho(path, false)
  await flood.start(flooded, load.bytesPerSecond)
  await delay(WARM_UP_MS)
  const pids = program.pids()
  const cpu = cpuSeconds(pids)
  const outer = terminal.bytesRead
  const before = await flood.count()
  const start = performance.now()
  const times = await timeKeys(program, load.keys, 1)
  await delay(Math.max(0, load.atLeastMs - (performance.now() - start)))
  const after = await flood.count()
  const seconds = (performance.now() - start) / 1000
  const result = {
    times,
    megabytesPerSecond: (after.bytes - before.bytes) / (after.atMs - before.atMs) / 1000,
    cpuPercent: ((cpuSeconds(pids) - cpu) / seconds) * 100,
    outerKilobytesPerSecond: (terminal.bytesRead - outer) / seconds / 1000,
  }
  await flood.stop()
  await terminal.quiet(300)
  for (const path of flooded) setEcho(path, true)
  return result
}

function setEcho(path: string, isOn: boolean): void {
  const { status, stderr } = spawnSync('stty', ['-F', path, isOn ? 'echo' : '-echo'], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`stty: ${stderr}`)
}

/** Leaves the program and comes back: milliseconds from the start of what attaches until the screen is as it was. */
export async function timeAttach(program: Program): Promise<number> {
  // The first and the last row are the program's own.
  const panes = (terminal: OuterTerminal) => terminal.text().split('\n').slice(1, -1).join('\n')
  await program.terminal.quiet(500)
  const before = panes(program.terminal)
  await using terminal = new OuterTerminal(await program.detach())
  await terminal.until(() => panes(terminal) === before, 'the earlier screen')
  return performance.now() - terminal.startedMs
}
