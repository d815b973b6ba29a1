import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Clash, describeClash, findClashes, findRealClash } from '../../../../src/ssh/copy/clashes.ts'

const file = (target: string) => ({ target, source: `from/${target}`, isDirectory: false })
const directory = (target: string) => ({ ...file(target), isDirectory: true })
const utf8 = (text: string) => Buffer.from(text).toString('latin1')
const places = (clashes: readonly Clash[]) => clashes.map(({ ifCaseIgnoredIn }) => ifCaseIgnoredIn)

describe('targets that overwrite each other', () => {
  it('are equal targets, except two directories', () => {
    expect(findClashes([file('a'), file('b'), file('a/b')])).toEqual([])
    expect(findClashes([directory('a'), directory('a'), file('a/x')])).toEqual([])
    expect(findClashes([file('a'), { ...file('a'), source: 'other' }]).map(describeClash)).toEqual([
      'from/a and other would both become a',
    ])
    expect(places(findClashes([directory('a'), file('a')]))).toEqual([undefined])
    expect(places(findClashes([directory('A'), directory('a'), file('a')]))).toEqual([undefined])
  })

  it('may be targets that differ only in case, with the directory where they differ', () => {
    expect(places(findClashes([file('x/Read'), file('x/READ')]))).toEqual(['x'])
    expect(places(findClashes([directory('D'), directory('d'), file('D/x/f'), file('d/x/F')]))).toEqual(['.'])
    expect(
      places(findClashes([file('a/É'), file('a/é')].map((each) => ({ ...each, target: utf8(each.target) })))),
    ).toEqual(['a'])
    // Bytes that are no text.
    expect(findClashes([file('a\xff'), file('a\xfe')])).toEqual([])
    expect(places(findClashes([file('a\xff'), file('A\xff')]))).toEqual(['.'])
  })

  it('are found in any order', () => {
    const name = fc.constantFrom('a', 'A', 'b', 'B', 'a/b', 'a/B', 'A/b')
    fc.assert(
      fc.property(fc.array(name, { maxLength: 6 }), (names) => {
        const clashes = findClashes(names.map(file))
        const isCertain = new Set(names).size < names.length
        const isPossible = new Set(names.map((each) => each.toLowerCase())).size < names.length
        expect(clashes.some(({ ifCaseIgnoredIn }) => ifCaseIgnoredIn === undefined)).toBe(isCertain)
        expect(clashes.length > 0).toBe(isPossible)
      }),
    )
  })

  it('are real where the file system ignores case', async () => {
    const clashes = findClashes([file('x/a'), file('x/A'), file('y/b'), file('y/B')])
    expect(places(clashes)).toEqual(['x', 'y'])
    expect(await findRealClash(clashes, async () => false)).toBeUndefined()
    const clash = await findRealClash(clashes, async (path) => path === 'y')
    expect(describeClash(clash!)).toMatch(/^from\/y\/b and from\/y\/B would become the same file, because /)
  })
})
