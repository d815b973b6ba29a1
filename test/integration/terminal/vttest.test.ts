/**
 * The real vttest in a pane of a compositor. After each of its pictures nothing has left the pane, and the pane shows what a
 * bare xterm.js makes of the same bytes. The pictures that tmux shows otherwise are listed. Left out are its tests of keyboards
 * and printers, and of reports that xterm.js does not give: vttest waits for them.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Pty } from '../../../src/base/pty.ts'
import { createCellGrid } from '../../../src/terminal/cells.ts'
import { createScreen, type Screen } from '../../../src/terminal/headless-screen.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { putSpans } from '../../../src/ui/compositor/canvas.ts'
import { Compositor } from '../../../src/ui/compositor/compositor.ts'
import { findForeignBytes } from '../../support/outer-bytes.ts'
import { requirement } from '../../support/requirements.ts'
import { type ShownCell, UserTerminal } from '../../support/user-terminal.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'
import { pane, style } from '../../unit/ui/compositor/stage.ts'
import { Tmux } from './tmux.ts'

const SIZE = { columns: 80, rows: 24 }
const OUTER = { columns: 130, rows: 30 }
const FRAME = { column: 2, row: 2, width: SIZE.columns + 2, height: SIZE.rows + 2 }
const INSIDE = { column: 3, row: 3, width: SIZE.columns, height: SIZE.rows }
/** A test of vttest with more pictures has no end. */
const MOST_PICTURES = 40
const MENU = /Enter choice number \(0 - \d+\): $/
const PROMPT = /(?:Push <RETURN>|Enter choice number \(0 - \d+\): )$/

/** Choices from the main menu on; the last ones are played one after the other. */
const TESTS: readonly (readonly [name: string, menu: readonly number[], tests: readonly (number | string)[]])[] = [
  ['cursor movements, screen features, character sets, insertion and deletion', [], [1, 2, 3, 8]],
  ['pictures of a VT220', [11, 1, 2], [2, 3, 4]],
  ['soft characters and selective erasure of a VT220', [11, 1], [3, 5, 6]],
  ['cursor movements of a VT320', [11, 2, 2], [1, 2, 3, 4]],
  ['sizes of the page of a VT320', [11, 2, 3], [1, 2]],
  ['pages of a VT320', [11, 2, 4], [1, 2, 3, 4, 5]],
  ['status lines of a VT320', [11, 2, 6, 2], [1, 2, 3]],
  ['cursor movements of a VT420', [11, 3, 2], [7, 8, 9, 10]],
  ['rectangles of a VT420', [11, 3, 3], [6, 7, 8, 9, 10, 11, 12, 13]],
  ['cursor movements of ISO 6429', [11, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]],
  ['colours of ISO 6429', [11, 6], [2, 3, 4, 5, 8, 9]],
  ['insertion and deletion with colours', [11, 6, 6], [1, 2, 3]],
  ['other features of ISO 6429', [11, 7], [2, 3, 4, 5, 6]],
  ['titles and windows of xterm', [11, 8], ['3\rOWNED', 8]],
  ['alternate screens of xterm', [11, 8, 7], [1, 2, 3]],
]

/** By test and picture. */
const OTHERWISE_IN_TMUX: Readonly<Record<string, string>> = {
  '1.2': 'a pane keeps its columns: a switch to 132 is ignored, as by xterm.js, and erases nothing; tmux erases',
  '1.3': 'the same on the way back to 80 columns; and tmux wraps letters here that belong to the right margin',
  '1.4': 'the same',
  '2.11': 'origin mode: tmux puts the line that belongs at the bottom of the screen at its top',
  '3.1': 'tmux has no British character set: # instead of the pound sign',
}

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-vttest-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const environment = () => ({
  ...{ PATH: process.env.PATH ?? '', HOME: directory, LC_ALL: 'C.UTF-8', TERM: 'xterm-256color' },
})

type Picture = { readonly bytes: Buffer; readonly rows: readonly string[]; readonly isMenu: boolean }

class Vttest implements Disposable {
  readonly #pty: Pty
  readonly #screen: Screen
  readonly #bare = new UserTerminal(SIZE.columns, SIZE.rows)
  readonly #outer = new UserTerminal(OUTER.columns, OUTER.rows)
  readonly #clock = new ManualClock()
  readonly #written: Uint8Array[] = []
  readonly #compositor
  #around: readonly string[][] = []
  #printed: Uint8Array[] = []
  #hasEnded = false

