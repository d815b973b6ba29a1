/**
 * Takes the pictures of the documentation from the real program: `muster demo` in a terminal, its cells as SVG
 * (`npm run pictures`, `npm run pictures -- network` for some). Nothing in them is drawn by hand.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { AsciicastRecorder } from '../src/terminal/asciicast.ts'
import { type ConsoleDriver, openConsole } from '../test/support/console-driver.ts'
import { type ShownCell, UserTerminal } from '../test/support/user-terminal.ts'

/** Fits the usual fonts at 15 px, without gaps between the lines of frames. */
const CELL = { width: 9, height: 17 }
const BASELINE = 14
const MARGIN = 12
/** Only what is named on the command line, or everything. */
const wanted = process.argv.slice(2)
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name)

type Colours = { readonly palette: readonly string[]; readonly foreground: string; readonly background: string }

/** The first sixteen of a usual dark theme, and of a usual light one. */
const DARK: Colours = {
  palette: [
    ...['#1d1f21', '#cc6666', '#b5bd68', '#f0c674', '#81a2be', '#b294bb', '#8abeb7', '#c5c8c6'],
    ...['#666666', '#d54e53', '#b9ca4a', '#e7c547', '#7aa6da', '#c397d8', '#70c0b1', '#eaeaea'],
  ],
  foreground: '#d5d8de',
  background: '#14161b',
}
const LIGHT: Colours = {
  palette: [
    ...['#000000', '#c82829', '#718c00', '#a67d00', '#4271ae', '#8959a8', '#3e999f', '#4d4d4c'],
    ...['#8e908c', '#c82829', '#718c00', '#a67d00', '#4271ae', '#8959a8', '#3e999f', '#1d1f21'],
  ],
  foreground: '#20242c',
  background: '#fdfdfb',
}

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

function colourOf(colour: string, fallback: string, palette: readonly string[]): string {
  if (colour === 'default') return fallback
  if (colour.startsWith('#')) return colour
  const index = Number(colour)
  if (index < 16) return palette[index] ?? fallback
  const level = (at: number): number => [0, 95, 135, 175, 215, 255][at] ?? 0
  const cube = index - 16
  const grey = 8 + (index - 232) * 10
  const rgb =
    index >= 232 ? [grey, grey, grey] : [level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)]
  return `#${rgb.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

function looks(cell: ShownCell, colours: Colours): { foreground: string; background: string; extra: string } {
  const foreground = colourOf(cell.foreground, colours.foreground, colours.palette)
  const background = colourOf(cell.background, colours.background, colours.palette)
  const extra = `${cell.isBold ? ' font-weight="bold"' : ''}${cell.isDim ? ' opacity="0.55"' : ''}${cell.isUnderline ? ' text-decoration="underline"' : ''}`
  return cell.isInverse ? { foreground: background, background: foreground, extra } : { foreground, background, extra }
}

/** Groups neighbours with the same key. */
function runs<T>(items: readonly T[], keyOf: (item: T) => string) {
  const found: { readonly from: number; to: number; readonly first: T; readonly key: string }[] = []
  for (const [at, item] of items.entries()) {
    const last = found.at(-1)
    if (last?.key === keyOf(item)) last.to = at + 1
    else found.push({ from: at, to: at + 1, first: item, key: keyOf(item) })
  }
  return found
}

type Row = readonly ShownCell[]

function renderSvg(rows: readonly Row[], title: string, colours: Colours): string {
  const body = rows.flatMap((row, y) => renderRow(row, y, colours))
  return svg([rows[0]?.length ?? 0, rows.length], title, colours, body)
}

function svg(
  [columns, rows]: readonly [number, number],
  title: string,
  colours: Colours,
  body: readonly string[],
): string {
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${columns * CELL.width + 2 * MARGIN} ${rows * CELL.height + 2 * MARGIN}" font-family="'DejaVu Sans Mono','Menlo','Consolas',monospace" font-size="15" shape-rendering="crispEdges">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="${colours.background}"/>`,
    ...body,
  ]
  return `${out.join('\n')}\n</svg>\n`
}

