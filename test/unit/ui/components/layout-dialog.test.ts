import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import { shownInput } from '../../../../src/ui/components/layout-dialog.ts'
import { keyRows } from '../../../../src/ui/dialogs/key-hints.ts'

describe('the input line of a dialog', () => {
  const shown = (text: string, width: number, cursor = text.length) => {
    const { label, before, at, after } = shownInput({ label: 'Files:', text, cursor }, width)
    return `${label}${before}[${at}]${after}`
  }

  it('shows the end of a long text by columns, not by characters', () => {
    expect(shown('abcdefghijklmnop', 20)).toBe('  Files: …ijklmnop[ ] ')
    expect(shown('漢'.repeat(100), 20)).toBe('  Files: …漢漢漢漢[ ] ')
  })

  it('shows a character under the cursor whole', () => {
    expect(shown('a漢b', 20, 1)).toBe('  Files: a[漢]b       ')
    expect(shown('a👍🏽b', 20, 1)).toBe('  Files: a[👍🏽]b       ')
  })

  it('leaves columns for the text on a narrow terminal', () => {
    expect(shown('abcdefghijkl', 8)).toBe('  F……l[ ] ')
  })

  it('is as wide as the dialog', () => {
    const character = fc.constantFrom('a', ' ', 'é', '漢', '👍🏽', 'e\u0301')
    const text = fc.array(character, { maxLength: 40 })
    fc.assert(
      fc.property(text, text, fc.string(), fc.nat({ max: 100 }), (before, after, label, width) => {
        const typed = [...before, ...after].join('')
        const line = shownInput({ label, text: typed, cursor: before.join('').length }, width)
        expect(textWidth(Object.values(line).join(''))).toBe(width)
      }),
    )
  })
})

describe('the keys of a dialog', () => {
  const shown = (width: number) => {
    const keys = [
      ['y', 'end and quit'],
      ['Space', 'toggle'],
      ['Esc', 'keep running'],
    ] as const
    const [parts] = keyRows({ keys }, width)
    return parts?.map(({ text }) => text).join('')
  }

  it('leave out what has no room, but never the one that closes it', () => {
    expect(shown(60)).toBe('  y end and quit   Space toggle   Esc keep running')
    expect(shown(40)).toBe('  y end and quit   Esc keep running')
    expect(shown(16)).toBe('Esc keep running')
  })

  it('lose their words on a narrow screen before the answer is hidden', () => {
    expect(shown(30)).toBe('  y   Space   Esc keep running')
    expect(shown(18)).toBe('  y   Space   Esc')
  })
})