  constructor() {
    this.#screen = createScreen({
      ...SIZE,
      historyLines: 100,
      handlers: { onReply: (bytes) => void this.#pty.write(bytes) },
    })
    const write = (bytes: Uint8Array) => {
      this.#written.push(bytes)
      this.#outer.write(bytes)
      return true
    }
    this.#compositor = new Compositor({
      writer: { write, isDraining: false, onDrain: () => ({ [Symbol.dispose]() {} }) },
      ...{ clock: this.#clock, colourDepth: 'truecolor', isUtf8: true },
    })
    const chrome = createCellGrid(OUTER.columns, OUTER.rows)
    for (let row = 0; row < OUTER.rows; row++)
      putSpans(chrome, 0, row, OUTER.columns, [{ text: '漢 around '.repeat(13), style }])
    const panes = [pane('m1', this.#screen, FRAME)]
    this.#compositor.setScene({ ...OUTER, chrome, panes, overlays: [], cursor: { pane: 'm1' } })
    this.#clock.advance(40)
    this.#pty = spawnLocalPty(
      { file: 'vttest', args: [], ...SIZE, term: 'xterm-256color', environment: environment(), directory },
      {
        onData: (bytes) => {
          this.#printed.push(bytes)
          this.#screen.parse(bytes)
          this.#bare.write(bytes)
        },
        onExit: () => {
          this.#hasEnded = true
        },
      },
    )
  }

  /** Up to the main menu. */
  static async start(): Promise<Vttest> {
    const vttest = new Vttest()
    await waitUntil(() => vttest.#outer.isDrawn, 'the compositor')
    vttest.#around = vttest.#outside()
    await vttest.picture('')
    return vttest
  }

  /** Types, and gives what was printed up to the next prompt, once the picture is found to be whole. */
  async picture(keys: string): Promise<Picture> {
    this.#printed = []
    this.#pty.write(Buffer.from(keys))
    await waitUntil(() => this.#hasEnded || PROMPT.test(this.#text()), `the picture after ${JSON.stringify(keys)}`)
    expect(this.#hasEnded, this.#screen.visibleText().join('\n')).toBe(false)
    const rows = this.#screen.visibleText()
    const picture = { bytes: Buffer.concat(this.#printed), isMenu: MENU.test(this.#text()), rows }
    this.#compositor.invalidate('m1')
    this.#clock.advance(40)
    await waitUntil(() => this.#bare.isDrawn && this.#outer.isDrawn, 'the emulators')
    expect(differences(shownIn(this.#outer.cells(INSIDE)), shownIn(this.#bare.cells()))).toEqual([])
    expect(differences(this.#outside(), this.#around)).toEqual([])
    expect(findForeignBytes(Buffer.concat(this.#written.splice(0)))).toBeUndefined()
    return picture
  }

  #text(): string {
    const text = Buffer.concat(this.#printed.slice(-20)).toString('latin1')
    return text.replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()#%*+-].|\x1b[^[]|[\x0e\x0f]/g, '')
  }

  #outside(): readonly string[][] {
    const { column, row, width, height } = INSIDE
    const isInside = (x: number, y: number) => x >= column && x < column + width && y >= row && y < row + height
    return shownIn(this.#outer.cells().map((cells, y) => cells.filter((_, x) => !isInside(x, y))))
  }

  [Symbol.dispose](): void {
    this.#pty.close()
    this.#compositor[Symbol.dispose]()
    this.#screen[Symbol.dispose]()
  }
}

/** Cells as they look: on a blank only some attributes show. */
function shownIn(rows: readonly ShownCell[][]): readonly string[][] {
  return rows.map((row) =>
    row.map(({ text, width, foreground, background, isBold, isDim, isInverse, isUnderline }) => {
      const isBlank = width > 0 && (text === '' || text === ' ')
      const looks = [isInverse ? 'inverse' : '', isUnderline ? 'underlined' : '', `on ${background}`]
      if (isBlank && !isInverse && !isUnderline) return `blank on ${background}`
      return [
        isBlank ? 'blank' : text,
        foreground,
        ...looks,
        ...(isBlank ? [] : [isBold ? 'bold' : '', isDim ? 'dim' : '']),
      ].join(' ')
    }),
  )
}

function differences(shown: readonly string[][], wanted: readonly string[][]): readonly string[] {
  return wanted.flatMap((row, y) =>
    row.flatMap((cell, x) =>
      cell === shown[y]?.[x] ? [] : `row ${y}, column ${x}: ${shown[y]?.[x]} instead of ${cell}`,
    ),
  )
}

describe.skipIf(!requirement('vttest'))('vttest in a pane', () => {
  it.each(TESTS)('shows its %s as xterm.js does, and nothing leaves the pane', async (_, menu, tests) => {
    using vttest = await Vttest.start()
    for (const choice of menu) expect((await vttest.picture(`${choice}\r`)).isMenu).toBe(true)
    for (const test of tests) {
      let { isMenu } = await vttest.picture(`${test}\r`)
      let pictures = 1
      for (; !isMenu && pictures < MOST_PICTURES; pictures++) isMenu = (await vttest.picture('\r')).isMenu
      expect(isMenu, `the menu after test ${JSON.stringify(test)}`).toBe(true)
    }
  })

  it.skipIf(!requirement('tmux', 'mkfifo'))('shows the same text as tmux, except for the listed pictures', async () => {
    using vttest = await Vttest.start()
    const fifo = join(directory, 'bytes')
    execFileSync('mkfifo', [fifo])
    using tmux = new Tmux(`stty raw -echo; exec cat ${fifo}`, SIZE, environment())
    const bytes = openSync(fifo, 'r+')
    const different: string[] = []
    let count = 0
    const show = async (name: string, picture: Picture) => {
      writeSync(bytes, picture.bytes)
      const rows = await tmux.drawnRows(bytes, `picture ${count++}`)
      if (rows.join('\n') !== picture.rows.join('\n')) different.push(name)
    }
    for (const test of [1, 2, 3, 8]) {
      let picture = await vttest.picture(`${test}\r`)
      for (let number = 1; !picture.isMenu && number < MOST_PICTURES; number++) {
        await show(`${test}.${number}`, picture)
        picture = await vttest.picture('\r')
      }
    }
    closeSync(bytes)
    expect(different).toEqual(Object.keys(OTHERWISE_IN_TMUX))
  })
})