function renderRow(row: Row, y: number, colours: Colours): string[] {
  const out: string[] = []
  const top = MARGIN + y * CELL.height
  const looked = row.map((cell) => looks(cell, colours))
  for (const { from, to, first } of runs(looked, ({ background }) => background)) {
    if (first.background === colours.background) continue
    const width = (to - from) * CELL.width
    out.push(
      `<rect x="${MARGIN + from * CELL.width}" y="${top}" width="${width}" height="${CELL.height}" fill="${first.background}"/>`,
    )
  }
  // Few fonts have the braille of charts: as a text of its own, it does not stretch the text beside it.
  const kinds = row.map((cell, at) => JSON.stringify([looked[at], /[\u2800-\u28ff]/.test(cell.text)]))
  for (const { from, to } of runs(kinds, (kind) => kind)) {
    const cells = row.slice(from, to)
    const isBlank = ({ text }: ShownCell) => text.trim() === ''
    const first = cells.findIndex((cell) => !isBlank(cell))
    const look = looked[from]
    if (look === undefined || first < 0) continue
    const shown = cells.slice(first, cells.findLastIndex((cell) => !isBlank(cell) || cell.width === 0) + 1)
    const text = shown.map((cell) => (cell.width === 0 ? '' : cell.text || ' ')).join('')
    const space = text.includes('  ') ? ' xml:space="preserve"' : ''
    out.push(
      `<text x="${MARGIN + (from + first) * CELL.width}" y="${top + BASELINE}"${space} textLength="${shown.length * CELL.width}" fill="${look.foreground}"${look.extra}>${escapeXml(text)}</text>`,
    )
  }
  return out
}

/** A screen, and the second from which it is shown. */
type Frame = { readonly from: number; readonly rows: readonly Row[] }

/**
 * Frames one after the other, over and over. Each row is drawn once for as long as it stays the same. A reader who wants less
 * motion sees the last frame.
 */
function renderFrames(frames: readonly Frame[], seconds: number, title: string, colours: Colours): string {
  const rules = new Map<string, string>()
  const body: string[] = []
  const size = [frames[0]?.rows[0]?.length ?? 0, frames[0]?.rows.length ?? 0] as const
  for (let y = 0; y < size[1]; y += 1) {
    const drawn = frames.map(({ rows }) => renderRow(rows[y] ?? [], y, colours).join('\n'))
    for (const { from, to, first } of runs(drawn, (text) => text)) {
      if (first === '') continue
      const begin = frames[from]?.from ?? 0
      const end = frames[to]?.from ?? seconds
      const name = `f${from}-${to}`
      const percent = (time: number) => `${((100 * time) / seconds).toFixed(2)}%`
      const hidden = end === seconds ? '' : `${percent(end)}{visibility:hidden}`
      const shown = `${begin === 0 ? '' : '0%{visibility:hidden}'}${percent(begin)}{visibility:visible}${hidden}`
      rules.set(
        name,
        `.${name}{animation:${name} ${seconds.toFixed(2)}s step-end infinite}@keyframes ${name}{${shown}}`,
      )
      body.push(`<g class="${name}${end === seconds ? ' last' : ''}">`, first, '</g>')
    }
  }
  const still =
    '@media (prefers-reduced-motion:reduce){g{animation:none!important;visibility:hidden}.last{visibility:visible}}'
  return svg(size, title, colours, [`<style>${[...rules.values(), still].join('\n')}</style>`, ...body])
}

/** What a scene does for a cast: `hold` shows for so many seconds what is on the screen when the console has come to rest. */
type Take = {
  readonly console: ConsoleDriver
  hold(seconds: number): Promise<void>
  /** Types a few letters at a time, as each step takes space in the picture; these hosts echo them, or a prompt. */
  slowly(text: string, ...hosts: readonly string[]): Promise<void>
}

/**
 * Records a scene by the recorder of Muster's own recordings, with the times that the scene gives, into `docs/images/NAME.cast`,
 * and draws NAME.svg from that file.
 */
