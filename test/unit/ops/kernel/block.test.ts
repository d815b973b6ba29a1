/** A block of ours in a file of others: every other byte stays, and removing it gives back what was there. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { blockOf, brokenBlock, withBlock, withoutBlock } from '../../../../src/ops/kernel/block.ts'

const line = fc.stringMatching(/^[ -~]{0,20}$/).filter((text) => !text.startsWith('# >>>') && !text.startsWith('# <<<'))
const foreign = fc
  .array(fc.oneof(line, fc.constant(''), fc.constant('\r'), fc.constant('\u00ff')))
  .map((all) => all.join('\n'))

describe('a block', () => {
  it.each(['top', 'bottom'] as const)('leaves no trace at the %s', (place) => {
    fc.assert(
      fc.property(foreign, fc.array(line), (text, lines) => {
        const changed = withBlock(text, 'trust', lines, place)
        expect(blockOf(changed, 'trust')).toEqual(lines)
        expect(withoutBlock(changed, 'trust')).toBe(text)
      }),
    )
  })

  it('changes in place, whatever is written around it', () => {
    fc.assert(
      fc.property(foreign, foreign, fc.array(line), fc.array(line), (above, below, old, lines) => {
        const text = `${above}\n${withBlock('', 'trust', old, 'bottom')}${below}`
        expect(withBlock(text, 'trust', lines, 'bottom')).toBe(
          `${above}\n${withBlock('', 'trust', lines, 'bottom')}${below}`,
        )
      }),
    )
  })

  it('is the same when it is written twice', () => {
    const once = withBlock('a\nb', 'trust', ['x'], 'bottom')
    expect(withBlock(once, 'trust', ['x'], 'bottom')).toBe(once)
  })

  it('is removed with the file that was created for it, unless that has other content', () => {
    const own = withBlock(undefined, 'trust', ['x'], 'bottom')
    expect(withoutBlock(own, 'trust')).toBeUndefined()
    expect(withoutBlock(`${own}mine\n`, 'trust')).toBe('mine\n')
    expect(withoutBlock(withBlock('', 'trust', ['x'], 'bottom'), 'trust')).toBe('')
  })

  it('does not take the block of another area for its own', () => {
    const text = withBlock('', 'trusted', ['x'], 'bottom')
    expect(blockOf(text, 'trust')).toBeUndefined()
  })

  it('loses only the line that is certainly ours if its end was removed', () => {
    const text = withBlock('a\n', 'trust', ['x'], 'bottom').replace(/# <<<.*\n/, '')
    expect(withoutBlock(text, 'trust')).toBe('a\nx\n')
  })

  it('is broken without its first or its last line, also where another one follows', () => {
    const whole = withBlock('a\n', 'trust', ['x'], 'bottom')
    const headless = whole.replace(/# >>>.*\n/, '')
    const endless = whole.replace(/# <<<.*\n/, '')
    const [first, last] = ['# >>> muster trust: changes here are lost >>>', '# <<< muster trust <<<']
    expect(brokenBlock(whole, 'trust')).toBeUndefined()
    expect(brokenBlock(`${whole}${withBlock('', 'trusted', ['y'], 'bottom')}`, 'trust')).toBeUndefined()
    for (const text of [headless, `${headless}${whole}`, `${whole}${headless}`])
      expect(brokenBlock(text, 'trust')).toEqual({ lost: first, there: last, isFirstLost: true })
    for (const text of [endless, `${endless}${whole}`])
      expect(brokenBlock(text, 'trust')).toEqual({ lost: last, there: first, isFirstLost: false })
  })
})
