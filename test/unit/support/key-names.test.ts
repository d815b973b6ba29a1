import { describe, expect, it } from 'vitest'
import { keyBytes, mouseBytes, pasteBytes } from '../../support/key-names.ts'

describe('what a terminal sends', () => {
  it.each([
    ['Ctrl-]', '\x1d'],
    ['Ctrl-c', '\x03'],
    ['Alt-x', '\x1bx'],
    ['Enter', '\r'],
    ['[', '['],
    ['é', 'é'],
  ])('for %s', (name, bytes) => {
    expect(keyBytes(name)).toBe(bytes)
  })

  it('is an error for a key that no terminal has', () => {
    expect(() => keyBytes('Enterr')).toThrow('no such key: Enterr')
  })

  it('counts mouse cells from 1 where tests count from 0', () => {
    expect(mouseBytes('press', 0, 4)).toBe('\x1b[<0;1;5M')
    expect(mouseBytes('release', 2, 3)).toBe('\x1b[<0;3;4m')
    expect(mouseBytes('wheel-down', 0, 0)).toBe('\x1b[<65;1;1M')
  })

  it('ends the lines of a paste with carriage returns', () => {
    expect(pasteBytes('a\nb')).toBe('\x1b[200~a\rb\x1b[201~')
  })
})
