import { describe, expect, it } from 'vitest'
import {
  BLINK,
  BOLD,
  createCellGrid,
  DIM,
  INVERSE,
  INVISIBLE,
  ITALIC,
  OVERLINE,
  paletteColour,
  rgbColour,
  STRIKETHROUGH,
  UNDERLINE,
} from '../../../src/terminal/cells.ts'
import { allText, cellAt, invalidCell, openScreen, rowText } from './screen-harness.ts'

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}\r\n`).join('')

describe('cells of a screen', () => {
  it('hold characters with their colours and attributes', () => {
    const cells = openScreen().feed('\x1b[1;3;4;38;5;196;48;2;1;2;3mA\x1b[m b').cells()
    expect(cellAt(cells, 0, 0)).toEqual({
      text: 'A',
      foreground: paletteColour(196),
      background: rgbColour(0x010203),
      attributes: BOLD | ITALIC | UNDERLINE,
    })
    expect(cellAt(cells, 2, 0)).toEqual({ text: 'b', foreground: 0, background: 0, attributes: 0 })
  })

  it.each([
    ['1', BOLD],
    ['2', DIM],
    ['3', ITALIC],
    ['4', UNDERLINE],
    ['4:3', UNDERLINE],
    ['5', BLINK],
    ['7', INVERSE],
    ['8', INVISIBLE],
    ['9', STRIKETHROUGH],
    ['53', OVERLINE],
  ])('know SGR %s', (parameter, attribute) => {
    expect(cellAt(openScreen().feed(`\x1b[${parameter}mx`).cells(), 0, 0).attributes).toBe(attribute)
  })

  it.each([
    ['31', paletteColour(1)],
    ['91', paletteColour(9)],
    ['38;5;9', paletteColour(9)],
    ['38;2;255;128;0', rgbColour(0xff8000)],
    ['38:2::255:128:0', rgbColour(0xff8000)],
    ['38;2;255;128;0;34', paletteColour(4)],
    ['38;2;255;128;0;39', 0],
  ])('know the colour %s', (parameter, colour) => {
    expect(cellAt(openScreen().feed(`\x1b[${parameter}mx`).cells(), 0, 0).foreground).toBe(colour)
  })

  it('are equal numbers if they look equal', () => {
    const spaces = openScreen().feed('\x1b[1;31ma\x1b[32m \x1b[m  b').cells()
    const gaps = openScreen().feed('\x1b[1;38;5;1ma\x1b[m\x1b[5Gb').cells()
    expect(spaces.words).toEqual(gaps.words)
  })

  it('keep what is visible of a blank: its background, its underline', () => {
    const cells = openScreen().feed('\x1b[44m \x1b[m\x1b[4;31m \x1b[m').cells()
    expect(cellAt(cells, 0, 0)).toEqual({ text: ' ', foreground: 0, background: paletteColour(4), attributes: 0 })
    expect(cellAt(cells, 1, 0)).toEqual({
      text: ' ',
      foreground: paletteColour(1),
      background: 0,
      attributes: UNDERLINE,
    })
  })

  it('hold wide characters in two cells, clusters in one', () => {
    const cells = openScreen().feed('漢e\u0301👨‍👩‍👧❤️x').cells()
    const texts = Array.from({ length: 8 }, (_, column) => cellAt(cells, column, 0).text)
    expect(texts).toEqual(['漢', '', 'e\u0301', '👨‍👩‍👧', '', '❤️', '', 'x'])
    expect(invalidCell(cells)).toBeUndefined()
  })

  it('are blank if a wide character was half overwritten', () => {
    const cells = openScreen().feed('漢漢\x1b[2Gx\x1b[5G\x1b[4Gy').cells()
    expect(rowText(cells, 0)).toBe(' x y')
    expect(invalidCell(cells)).toBeUndefined()
  })

  it('hold nothing that would act on the terminal or hide text', () => {
    const cells = openScreen({ columns: 40 }).feed('a\u200bb\u202ec\u2066d\ufeffe\u2028f\u00adg\u0301').cells()
    expect(invalidCell(cells)).toBeUndefined()
    expect(rowText(cells, 0)).toMatch(/^a.*b.*c.*d.*e.*f.*g\u0301$/)
  })

  it('show U+FFFD for invalid UTF-8', () => {
    expect(
      rowText(
        openScreen()
          .feed(Uint8Array.of(0x61, 0xff, 0x62, 0xc3, 0x63))
          .cells(),
        0,
      ),
    ).toBe('a\ufffdb\ufffdc')
  })

  it('show characters that arrive byte by byte', () => {
    const harness = openScreen()
    for (const byte of Buffer.from('é漢👍x')) harness.feed(Uint8Array.of(byte))
    expect(rowText(harness.cells(), 0)).toBe('é漢👍x')
  })
})

describe('copying a screen', () => {
  it('clips to the rectangle and blanks a wide character that is cut', () => {
    const { screen } = openScreen().feed('ab漢cd\r\nsecond')
    const grid = createCellGrid(10, 4)
    for (let at = 0; at < grid.words.length; at += 4) grid.words[at] = 0x0100_0000 | 0x2e
    screen.copyInto(grid, 2, 1, 3, 2)
    expect([0, 1, 2, 3].map((row) => rowText(grid, row))).toEqual([
      '..........',
      '..ab .....',
      '..sec.....',
      '..........',
    ])
    expect(invalidCell(grid)).toBeUndefined()
  })

  it('blanks what lies beyond the screen and leaves alone what lies beyond the target', () => {
    const { screen } = openScreen({ columns: 4, rows: 1 }).feed('abcd')
    const grid = createCellGrid(8, 2)
    for (let at = 0; at < grid.words.length; at += 4) grid.words[at] = 0x0100_0000 | 0x2e
    screen.copyInto(grid, 1, 0, 20, 20)
    expect([rowText(grid, 0), rowText(grid, 1)]).toEqual(['.abcd', '.'])
  })

  it('copies only the row of an echo to where the screen was drawn before', () => {
    const harness = openScreen({ rows: 5 }).feed('one\r\ntwo\r\n$ ')
    const grid = harness.cells()
    const { revision } = harness.screen
    harness.feed('x')
    expect(harness.screen.copyInto(grid, 0, 0, 20, 5, revision)).toEqual({ first: 2, end: 3 })
    expect(grid).toEqual(harness.cells())
    harness.feed('\r\n\n\n\n')
    expect(harness.screen.copyInto(grid, 0, 0, 20, 5, revision)).toEqual({ first: 0, end: 5 })
  })

  it('increases its revision when cells change', () => {
    const harness = openScreen()
    const revisions = [harness.screen.revision]
    const note = () => revisions.push(harness.screen.revision)
    harness.feed(numbered(20))
    note()
    harness.screen.viewOffset = 3
    note()
    harness.screen.resize(30, 6)
    note()
    harness.screen.restart()
    note()
    expect(revisions.toSorted((a, b) => a - b)).toEqual(revisions)
    expect(new Set(revisions).size).toBe(revisions.length)
  })
})

describe('the view of a screen', () => {
  it('follows the output at offset 0', () => {
    const { screen } = openScreen().feed(numbered(20))
    expect(screen.visibleText()).toEqual(['line 16', 'line 17', 'line 18', 'line 19', ''])
    expect(screen.historyLines).toBe(16)
  })

  it('stays where it is while output arrives', () => {
    const harness = openScreen().feed(numbered(20))
    harness.screen.viewOffset = 10
    const before = harness.screen.visibleText()
    harness.feed(numbered(7))
    expect(harness.screen.visibleText()).toEqual(before)
    expect(harness.screen.viewOffset).toBe(17)
  })

  it('stays where it is while old lines are dropped, until its own lines are', () => {
    const harness = openScreen({ historyLines: 20 }).feed(numbered(40))
    harness.screen.viewOffset = 10
    const before = harness.screen.visibleText()
    harness.feed(numbered(5))
    expect(harness.screen.visibleText()).toEqual(before)
    harness.feed(numbered(200))
    expect(harness.screen.viewOffset).toBe(20)
    harness.screen.viewOffset = 0
    harness.feed('last')
    expect(harness.screen.visibleText().at(-1)).toBe('last')
  })

  it('accepts any offset and stays within the history', () => {
    const { screen } = openScreen().feed(numbered(20))
    screen.viewOffset = 1e9
    expect(screen.viewOffset).toBe(16)
    screen.viewOffset = -5
    expect(screen.viewOffset).toBe(0)
  })

  it('hides a cursor that is out of view', () => {
    const { screen } = openScreen().feed(numbered(20))
    expect(screen.cursor).toMatchObject({ row: 4, column: 0, isVisible: true })
    screen.viewOffset = 1
    expect(screen.cursor.isVisible).toBe(false)
  })
})

describe('the modes of a screen', () => {
  it.each([
    ['?2004', 'isBracketedPaste', true],
    ['?1', 'isApplicationCursor', true],
    ['?66', 'isApplicationKeypad', true],
    ['?1049', 'isAlternateScreen', true],
    ['?9', 'mouse', 'x10'],
    ['?1000', 'mouse', 'vt200'],
    ['?1002', 'mouse', 'drag'],
    ['?1003', 'mouse', 'any'],
    ['?1006', 'isMouseSgr', true],
    ['?1004', 'isFocusReporting', true],
  ] as const)('follow %s', (mode, name, value) => {
    const harness = openScreen()
    const before = harness.screen.modes
    expect(before[name]).toBe(name === 'mouse' ? 'none' : false)
    expect(harness.feed(`\x1b[${mode}h`)).toBeDefined()
    expect(harness.screen.modes).toEqual({ ...before, [name]: value })
    harness.feed(`\x1b[${mode}l`)
    expect(harness.screen.modes).toEqual(before)
  })

  it('have the cursor as the program set it', () => {
    const harness = openScreen().feed('\x1b[2;3H\x1b[4 q')
    expect(harness.screen.cursor).toEqual({ column: 2, row: 1, isVisible: true, style: 'underline' })
    harness.feed('\x1b[?25l\x1b[6 q')
    expect(harness.screen.cursor).toMatchObject({ isVisible: false, style: 'bar' })
  })

  it('keep the cursor on the screen after the last column', () => {
    expect(openScreen().feed('x'.repeat(20)).screen.cursor).toMatchObject({ column: 19, row: 0 })
  })
})

describe('the alternate screen', () => {
  it('has no history, and restores the first screen', () => {
    const harness = openScreen().feed('shell$ ')
    harness.feed(`\x1b[?1049h\x1b[H${numbered(30)}`)
    expect(harness.screen.historyLines).toBe(0)
    harness.feed('\x1b[?1049l')
    expect(harness.screen.visibleText()[0]).toBe('shell$')
  })
})

describe('resizing a screen', () => {
  it('keeps it ordinary, unless a program has moved its tab stops', () => {
    const harness = openScreen({ columns: 120, rows: 40 }).feed(numbered(60))
    const sizes = [
      [240, 67],
      [80, 24],
      [120, 40],
      [100, 30],
      [7, 30],
      [160, 9],
    ] as const
    for (const [columns, rows] of sizes) {
      harness.screen.resize(columns, rows)
      expect(harness.screen.hasPlainTabs).toBe(true)
      expect(harness.feed('\r\x1b[K\tx').screen.textBeforeCursor().indexOf('x')).toBe(Math.min(8, columns - 1))
    }
    harness.feed('\r\x1b[3C\x1bH')
    for (const [columns, rows] of sizes) {
      harness.screen.resize(columns, rows)
      expect(harness.screen.hasPlainTabs).toBe(false)
    }
  })

  it.each([
    ['\x0e', true],
    ['\x1b)0', true],
    ['\x1b)0\x0e', false],
    ['\x1b(0', false],
    // The shift back would bring it.
    ['\x1b(0\x0e', false],
    ['\x1b(0\x0e\x0f\x1b(B', true],
  ])('knows whether it shows text as it is printed after %j', (printed, isOrdinary) => {
    expect(openScreen().feed(printed).screen.isOrdinary).toBe(isOrdinary)
  })

  it('rewraps lines', () => {
    const { screen } = openScreen().feed('0123456789abcdefghijKLM')
    expect(screen.visibleText().slice(0, 2)).toEqual(['0123456789abcdefghij', 'KLM'])
    screen.resize(12, 5)
    expect(screen.visibleText().slice(0, 2)).toEqual(['0123456789ab', 'cdefghijKLM'])
    screen.resize(30, 5)
    expect(screen.visibleText()[0]).toBe('0123456789abcdefghijKLM')
  })

  it('works down to one cell and up to 500 × 200, in the middle of a sequence', () => {
    const harness = openScreen().feed(`${numbered(50)}漢字\x1b[3`)
    harness.screen.resize(1, 1)
    expect([harness.screen.columns, harness.screen.rows]).toEqual([1, 1])
    expect(invalidCell(harness.cells())).toBeUndefined()
    harness.feed('1mx漢\r\n漢')
    expect(invalidCell(harness.cells())).toBeUndefined()
    harness.screen.resize(500, 200)
    harness.feed('end')
    expect(invalidCell(harness.cells())).toBeUndefined()
    expect(allText(harness.screen).at(-1)).toMatch(/end$/)
  })
})

describe('the text of a screen', () => {
  it('has all kept lines, oldest first', () => {
    const { screen } = openScreen({ historyLines: 3 }).feed(numbered(20))
    expect(allText(screen)).toEqual(['line 13', 'line 14', 'line 15', 'line 16', 'line 17', 'line 18', 'line 19'])
  })
})

describe('searching a screen', () => {
  it('ignores case unless the search text has a capital', () => {
    const { screen } = openScreen().feed('Error error\r\nERROR')
    expect(screen.search('error')).toEqual([
      { line: 0, column: 0, length: 5 },
      { line: 0, column: 6, length: 5 },
      { line: 1, column: 0, length: 5 },
    ])
    expect(screen.search('Error')).toEqual([{ line: 0, column: 0, length: 5 }])
  })

  it('finds wrapped text, and gives positions in cells', () => {
    const { screen } = openScreen({ columns: 10 }).feed('漢漢needle here')
    expect(screen.search('needle')).toEqual([{ line: 0, column: 4, length: 6 }])
    expect(screen.search('e here')).toEqual([{ line: 0, column: 9, length: 6 }])
    expect(screen.search('漢')).toEqual([
      { line: 0, column: 0, length: 2 },
      { line: 0, column: 2, length: 2 },
    ])
  })

  it('finds clusters, and keeps positions after letters whose lower case is longer', () => {
    const { screen } = openScreen().feed('İé👨‍👩‍👧x')
    expect(screen.search('👨‍👩‍👧')).toEqual([{ line: 0, column: 2, length: 2 }])
    expect(screen.search('x')).toEqual([{ line: 0, column: 4, length: 1 }])
  })

  it('finds text that continues in the next row, with its spaces and beside a wide character that did not fit', () => {
    const { screen } = openScreen({ columns: 10 }).feed('0123456789abc  d\r\n12345678  x\r\n123456789漢y')
    expect(allText(screen)).toEqual(['0123456789', 'abc  d', '12345678', 'x', '123456789', '漢y'])
    expect(screen.search('9abc  d')).toEqual([{ line: 0, column: 9, length: 7 }])
    expect(screen.search('12345678  x')).toEqual([{ line: 2, column: 0, length: 11 }])
    expect(screen.search('9漢y')).toEqual([{ line: 4, column: 8, length: 5 }])
  })

  it('finds the newest thousand matches in the history', () => {
    const { screen } = openScreen({ historyLines: 2000 }).feed(numbered(1200))
    const hits = screen.search('line')
    expect(hits.length).toBe(1000)
    expect([hits[0]?.line, hits.at(-1)?.line]).toEqual([200, 1199])
    expect(openScreen().feed(numbered(50)).screen.search('line').length).toBe(50)
  })

  it('finds nothing for an empty text', () => {
    expect(openScreen().feed('abc').screen.search('')).toEqual([])
  })

  it('searches ten thousand lines', () => {
    const { screen } = openScreen({ columns: 80, historyLines: 10_000 })
    const line = Buffer.from(`${'some words of a log line '.repeat(3)}\r\n`)
    for (let count = 0; count < 10_100; count++) screen.parse(line)
    expect(screen.search('not there')).toEqual([])
    expect(screen.search('words').at(-1)?.line).toBe(10_003)
  })
})

describe('what a screen sends', () => {
  it('answers the queries of a program', () => {
    const { replies } = openScreen().feed('\x1b[c\x1b[5n\x1b[3;4H\x1b[6n\x1b[?2004$p')
    expect(replies).toEqual(['\x1b[?1;2c', '\x1b[0n', '\x1b[3;4R', '\x1b[?2004;2$y'])
  })

  it('answers a flood of queries no faster than a limit', () => {
    const harness = openScreen().feed('\x1b[6n'.repeat(10_000))
    expect(harness.replies.length).toBe(200)
    harness.time += 1000
    harness.feed('\x1b[6n'.repeat(10_000))
    expect(harness.replies.length).toBe(300)
  })

  it('rings at most a few times a second', () => {
    const harness = openScreen().feed('\x07'.repeat(1000)).feed('\x07')
    expect(harness.bells).toBe(1)
    harness.time += 1000
    harness.feed('\x07')
    expect(harness.bells).toBe(2)
  })

  it.each([
    ['titles', '\x1b]0;first\x07\x1b]2;a\u202eb\u200bc\x07'],
    ['the clipboard', '\x1b]52;c;aGVsbG8=\x07'],
    ['a question for the clipboard', '\x1b]52;c;?\x07'],
    ['a hyperlink', '\x1b]8;;http://example.com/\x07'],
    ['a notification', '\x1b]9;hello\x07\x1b]777;notify;a;b\x07'],
    ['an image', '\x1bPq#0;2;0;0;0~~\x1b\\\x1b]1337;File=inline=1:AAAA\x07\x1b_Gf=32;AAAA\x1b\\'],
    ['colours', '\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;#ffffff\x07'],
    ['the size of the window', '\x1b[18t\x1b[14t\x1b[21t\x1b[8;50;100t'],
    ['an answer-back', '\x05'],
    ['a print', '\x1b[5i\x1b[4i'],
  ])('is nothing for %s', (_, sequence) => {
    const harness = openScreen().feed(`a${sequence}b`)
    expect(harness.replies).toEqual([])
    expect(harness.screen.visibleText()[0]).toBe('ab')
    expect([harness.screen.columns, harness.screen.rows]).toEqual([20, 5])
  })

  it('never repeats text of the program in an answer', () => {
    const { replies } = openScreen().feed('\x1bP$q\rrm -rf /\r\x1b\\\x1b]0;\rrm\r\x07\x1b[21t\x1bP+q726d\x1b\\')
    for (const reply of replies) expect(reply).toMatch(/^\x1b[[P][0-9;?$>rycnRm"pq ]*(\x1b\\)?$/)
  })
})

describe('a string that does not end', () => {
  it('is cancelled after a while, so that the pane shows text again', () => {
    const harness = openScreen().feed('before \x1b]0;never ended')
    harness.time += 6000
    harness.feed('prompt$ ')
    expect(harness.screen.visibleText()[0]).toBe('before prompt$')
  })

  it.each([
    '\x1b]52;c;',
    '\x1bPq',
    '\x1b_G',
    '\x1b^',
    '\x1bX',
    '\x1b]0;',
  ])('is cancelled after some megabytes: %j', (opener) => {
    const harness = openScreen().feed(opener)
    const chunk = Buffer.alloc(64 * 1024, 'A')
    for (let sent = 0; sent < 9 * 1024 * 1024; sent += chunk.length) harness.feed(chunk)
    expect(harness.feed('\r\nprompt$ ').screen.visibleText().at(-1)).toBe('prompt$')
  })

  it('shows nothing of a long one that does end', () => {
    const harness = openScreen().feed('a\x1bPq')
    const chunk = Buffer.alloc(64 * 1024, '~')
    for (let sent = 0; sent < 2 * 1024 * 1024; sent += chunk.length) harness.feed(chunk)
    harness.feed('\x1b').feed('\\b')
    expect(harness.screen.visibleText()[0]).toBe('ab')
  })
})

describe('a screen whose shell is a new one', () => {
  it('keeps its text and history, and starts below them with default modes', () => {
    const harness = openScreen().feed(`${numbered(20)}$ vim`)
    const fresh = openScreen().screen.modes
    harness.feed(
      '\x1b[?1049h\x1b[2J\x1b[?1003;1006;2004;1004;1h\x1b=\x1b[?25l\x1b[31m\x1b[2;3r\x1b(0\x1b[Htext\x1b]0;half',
    )
    harness.screen.restart()
    harness.feed('qqq')
    expect(harness.screen.modes).toEqual(fresh)
    expect(harness.screen.cursor).toMatchObject({ column: 3, row: 4, isVisible: true })
    expect(harness.screen.visibleText().slice(-3)).toEqual(['line 19', '$ vim', 'qqq'])
    expect(cellAt(harness.cells(), 0, 4).foreground).toBe(0)
    expect(allText(harness.screen)[0]).toBe('line 0')
  })

  it('starts at the top when there is no text', () => {
    const harness = openScreen()
    harness.screen.restart()
    expect(harness.feed('$').screen.visibleText()[0]).toBe('$')
  })
})

describe('a screen that is over', () => {
  it('ignores calls after its end', () => {
    const harness = openScreen().feed('x')
    harness.screen[Symbol.dispose]()
    harness.screen[Symbol.dispose]()
    harness.feed('y')
    harness.screen.resize(10, 10)
    harness.screen.restart()
    expect(() => harness.cells()).not.toThrow()
  })
})
