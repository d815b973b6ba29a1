/** What is measured of one program at a time. */
import { setTimeout as delay } from 'node:timers/promises'
import { cpuSeconds, isAlive } from '../support/processes.ts'
import type { Flood } from './flood.ts'
import { OuterTerminal } from './outer-terminal.ts'
import type { Program } from './programs.ts'

/** Neither the programs' own text nor the flood has them. */
const KEYS = ['Q', 'X', 'Z', 'J', 'V', 'W']
const KEY_TIMEOUT_MS = 5000
const ERASE_LINE = '\x15'
/** Makes a pane show colours, attributes and more lines than it has rows. */
const COLOURED = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); printf '\\033[1;3%dmline %d\\033[0m\\n' $((i%8)) $i; done"
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

/** All panes but the first are flooded; keys are typed and timed in the first one, the only one that echoes (`echoOnlyIn`). */
export async function measureFlood(program: Program, flood: Flood, load: FloodLoad): Promise<FloodResult> {
  const { terminal, shells } = program
  const flooded = shells.slice(1)
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
  return result
}

/** MB/s that these terminals take while nothing is typed. */
export async function floodRate(flood: Flood, terminals: readonly string[], forMs: number): Promise<number> {
  await flood.start(terminals, 'most')
  await delay(WARM_UP_MS)
  const before = await flood.count()
  await delay(forMs)
  const after = await flood.count()
  await flood.stop()
  return (after.bytes - before.bytes) / (after.atMs - before.atMs) / 1000
}

/** From now on only the shell on this terminal echoes; undefined: all do. A line editor asks for it only before it reads a line. */
export async function echoOnlyIn(program: Program, terminal?: string): Promise<void> {
  await program.receive('all')
  program.terminal.type(terminal === undefined ? 'stty echo\r' : `[ $(tty) = ${terminal} ] || stty -echo\r`)
  await program.terminal.quiet(500)
}

export type AttachTimes = {
  /** From the start of the attaching process until every cell of the panes is as it was. */
  readonly attachMs: readonly number[]
  /** From the kill until the terminal is restored; empty: it never is. */
  readonly restoreMs: readonly number[]
}

/** Kills the process in the terminal with SIGKILL and attaches in another terminal, once per round. */
export async function timeAttach(program: Program, rounds: number): Promise<AttachTimes> {
  const attachMs: number[] = []
  const restoreMs: number[] = []
  await program.receive('all')
  await program.terminal.quiet(500)
  // tmux takes late answers of the terminal for keys.
  program.terminal.type(ERASE_LINE)
  program.terminal.type(`${COLOURED}\r`)
  const panes = program.shells.length
  await program.terminal.until(() => program.terminal.text().split('line 20').length > panes, 'the coloured lines')
  await program.terminal.quiet(1000)
  const before = program.terminal.paneCells()
  await using owned = new AsyncDisposableStack()
  let client = program.terminal
  for (let round = 0; round < rounds; round++) {
    const killedMs = performance.now()
    process.kill(client.pid, 'SIGKILL')
    // A killed tmux client leaves the terminal as it is.
    if (program.name === 'Muster') restoreMs.push((await client.restored()) - killedMs)
    while (isAlive(client.pid)) await delay(3)
    const next = owned.use(new OuterTerminal(program.attach))
    await next.until(() => next.paneCells().equals(before), 'the same cells')
    attachMs.push(performance.now() - next.startedMs)
    await next.quiet(500)
    if (!next.paneCells().equals(before)) throw new Error(`the cells changed after attach:\n${next.text()}`)
    client = next
  }
  return { attachMs, restoreMs }
}
