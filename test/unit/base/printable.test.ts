import { expect, it } from 'vitest'
import { printable } from '../../../src/base/printable.ts'

it('makes visible whatever could act on a terminal, hide text or reverse it', () => {
  for (const character of '\u0000\u001b\u007f\u009b\u061c\u200b\u200e\u202e\u2028\u2066\ufeff\ufff9') {
    expect(printable(`a${character}b`)).toMatch(/^a\\[xu][0-9a-f]+b$/)
  }
  expect(printable('Zürich 東京 👩‍💻')).toBe('Zürich 東京 👩‍💻')
})
