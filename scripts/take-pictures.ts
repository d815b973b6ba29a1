/**
 * Takes the pictures of the documentation from the real program: `muster demo` in a terminal, its cells as SVG
 * (`npm run pictures`, `npm run pictures -- network` for some). Nothing in them is drawn by hand.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbeddedHosts } from '../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../src/terminal/local-pty.ts'
import { type ConsoleDriver, openConsole } from '../test/support/console-driver.ts'
import { writeEmbeddedInventory } from '../test/support/embedded-inventory.ts'
import type { ShownCell } from '../test/support/user-terminal.ts'

const CELL = { width: 8.4, height: 18 }
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

function renderSvg(rows: readonly (readonly ShownCell[])[], title: string, colours: Colours): string {
  const columns = rows[0]?.length ?? 0
  const width = columns * CELL.width + 2 * MARGIN
  const height = rows.length * CELL.height + 2 * MARGIN
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toFixed(1)} ${height}" font-family="'DejaVu Sans Mono','Menlo','Consolas',monospace" font-size="14">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="${colours.background}"/>`,
  ]
  rows.forEach((row, y) => {
    const top = MARGIN + y * CELL.height
    for (let start = 0; start < row.length; ) {
      const first = row[start]
      if (!first) break
      const look = looks(first, colours)
      let end = start + 1
      for (let next = row[end]; next && JSON.stringify(looks(next, colours)) === JSON.stringify(look); next = row[end])
        end++
      const left = MARGIN + start * CELL.width
      const span = (end - start) * CELL.width
      if (look.background !== colours.background) {
        out.push(
          `<rect x="${left.toFixed(1)}" y="${top}" width="${span.toFixed(1)}" height="${CELL.height}" fill="${look.background}"/>`,
        )
      }
      const text = row
        .slice(start, end)
        .map((cell) => (cell.width === 0 ? '' : cell.text || ' '))
        .join('')
      if (text.trim() !== '') {
        out.push(
          `<text x="${left.toFixed(1)}" y="${top + 14}" xml:space="preserve" textLength="${span.toFixed(1)}" fill="${look.foreground}"${look.extra}>${escapeXml(text)}</text>`,
        )
      }
      start = end
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
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  if (!isWanted(name)) return
  await using console = await openConsole({ args, size, environment: { ...environment, COLORTERM: 'truecolor' } })
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

await picture('console', 'Six hosts, four of them receive what is typed', [126, 36], ['demo'], async (console) => {
  await console.type('hostname; ls\r')
  await console.expectOnAll(['m1', 'm6'], () => /README/)
  await console.receivers('m[1-4]')
  await console.type('tail -3 logs/train.log\r')
  await console.expectOnAll(['m1', 'm2', 'm3', 'm4'], () => /loss.*\n.*loss.*\n.*loss[^\n]*\nroot/)
  await console.type('echo once, in four places')
  await console.expectOnAll(['m1', 'm2', 'm3', 'm4'], () => /four places/)
})
await picture(
  'differences',
  'Equal panes folded into one, and who differs',
  [126, 24],
  ['demo', '--count', '12'],
  async (console) => {
    await console.type('cat release\r')
    await console.expectOnAll(['m1', 'm6'], (host) => new RegExp(`release\\n.+\\n.*${host}:`))
    await console.leader('=')
    await console.leader('d')
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
  await console.type('i=0; while [ $i -lt 60 ]; do ls -lR /usr > /dev/null; sleep 1; i=$((i+1)); done\r')
  await console.leader('3')
  await console.expectScreen(/\(here\) +\d+%.*[▁-█]{4}/)
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

await using hosts = await startEmbeddedHosts({ count: 6, spawnPty: spawnLocalPty })
using inventory = writeEmbeddedInventory(hosts, ['trust: { mesh: "m[1-5]" }'])
await picture(
  'bring-up',
  'How the hosts stand, and the plan that waits for a yes',
  [140, 30],
  ['--hosts', inventory.file],
  async (console) => {
    await console.leader('2')
    await console.expectScreen(/m5 +\+ missing/)
    await console.key('u')
    await console.expectScreen(/Esc discards it/)
  },
  inventory.environment,
)
