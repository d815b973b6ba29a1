import { describe, expect, it } from 'vitest'
import { MAX_CLUSTERS } from '../../../src/terminal/clusters.ts'
import { invalidCell, openScreen } from '../../unit/terminal/screen-harness.ts'

const MEGABYTE = 1024 * 1024

/** Parses in slices as the feeder does. */
function feedSlices(harness: ReturnType<typeof openScreen>, bytes: Uint8Array, repeats = 1): void {
  for (let count = 0; count < repeats; count++) {
    for (let at = 0; at < bytes.length; at += 4096) harness.feed(bytes.subarray(at, at + 4096))
  }
}

const usable = (harness: ReturnType<typeof openScreen>) => {
  expect(invalidCell(harness.cells())).toBeUndefined()
  harness.feed('\x18\x1bc$ ')
  expect(harness.screen.visibleText()[0]).toBe('$')
}

describe('a hostile host', () => {
  it.each([
    ['repeats a character without end', 'x\x1b[2147483647b'],
    ['scrolls up without end', '\x1b[99999999S'],
    ['scrolls down without end', '\x1b[2147483647T'],
    ['inserts lines without end', '\x1b[99999999L'],
    ['deletes lines without end', '\x1b[99999999M'],
    ['inserts characters without end', '\x1b[99999999@'],
    ['deletes characters without end', '\x1b[99999999P'],
    ['inserts columns without end', "\x1b[99999999'}"],
    ['deletes columns without end', "\x1b[99999999'~"],
    ['shifts sideways without end', '\x1b[99999999 @\x1b[99999999 A'],
    ['tabs without end', '\x1b[99999999I\x1b[99999999Z'],
    ['moves and erases without end', '\x1b[99999999C\x1b[99999999B\x1b[99999999X\x1b[99999999;99999999H'],
    ['gives more parameters than there are', `\x1b[${'1;'.repeat(500)}m\x1b[${'9'.repeat(500)}A`],
    ['gives sub-parameters without end', `\x1b[38${':2'.repeat(500)}m`],
    ['sets margins left and right', '\x1b[?69h\x1b[5;10s\x1b[3;2r'],
    ['nests what cannot be nested', '\x1b[\x1b]\x1bP\x1b_\x1b[31\x1b\\m'],
  ])('%s: parsed before the test is over', (_, sequence) => {
    const harness = openScreen({ columns: 80, rows: 24, historyLines: 1000 })
    // Without bounds it is minutes for one slice.
    feedSlices(harness, Buffer.from(sequence.repeat(Math.ceil(5000 / sequence.length))))
    usable(harness)
  })

  it('sends megabytes without a newline', () => {
    const harness = openScreen({ columns: 80, rows: 24, historyLines: 100 })
    feedSlices(harness, Buffer.alloc(MEGABYTE, 'x'), 3)
    expect(harness.screen.historyLines).toBe(100)
    usable(harness)
  })

  it('sends changes of colour without end', () => {
    const harness = openScreen()
    const changes = Array.from(
      { length: 10_000 },
      (_, index) => `\x1b[38;2;${index % 256};${index >> 8};7;${index % 9}m`,
    )
    feedSlices(harness, Buffer.from(changes.join('')), 20)
    usable(harness)
  })

  it('asks endless queries and gets a bounded number of answers', () => {
    const harness = openScreen()
    feedSlices(harness, Buffer.from('\x1b[6n\x1b[c\x1b[?1;2$p\x1bP$qm\x1b\\'.repeat(10_000)), 8)
    expect(harness.replies.length).toBe(200)
    usable(harness)
  })

  it('sends invalid UTF-8', () => {
    const harness = openScreen()
    feedSlices(harness, Buffer.alloc(MEGABYTE, Buffer.from([0xff, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0xf5, 0xe6, 0xbc])))
    usable(harness)
  })

  it('piles combining marks onto one character, and the rest gets cells of its own', () => {
    const harness = openScreen()
    feedSlices(harness, Buffer.from(`a${'\u0301'.repeat(MEGABYTE)}`))
    expect(invalidCell(harness.cells())).toBeUndefined()
    expect(harness.screen.historyLines).toBe(100)
    usable(harness)
  })

  it('invents clusters, and other screens still get theirs', () => {
    const hostile = openScreen({ columns: 80, rows: 24 })
    const letters = Array.from({ length: 26 }, (_, index) => String.fromCharCode(97 + index))
    const marks = Array.from({ length: 75 }, (_, index) => String.fromCharCode(0x300 + index))
    for (const letter of letters) {
      for (const first of marks) {
        hostile.feed(marks.map((second) => letter + first + second).join(''))
        hostile.cells()
      }
    }
    expect(26 * 75 * 75).toBeGreaterThan(MAX_CLUSTERS)
    expect(invalidCell(hostile.cells())).toBeUndefined()
    const friendly = openScreen().feed('q\u0307\u0323 👨‍👩‍👦')
    expect(friendly.screen.visibleText()[0]).toBe('q\u0307\u0323 👨‍👩‍👦')
  })

  it('links every character, and no work piles up', () => {
    const harness = openScreen({ columns: 80, rows: 24, historyLines: 1000 })
    feedSlices(harness, Buffer.from('\x1b]8;id=a;http://h/\x1b\\link\r\n\x1b]8;;\x1b\\'.repeat(5000)))
    usable(harness)
  })

  it('sets a title of a megabyte', () => {
    const harness = openScreen()
    feedSlices(harness, Buffer.from(`\x1b]0;${'t'.repeat(MEGABYTE)}\x07`))
    usable(harness)
  })

  it('changes the size of the window and of the page without effect', () => {
    const harness = openScreen().feed('\x1b[8;500;500t\x1b[?40h\x1b[?3h\x1b[200t')
    expect([harness.screen.columns, harness.screen.rows]).toEqual([20, 5])
    expect(harness.cells().words.length).toBe(20 * 5 * 4)
    usable(harness)
  })
})
