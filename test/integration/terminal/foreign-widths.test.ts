/**
 * Terminals have older tables of widths than ours. Whatever character a host prints, in tmux it leaves no trace outside its own cells:
 * each is drawn between two letters and then erased, and only the letters are left.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createCellGrid } from '../../../src/terminal/cells.ts'
import { isPrintableCode } from '../../../src/terminal/clusters.ts'
import { createScreen } from '../../../src/terminal/headless-screen.ts'
import { createColourMap } from '../../../src/ui/compositor/colours.ts'
import { FrameEncoder } from '../../../src/ui/compositor/frame-encoder.ts'
import { enterSequence } from '../../../src/ui/tty/terminal-session.ts'
import { requirement } from '../../support/requirements.ts'
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

/** What a terminal may draw much wider than one cell. */
const LONG = ['\u1100', '\u115f', '\u1161', '👨\u200d', '\u{1f1ea}'].map((text) => text.repeat(16))

/** Each code point by itself, and marks behind a letter, too. */
function* singles(): Generator<string> {
  for (let code = 0xa0; code <= LAST_CODE; code++) {
    if (isSurrogate(code)) continue
    const text = String.fromCodePoint(code)
    if (isPrintableCode(code)) yield text
    if (isMark(text)) yield `e${text}`
  }
}

function* joined(): Generator<string> {
  for (const one of JOINING) for (const two of JOINING) for (const three of JOINING) yield one + two + three
  yield* LONG
}

type Layout = { readonly perPage: number; place(index: number): { readonly row: number; readonly column: number } }
const SIDE_BY_SIDE: Layout = {
  perPage: PER_ROW * SIZE.rows,
  place: (index) => ({ row: Math.floor(index / PER_ROW), column: (index % PER_ROW) * CELL }),
}
/** Two columns are left for the character, and one for the frame. */
const AT_THE_EDGE: Layout = { perPage: SIZE.rows, place: (index) => ({ row: index, column: SIZE.columns - 4 }) }

it.skipIf(!requirement('tmux', 'mkfifo'))('draws no character outside its cells', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-widths-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const fifo = join(directory, 'bytes')
  execFileSync('mkfifo', [fifo])
  const { PATH = '/usr/bin:/bin' } = process.env
  using tmux = new Tmux(`stty raw -echo; exec cat ${fifo}`, SIZE, { PATH, HOME: directory, LC_ALL: 'C.UTF-8' })
  const pipe = openSync(fifo, 'r+')
  onTestFinished(() => closeSync(pipe))
  writeSync(pipe, enterSequence({ mouse: false }))
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
    return screen.visibleText().map((row) => row.trimEnd())
  }
  const spread = new Set<string>()
  let pages = 0
  const show = async (page: readonly string[], { place }: Layout) => {
    const between = (shown: readonly string[]) =>
      shown
        .map((text, index) => {
          const { row, column } = place(index)
          const at = (offset: number) => `\x1b[${row + 1};${column + offset + 1}H`
          return `${at(0)}a${at(1)}${text}${column + CELL > SIZE.columns ? `${at(3)}│` : `${at(4)}z`}`
        })
        .join('')
    draw(between(page))
    const expected = draw(between(page.map(() => ' ')))
    const rows = await tmux.drawnRows(pipe, `page ${pages++}`)
    for (const [index, text] of page.entries()) {
      const { row } = place(index)
      if (rows[row] !== expected[row]) spread.add([...text].map((each) => each.codePointAt(0)?.toString(16)).join('+'))
    }
  }
  const showAll = async (all: Iterable<string>, layout: Layout) => {
    let page: string[] = []
    for (const text of all) {
      page.push(text)
      if (page.length < layout.perPage) continue
      await show(page, layout)
      page = []
    }
    await show(page, layout)
  }
  await showAll(singles(), SIDE_BY_SIDE)
  await showAll(joined(), SIDE_BY_SIDE)
  await showAll(joined(), AT_THE_EDGE)
  expect([...spread]).toEqual([])
})
