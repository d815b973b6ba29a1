import { describe, expect, it } from 'vitest'
import { CAPTURES, capture, picture } from './corpus.ts'
import { type Harness, invalidCell, openScreen } from './screen-harness.ts'

const SIZE = { columns: 80, rows: 24 }

/** The public way parses a little later. */
async function untilParsed(harness: Harness, changes: number): Promise<void> {
  while (harness.changes < changes) await new Promise((resolve) => setImmediate(resolve))
}

describe.each(CAPTURES)('the captured bytes of %s', (name) => {
  it('give the picture that was compared with tmux', async () => {
    const cells = openScreen(SIZE).feed(capture(name)).cells()
    expect(invalidCell(cells)).toBeUndefined()
    await expect(picture(cells)).toMatchFileSnapshot(`../../fixtures/terminal/${name}.picture.txt`)
  })

  it('give the same picture in slices of any size', () => {
    const bytes = capture(name)
    const whole = picture(openScreen(SIZE).feed(bytes).cells())
    for (const size of [1, 7, 100, 4096]) {
      const harness = openScreen(SIZE)
      for (let at = 0; at < bytes.length; at += size) harness.feed(bytes.subarray(at, at + size))
      expect(picture(harness.cells())).toBe(whole)
    }
  })

  it('give the same cells, modes and answers by the emulator’s internals and by its public interface', async () => {
    const internal = openScreen(SIZE).feed(capture(name))
    const open = openScreen({ ...SIZE, access: 'public' }).feed(capture(name))
    expect(internal.changes).toBe(0)
    await untilParsed(open, 1)
    expect(open.cells()).toEqual(internal.cells())
    expect(open.screen.modes).toEqual(internal.screen.modes)
    expect(open.screen.cursor).toEqual(internal.screen.cursor)
    expect(open.replies).toEqual(internal.replies)
    expect(open.titles).toEqual(internal.titles)
  })
})

describe('the public way into the emulator', () => {
  it('shows all looks, clusters and the cursor as the internals do', async () => {
    const text = Buffer.from(
      '\x1b[1;2;3;4;5;7;8;9;53mall\x1b[m \x1b[38;5;200;48;2;1;2;3mcolours\x1b[m e\u0301 👨‍👩‍👧 漢\x1b[?25l\x1b[4 q\x1b[?1000;1006h\x1b[31;44m \x1b[m',
    )
    const internal = openScreen(SIZE).feed(text)
    const open = openScreen({ ...SIZE, access: 'public' }).feed(text)
    const before = open.screen.revision
    await untilParsed(open, 1)
    expect(open.screen.revision).toBeGreaterThan(before)
    expect(open.cells()).toEqual(internal.cells())
    expect(open.screen.modes).toEqual(internal.screen.modes)
    expect(open.screen.cursor).toEqual(internal.screen.cursor)
  })

  it('does not hang on counts without end', async () => {
    const open = openScreen({ ...SIZE, access: 'public' }).feed('a\x1b[2147483647b\x1b[99999999S\x1b[99999999Lb')
    await untilParsed(open, 1)
    expect(open.screen.visibleText()[0]).toBe('ab')
  })

  it('tells nothing after its end', async () => {
    const open = openScreen({ ...SIZE, access: 'public' }).feed('a')
    open.screen[Symbol.dispose]()
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setTimeout(resolve, 0))
    expect(open.changes).toBe(0)
  })
})
