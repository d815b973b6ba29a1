import { expect, test } from 'vitest'
import { asciiText, isUtf8Locale } from '../../../src/base/ascii.ts'

test('frames, marks, bars, charts and letters become similar ASCII, one character for one', () => {
  expect(asciiText('┌─┐ │ ● 3 × 4 · collecting… → “ok” ✓ ✗')).toBe('+-+ | * 3 x 4 - collecting. > "ok" + x')
  expect(asciiText('▁▂▃▄▅▆▇█')).toBe('__.=:%##')
  expect(asciiText('\u2800\u2803\u28c0\u28ff')).toBe(" '.:")
  expect(asciiText('Zoë, Zoe\u0308, m² 漢 😀')).toBe('Zoe, Zoe?, m2 ? ?')
  expect(asciiText('plain\n\x1b[1m~')).toBe('plain\n\x1b[1m~')
})

test('a locale is UTF-8 if it says so, or if none is set', () => {
  expect(isUtf8Locale({})).toBe(true)
  expect(isUtf8Locale({ LANG: 'de_DE.UTF-8' })).toBe(true)
  expect(isUtf8Locale({ LANG: 'de_DE.UTF-8', LC_ALL: 'C' })).toBe(false)
  expect(isUtf8Locale({ LANG: 'de_DE.ISO-8859-1' })).toBe(false)
})
