/**
 * Terminals have older tables of widths than ours. Whatever character a host prints, in tmux it leaves no trace outside its own cells:
 * each is drawn between two letters and then erased, and only the letters are left.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createCellGrid } from '../../../src/terminal/cells.ts'
import { isPrintableCode } from '../../../src/terminal/clusters.ts'
import { createScreen } from '../../../src/terminal/headless-screen.ts'
import { createColourMap } from '../../../src/ui/compositor/colours.ts'
import { FrameEncoder } from '../../../src/ui/compositor/frame-encoder.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { Tmux } from './tmux.ts'

const SIZE = { columns: 240, rows: 60 }
/** More than the encoder writes again without a change. */
const CELL = 8
const PER_ROW = SIZE.columns / CELL
const LAST_CODE = 0x323af

const isSurrogate = (code: number) => code >= 0xd800 && code < 0xe000
const isMark = (text: string) => /\p{M}|\p{Cf}|[\u1160-\u11ff\ud7b0-\ud7fb]/u.test(text)

/** What joins, or may: parts of Korean syllables, Thai and Indian vowels, selectors, joiners, emoji, skin tones, flags, tags. */
const JOINING = [
  ...[
    '\u1100',
    '\u1161',
    '\u11a8',
    '\ud7b0',
    '\u0e33',
    '\u0915',
    '\u093e',
    '\u0301',
    '\u20e3',
    '\ufe0f',
    '\u200d',
    '\u00ad',
  ],
  ...['#', '漢', '❤', '👨', '\u{1f3fd}', '\u{1f1ea}', '\u{e0067}', '\u{1fae8}'],
]

/** Each code point by itself, and marks behind a letter, too; then all triples of what joins. */
function* texts(): Generator<string> {
  for (let code = 0xa0; code <= LAST_CODE; code++) {
    if (isSurrogate(code)) continue
    const text = String.fromCodePoint(code)
    if (isPrintableCode(code)) yield text
    if (isMark(text)) yield `e${text}`
  }
  for (const one of JOINING) for (const two of JOINING) for (const three of JOINING) yield one + two + three
}

it.skipIf(!requirement('tmux', 'mkfifo'))('draws no character outside its cells', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-widths-'))
  const fifo = join(directory, 'bytes')
  execFileSync('mkfifo', [fifo])
  const { PATH = '/usr/bin:/bin' } = process.env
  using tmux = new Tmux(`stty raw -echo; exec cat ${fifo}`, SIZE, { PATH, HOME: directory, LC_ALL: 'C.UTF-8' })
  const pipe = openSync(fifo, 'r+')
  const encoder = new FrameEncoder(createColourMap('truecolor'), true)
  const front = createCellGrid(SIZE.columns, SIZE.rows)
  const draw = (bytes: string) => {
    using screen = createScreen({ ...SIZE, historyLines: 0, handlers: { onReply: () => {} } })
    screen.parse(Buffer.from(bytes))
    const back = createCellGrid(SIZE.columns, SIZE.rows)
    screen.copyInto(back, 0, 0, SIZE.columns, SIZE.rows)
    encoder.begin()
    encoder.difference(front, back, { column: 0, row: 0, width: SIZE.columns, height: SIZE.rows })
    writeSync(pipe, encoder.finish())
  }
  const spread: string[] = []
  let pages = 0
  const show = async (page: readonly string[]) => {
    const between = (shown: readonly string[]) =>
      shown
        .map((text, index) => {
          const row = 1 + Math.floor(index / PER_ROW)
          const column = 1 + (index % PER_ROW) * CELL
          return `\x1b[${row};${column}Ha\x1b[${row};${column + 1}H${text}\x1b[${row};${column + 4}Hz`
        })
        .join('')
    draw(between(page))
    draw(between(page.map(() => ' ')))
    const title = `page ${pages++}`
    writeSync(pipe, `\x1b]2;${title}\x07`)
    await waitUntil(async () => (await tmux.title()) === title, title)
    const rows = await tmux.rows()
    for (const [index, text] of page.entries()) {
      const row = rows[Math.floor(index / PER_ROW)] ?? []
      const at = (index % PER_ROW) * CELL
      const around = Array.from({ length: CELL }, (_, offset) => row[at + offset]?.text ?? ' ').join('')
      if (around !== 'a   z   ') spread.push([...text].map((each) => each.codePointAt(0)?.toString(16)).join('+'))
    }
  }
  let page: string[] = []
  for (const text of texts()) {
    page.push(text)
    if (page.length < PER_ROW * SIZE.rows) continue
    await show(page)
    page = []
  }
  await show(page)
  closeSync(pipe)
  rmSync(directory, { recursive: true })
  expect(spread).toEqual([])
})
