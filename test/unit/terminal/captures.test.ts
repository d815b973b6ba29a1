import { describe, expect, it } from 'vitest'
import { CAPTURES, capture, picture } from './corpus.ts'
import { invalidCell, openScreen } from './screen-harness.ts'

const SIZE = { columns: 80, rows: 24 }

describe.each(CAPTURES)('the captured bytes of %s', (name) => {
  it('give the screen that was compared with tmux', async () => {
    const cells = openScreen(SIZE).feed(capture(name)).cells()
    expect(invalidCell(cells)).toBeUndefined()
    await expect(picture(cells)).toMatchFileSnapshot(`../../fixtures/terminal/${name}.picture.txt`)
  })

  it('give the same screen in slices of any size', () => {
    const bytes = capture(name)
    const whole = picture(openScreen(SIZE).feed(bytes).cells())
    for (const size of [1, 7, 100, 4096]) {
      const harness = openScreen(SIZE)
      for (let at = 0; at < bytes.length; at += size) harness.feed(bytes.subarray(at, at + size))
      expect(picture(harness.cells())).toBe(whole)
    }
  })
})
