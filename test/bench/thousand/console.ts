/** The console with one host and with a thousand: until all shells are there, keys, folding, all connections cut at once. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { COLUMNS, OuterTerminal, ROWS } from '../shells/outer-terminal.ts'
import { cpuPercent, endProcesses, memoryMib, withDescendants } from '../support/processes.ts'
import { formatNumber, formatPair } from '../support/statistics.ts'

type Options = {
  readonly directory: string
  readonly build: string
  readonly names: readonly string[]
  /** Of the server. */
  readonly listeners: readonly number[]
  readonly nodeArguments: readonly string[]
  log(line: string): void
}

function shows(terminal: OuterTerminal, isRight: (screen: string) => boolean): () => boolean {
  let lookedMs = 0
  return () => {
    if (performance.now() - lookedMs < LOOK_MS) return false
    lookedMs = performance.now()
    return isRight(terminal.text())
  }
}

type Console = { readonly terminal: OuterTerminal; readonly count: number; readonly startedMs: number }

const LEADER = '\x1d'
/** Reading the screen uses the same cores as the programs that are measured. */
const LOOK_MS = 50
const KEYS = 20
const IDLE_MS = 10_000
/** On the first page: panes of 40×8. */
const PANES = Math.floor(COLUMNS / 40) * Math.floor((ROWS - 2) / 8)

export async function benchConsole(options: Options): Promise<string> {
  const { names, listeners, log } = options
  const alone = await withConsole(options, 1, async ({ terminal }) => memoryMib(withDescendants(terminal.pid)).rss)
  const rows = await withConsole(options, names.length, async ({ terminal, count, startedMs }) => {
    const since = (ms: number) => formatNumber((performance.now() - ms) / 1000)
    const ready = since(startedMs)
    await terminal.quiet(1000)
    const all = memoryMib(withDescendants(terminal.pid)).rss
    log(`${count} shells after ${ready} s, ${all.toFixed(0)} MiB`)
    const idle = await cpuPercent(withDescendants(terminal.pid), IDLE_MS)
    const keys: number[] = []
    for (let key = 1; key <= KEYS; key += 1) {
      keys.push(await terminal.timeKey('Z', key * PANES, 30_000))
      await terminal.quiet(1000)
    }
    const foldedMs = performance.now()
    terminal.type(`${LEADER}=`)
    await terminal.until(
      shows(terminal, (screen) => screen.includes(`(${count} folded)`)),
      'all panes to be folded',
    )
    const folded = since(foldedMs)
    terminal.type(`${LEADER}=`)
    await terminal.quiet(1000)
    const sessions = listeners.flatMap(withDescendants).filter((pid) => !listeners.includes(pid))
    const cutMs = performance.now()
    const isOver = endProcesses(sessions)
    await terminal.until(
      shows(terminal, (screen) => !screen.includes(`${count}/${count} up`)),
      'lost hosts',
    )
    const areUp = shows(terminal, (screen) => screen.includes(`${count}/${count} up`))
    await terminal.until(areUp, 'all connections again', 300_000)
    const back = since(cutMs)
    await isOver
    const quitMs = performance.now()
    terminal.type(`${LEADER}q`)
    terminal.type('\r')
    await terminal.ended(60_000)
    return [
      ['all shells have a prompt, s after Enter', ready],
      ['RSS of client and console with 1 host, MiB', alone.toFixed(0)],
      [`RSS with ${count} hosts, MiB`, all.toFixed(0)],
      ['RSS of one host, KiB', formatNumber(((all - alone) * 1024) / (count - 1))],
      ['CPU at rest, % of a core', formatNumber(idle)],
      [`key to ${count} hosts → painted in the ${PANES} panes of the page, ms: p50 / p99`, formatPair(keys)],
      ['fold all equal panes into one, s', folded],
      ['all connections cut at once: all up again after, s', back],
      ['quit, s', since(quitMs)],
    ]
  })
  return [
    `**The console with ${names.length} hosts, ${COLUMNS}×${ROWS}**`,
    '',
    '| what | Muster |',
    '| --- | --- |',
    ...rows.map(([what, value]) => `| ${what} | ${value} |`),
  ].join('\n')
}

async function withConsole<T>(
  { directory, build, names, nodeArguments }: Options,
  count: number,
  work: (console: Console) => Promise<T>,
): Promise<T> {
  const hosts = join(directory, `hosts-${count}.yaml`)
  writeFileSync(hosts, `hosts: { ${names.slice(0, count).join(': {}, ')}: {} }\n`, { mode: 0o600 })
  const place = (name: string) => join(directory, name)
  const startedMs = performance.now()
  await using terminal = new OuterTerminal({
    file: process.execPath,
    args: [...nodeArguments, join(build, 'bin', 'muster.js'), '--hosts', hosts],
    environment: {
      PATH: process.env.PATH ?? '',
      HOME: directory,
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      MUSTER_RUNTIME_DIR: place('runtime'),
      XDG_STATE_HOME: place('state'),
      XDG_CONFIG_HOME: place('state'),
    },
  })
  const areUp = shows(terminal, (screen) => screen.includes(`${count}/${count} up`))
  await terminal.until(areUp, `${count} hosts`, 300_000)
  return await work({ terminal, count, startedMs })
}
