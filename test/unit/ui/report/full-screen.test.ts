/** What full-screen programs draw is cut out of output. */
import { expect, it } from 'vitest'
import { endsInFullScreen, withoutFullScreen } from '../../../../src/ui/report/full-screen.ts'

const without = (text: string, isInside = false) => withoutFullScreen(Buffer.from(text), isInside).toString()

it.each([
  ['a\x1b[?1049hdrawn\x1b[?1049lb', 'a\x1b[?1049h\x1b[?1049lb'],
  ['a\x1b[?25;47hdrawn\x1b[?1hmore', 'a\x1b[?25;47h'],
  ['a\x1b[?1049hdrawn\x1b[?1049hdrawn\x1b[?1049lb\x1b[?1049lc', 'a\x1b[?1049h\x1b[?1049lb\x1b[?1049lc'],
  ['a\x1b[?1049hdrawn\x1bcb', 'a\x1b[?1049h\x1bcb'],
  ['a\x1bcb', 'a\x1bcb'],
])('is cut out of %j', (text, left) => {
  expect(without(text)).toBe(left)
})

it('is cut off where the output begins or ends with it', () => {
  expect(without('drawn\x1b[?1047lb', true)).toBe('\x1b[?1047lb')
  expect(without('drawn', true)).toBe('')
  expect(
    ['a', 'a\x1b[?1049h', 'a\x1b[?1049hb\x1b[?1049l', '\x1bc'].map((text) => endsInFullScreen(Buffer.from(text))),
  ).toEqual([undefined, true, false, false])
})
