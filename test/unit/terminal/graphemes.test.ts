import type { IUnicodeVersionProvider, Terminal } from '@xterm/headless'
import { describe, expect, it } from 'vitest'
import { installGraphemes } from '../../../src/terminal/graphemes.ts'

function provider(): IUnicodeVersionProvider {
  const registered: IUnicodeVersionProvider[] = []
  const unicode = { register: (each: IUnicodeVersionProvider) => registered.push(each), activeVersion: '' }
  installGraphemes({ unicode } as unknown as Terminal)
  expect(registered[0]?.version).toBe(unicode.activeVersion)
  return registered[0] as IUnicodeVersionProvider
}

/** Columns of the clusters of a text. */
function clusters(text: string): { text: string; width: number }[] {
  const { charProperties } = provider()
  const found: { text: string; width: number }[] = []
  let preceding = 0
  for (const character of text) {
    preceding = charProperties(character.codePointAt(0) as number, preceding)
    const width = (preceding >> 1) & 3
    const last = found.at(-1)
    if (last && preceding & 1) Object.assign(last, { text: last.text + character, width })
    else found.push({ text: character, width })
  }
  return found
}

describe('the width of characters', () => {
  it.each([
    ['a', 1],
    ['é', 1],
    ['漢', 2],
    ['ｶ', 1],
    ['😀', 2],
    ['🛸', 2],
    ['🫠', 2],
    ['🧌', 2],
    ['🫱🏻‍🫲🏿', 2],
    ['❤️', 2],
    ['1️⃣', 2],
    ['👍🏽', 2],
    ['🇩🇪', 2],
    ['👨‍👩‍👧', 2],
    ['👨🏻‍❤️‍💋‍👨🏻', 2],
    ['🏴󠁧󠁢󠁥󠁮󠁧󠁿', 2],
  ])('is that of one cluster for %s', (text, width) => {
    expect(clusters(text)).toEqual([{ text, width }])
  })

  it.each(['\u200b', '\u200e', '\u202e', '\u2066', '\ufeff'])('is nothing for the format character %j', (character) => {
    const found = clusters(`a${character}b漢${character}c`)
    expect(found.map(({ width }) => width)).toEqual([1, 1, 2, 1])
  })

  it.each(['\u1161', '\u11a8', '\ud7b0', '\ud7fb'])('is nothing for the rest %j of a Korean syllable', (character) => {
    expect(clusters(`a${character}b`).map(({ width }) => width)).toEqual([1, 1])
    expect(clusters('\u1112\u1161\u11ab\u1100\u1173').map(({ width }) => width)).toEqual([2, 2])
  })

  it('starts again after as many joins as a cell may hold', () => {
    const found = clusters(`a${'\u0301'.repeat(100)}`)
    expect(found[0]?.text.length).toBe(16)
    expect(Math.max(...found.map(({ text }) => text.length))).toBe(16)
    expect(found.map(({ text }) => text).join('').length).toBe(101)
  })
})