async function cast(
  name: string,
  title: string,
  [width, height]: readonly [number, number],
  args: readonly string[],
  scene: (take: Take) => Promise<void>,
): Promise<void> {
  if (!isWanted(name)) return
  const directory = mkdtempSync(join(tmpdir(), 'muster-cast-'))
  try {
    const started = Date.now()
    let seconds = 0
    await using console = await openConsole({ args, size: [width, height], environment: { COLORTERM: 'truecolor' } })
    const recorder = new AsciicastRecorder({
      ...{ directory, host: name, columns: width, rows: height, term: 'xterm-256color' },
      clock: { ...systemClock, now: () => started + seconds * 1000 },
      onError(error) {
        throw error
      },
    })
    let recorded = 0
    const hold = async (time: number) => {
      await console.settled()
      recorder.output(console.output().subarray(recorded))
      recorded = console.output().length
      seconds += time
    }
    const slowly = async (text: string, ...hosts: readonly string[]) => {
      for (let typed = ''; typed !== text; await hold(0.25)) {
        const part = text.slice(typed.length, typed.length + 3)
        typed += part
        await console.type(part)
        const shown = () => (hosts.length === 0 ? [console.screen()] : hosts.map((host) => console.on(host)))
        await console.until(() => shown().every((lines) => lines.join('\n').includes(typed)), `${typed} to be echoed`)
      }
    }
    await scene({ console, hold, slowly })
    recorder[Symbol.dispose]()
    const recording = readFileSync(recorder.path, 'utf8')
    writeFileSync(imagePath(`${name}.cast`), recording)
    writeFileSync(imagePath(`${name}.svg`), renderFrames(await framesOf(recording), seconds, title, DARK))
    process.stdout.write(`${imagePath(`${name}.svg`)}\n`)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The screens of an asciicast v2. */
async function framesOf(recording: string): Promise<Frame[]> {
  const [header = '{}', ...lines] = recording.trimEnd().split('\n')
  const { width, height } = JSON.parse(header) as { width: number; height: number }
  const terminal = new UserTerminal(width, height)
  const frames: Frame[] = []
  for (const line of lines) {
    const [from, , data] = JSON.parse(line) as [number, string, string]
    const drawn = new Promise<void>((resolve) => {
      terminal.onChange = resolve
    })
    terminal.write(data)
    await drawn
    frames.push({ from: frames.length === 0 ? 0 : from, rows: terminal.cells() })
  }
  return frames
}

const imagePath = (name: string): string => join(import.meta.dirname, '..', 'docs', 'images', name)

async function picture(
  name: string,
  title: string,
  size: readonly [number, number],
  args: readonly string[],
  scene: (console: ConsoleDriver) => Promise<void>,
): Promise<void> {
  if (!isWanted(name)) return
  await using console = await openConsole({ args, size, environment: { COLORTERM: 'truecolor' } })
  await console.expectAllOpen()
  await scene(console)
  await take(console, name, title, size, DARK)
}

async function take(
  console: ConsoleDriver,
  name: string,
  title: string,
  [width, height]: readonly [number, number],
  colours: Colours,
): Promise<void> {
  await console.settled()
  const file = imagePath(`${name}.svg`)
  writeFileSync(file, renderSvg(console.cells({ column: 0, row: 0, width, height }), title, colours))
  process.stdout.write(`${file}\n`)
}

await picture('console', 'Six hosts; four of them receive your keys', [126, 30], ['demo'], async (console) => {
  await console.type('hostname; ls\r')
  await console.expectOnAll(['m1', 'm6'], () => /README/)
  await console.receivers('m[1-4]')
  await console.type('tail -6 logs/train.log\r')
  await console.expectOnAll(['m1', 'm2', 'm3', 'm4'], () => /(?:step.*\n){6}root/)
  await console.type('echo once, in four places')
  await console.expectOnAll(['m1', 'm2', 'm3', 'm4'], () => /four places/)
})
await picture(
  'differences',
  'Equal panes folded into one, and the host that differs',
  [126, 14],
  ['demo', '--count', '12'],
  async (console) => {
    await console.leader('=')
    await console.leader('d')
    await console.type('ls -x; wc -l README; cat release\r')
    await console.expectScreen(/\(11 folded\)[\s\S]*app 1\.4\.2 .*app 1\.4\.1/)
  },
)
await picture('packing', 'Which job has which GPU, and what waits', [160, 44], ['demo'], async (console) => {
  await console.leader('4')
  await console.expectScreen(/1[0-9] running, \d waiting/)
  // Waits until later jobs have started, so that the strips have some history.
  await console.expectScreen(/\b[3-9]\d lr-sweep/, { timeoutMs: 240_000 })
})
for (const [suffix, colours, background] of [
  ['', DARK, '15;0'],
  ['-light', LIGHT, '0;15'],
] as const) {
  if (!isWanted('network')) break
  const size = [126, 32] as const
  const environment = { COLORTERM: 'truecolor', COLORFGBG: background }
  await using console = await openConsole({ args: ['demo', '--count', '8'], size, environment })
  await console.expectAllOpen()
  // Something to see.
  await console.type('i=0; while [ $i -lt 200 ]; do ls -lR /usr > /dev/null; sleep 1; i=$((i+1)); done\r')
  await console.leader('3')
  // Until the charts have a whole minute.
  await console.expectScreen(/\(here\) +\d+%!? *[▁-█]{9}/, { timeoutMs: 240_000 })
  await console.expectScreen(/all hosts CPU[\s\S]* now/)
  await take(
    console,
    `network${suffix}`,
    'Live resources of the hosts, and of this machine in the last row',
    size,
    colours,
  )
  await console.key('Down')
  await console.key('Enter')
  await console.expectScreen(/m1 · \d+ processes/)
  // Nothing else of this machine belongs in the picture.
  await console.type('/command:ls command:-lR')
  await console.key('Enter')
  await console.expectScreen(/\d% .* ls .*-lR \/usr/)
  await take(console, `network-host${suffix}`, 'One host: its charts and its processes', size, colours)
}

await picture(
  'bring-up',
  'The status of each host, and a plan ready to apply',
  [140, 30],
  ['demo'],
  async (console) => {
    await console.leader('2')
    await console.expectScreen(/m6 +\+ missing/)
    await console.key('u')
    await console.expectScreen(/plan ready/)
  },
)

const ALL = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']
await cast(
  'muster',
  'Muster: type into six hosts, find the one that differs, bring them up, queue jobs',
  [100, 26],
  ['demo'],
  async (take) => {
    const { console, hold, slowly } = take
    const choose = async (...keys: readonly string[]) => {
      for (const key of keys) {
        await console.key(key)
        await hold(0.5)
      }
    }
    await console.expectReady()
    await hold(1)
    await slowly('hostname', ...ALL)
    await console.key('Enter')
    await console.expectOnAll(ALL, (host) => new RegExp(`^${host}$`, 'm'))
    await console.expectPrompts()
    await hold(1.5)
    await choose('Ctrl-]', '/')
    await slowly('m[1-3]')
    await console.key('Enter')
    await hold(1)
    await slowly('tail -3 logs/train.log', 'm1', 'm2', 'm3')
    await console.key('Enter')
    await console.expectOnAll(['m1', 'm2', 'm3'], () => /(?:step.*\n){3}root/)
    await console.expectPrompts()
    await hold(2)
    await choose('Ctrl-]', 'a')
    await slowly('clear; cat release', ...ALL)
    await console.key('Enter')
    await console.expectOnAll(ALL, () => /^app 1\.4\.[12]\nroot/m)
    await console.expectPrompts()
    await hold(1)
    await choose('Ctrl-]', 'd')
    await hold(1)
    await choose('Ctrl-]', '=')
    await hold(2)
    await choose('Ctrl-]', '2')
    await console.expectScreen(/m6 +\+ missing/)
    await hold(2)
    await console.key('u')
    await console.expectScreen(/y applies it/)
    await hold(2)
    await console.key('y')
    await console.expectScreen(/24 of 24 steps done/, { timeoutMs: 120_000 })
    await hold(1)
    await console.key('Escape')
    await console.expectScreen(/m6 +✓ good/, { timeoutMs: 120_000 })
    await hold(2)
    await console.key('4')
    await console.expectScreen(/1[0-9] running, \d waiting/, { timeoutMs: 120_000 })
    await hold(4)
  },
)
