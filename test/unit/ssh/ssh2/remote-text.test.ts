import { describe, expect, it } from 'vitest'
import { remoteText } from '../../../../src/ssh/ssh2/failures.ts'

describe('text of a server', () => {
  it('is cut between characters, not inside an emoji', () => {
    for (const before of ['', 'a', 'ab', 'abc', 'abcd', 'abcde']) {
      const text = remoteText(before + '🏳️‍🌈'.repeat(40))
      expect(text).toMatch(/^[a-e]*(?:🏳️‍🌈){32,33}…$/u)
      expect(text.length).toBeLessThanOrEqual(201)
    }
  })

  it('has a bound, whatever it consists of', () => {
    expect(remoteText('x'.repeat(200))).toBe('x'.repeat(200))
    expect(remoteText('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`)
    expect(remoteText(`e${'\u0301'.repeat(100_000)}`).length).toBeLessThanOrEqual(201)
  })
})
