/**
 * Takes the pictures of the documentation from the real program: `muster demo` in a terminal, its cells as SVG
 * (`npm run pictures`, `npm run pictures -- network` for some). Nothing in them is drawn by hand.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ConsoleDriver, openConsole } from '../test/support/console-driver.ts'
import type { ShownCell } from '../test/support/user-terminal.ts'

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

function renderSvg(rows: readonly (readonly ShownCell[])[], title: string, colours: Colours): string {
  const columns = rows[0]?.length ?? 0
  const width = columns * CELL.width + 2 * MARGIN
  const height = rows.length * CELL.height + 2 * MARGIN
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="'DejaVu Sans Mono','Menlo','Consolas',monospace" font-size="15" shape-rendering="crispEdges">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="${colours.background}"/>`,
  ]
  rows.forEach((row, y) => {
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
      const text = row
        .slice(from, to)
        .map((cell) => (cell.width === 0 ? '' : cell.text || ' '))
        .join('')
      const look = looked[from]
      if (look === undefined || text.trim() === '') continue
      out.push(
        `<text x="${MARGIN + from * CELL.width}" y="${top + BASELINE}" xml:space="preserve" textLength="${(to - from) * CELL.width}" fill="${look.foreground}"${look.extra}>${escapeXml(text)}</text>`,
      )
    }
  })
  return `${out.join('\n')}\n</svg>\n`
}

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
  const file = join(import.meta.dirname, '..', 'docs', 'images', `${name}.svg`)
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
