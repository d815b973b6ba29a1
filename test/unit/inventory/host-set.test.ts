import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MusterError } from '../../../src/base/errors.ts'
import {
  expandHostSet,
  foldHostSet,
  type HostSetContext,
  HostSetError,
  withCommas,
} from '../../../src/inventory/host-set.ts'
import { anyCharacter } from '../../support/any-character.ts'
import { randomRuns } from '../../support/random-runs.ts'

const range = (from: number, to: number, prefix = 'm'): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `${prefix}${from + i}`)

function errorOf(expression: string, context?: HostSetContext): HostSetError {
  try {
    expandHostSet(expression, context)
  } catch (error) {
    if (error instanceof HostSetError) return error
    throw error
  }
  throw new Error(`${expression} was taken`)
}

describe('the hosts of an expression', () => {
  test.each([
    ['m8', ['m8']],
    ['m[8-10]', ['m8', 'm9', 'm10']],
    ['m[08-10]', ['m08', 'm09', 'm10']],
    ['gpu[01-05/2]', ['gpu01', 'gpu03', 'gpu05']],
    ['m[1,3,5-6]', ['m1', 'm3', 'm5', 'm6']],
    ['m[1,01]', ['m1', 'm01']],
    ['rack[1-2]n[01-02]', ['rack1n01', 'rack1n02', 'rack2n01', 'rack2n02']],
    ['[1-3]', ['1', '2', '3']],
    ['m[1-2]-ib0', ['m1-ib0', 'm2-ib0']],
    ['m9,m8,m9', ['m9', 'm8']],
    [' m1 , m2 ', ['m1', 'm2']],
    ['m[ 1 - 3 / 2 , 8 ]', ['m1', 'm3', 'm8']],
    ['root@h[1-2]:2222', ['root@h1:2222', 'root@h2:2222']],
    ['[::1]:22', ['[::1]:22']],
    ['root@[fe80::1%eth0]:2222', ['root@[fe80::1%eth0]:2222']],
    ['::[1-2]', ['::1', '::2']],
    ['10.0.[0-1].[1-2]', ['10.0.0.1', '10.0.0.2', '10.0.1.1', '10.0.1.2']],
    ['"a b",c', ['a b', 'c']],
    ['[12345678901234567890]', ['12345678901234567890']],
  ])('%s', (expression, names) => {
    expect(expandHostSet(expression)).toEqual(names)
  })
})

describe('algebra', () => {
  test.each([
    ['m[1-5]!m[2-3]', 'm[1,4-5]'],
    ['m[1-5]&m[3-9]', 'm[3-5]'],
    ['m[1-3]^m[2-5]', 'm[1,4-5]'],
    ['m[1-5]!m2,m2', 'm[1-5]'],
    ['m1,m2!m2', 'm1'],
    ['m[1-5]!(m[1-3]&m[2-9])', 'm[1,4-5]'],
    ['(m1,m2)', 'm[1-2]'],
    ['root@m1,m2!m1', 'm2'],
    ['root@m1:22,m2&m1', 'root@m1:22'],
  ])('%s is %s, read from left to right', (expression, folded) => {
    expect(foldHostSet(expandHostSet(expression))).toBe(folded)
  })

  test('follows the rules of sets', () => {
    const names = fc.uniqueArray(
      fc.integer({ min: 0, max: 20 }).map((n) => `m${n}`),
      { minLength: 1 },
    )
    fc.assert(
      fc.property(names, names, (a, b) => {
        const left = foldHostSet(a)
        const right = foldHostSet(b)
        const value = (operator: string): string[] => expandHostSet(`${left}${operator}(${right})`).toSorted()
        expect(value(',')).toEqual([...new Set([...a, ...b])].sort())
        expect(value('!')).toEqual(a.filter((name) => !b.includes(name)).sort())
        expect(value('&')).toEqual(a.filter((name) => b.includes(name)).sort())
        expect(value('^')).toEqual([...a, ...b].filter((name) => a.includes(name) !== b.includes(name)).sort())
      }),
    )
  })
})

describe('with an inventory', () => {
  const groups: Record<string, readonly string[]> = { workers: ['m2', 'm3'], rack1: ['m1'], rack2: ['m10'] }
  const names = ['m1', 'm2', 'm3', 'm10', 'gpu01']
  const context: HostSetContext = {
    names,
    groupNames: Object.keys(groups),
    group: (name) => groups[name],
    isHost: (name) => names.includes(name),
    stdinNames: ['m3', 'm[1-2]'],
  }

  test.each([
    ['all', names],
    ['@all', names],
    ['@*', names],
    ['@*!@workers', ['m1', 'm10', 'gpu01']],
    ['@workers', ['m2', 'm3']],
    ['all!@workers', ['m1', 'm10', 'gpu01']],
    ['@rack[1-2]', ['m1', 'm10']],
    ['@rack*', ['m1', 'm10']],
    ['m?', ['m1', 'm2', 'm3']],
    ['m*', ['m1', 'm2', 'm3', 'm10']],
    ['*[0-1]', ['m10', 'm1', 'gpu01']],
    ['-', ['m3', 'm1', 'm2']],
    ['-!m1', ['m3', 'm2']],
  ])('%s', (expression, expected) => {
    expect(expandHostSet(expression, context)).toEqual(expected)
  })

  test('names an unknown host with its place and the nearest one', () => {
    const error = errorOf('m1,gpu10', context)
    expect(error.offset).toBe(3)
    expect(error.message).toContain('at character 4: there is no host gpu10; did you mean gpu01?')
  })

  test('names the hosts and groups that have a name in common in several files, instead of near ones', () => {
    const groups = new Map([
      ['a', ['a/h1', 'h2']],
      ['a/w', ['a/h1']],
      ['b/w', ['b/h1']],
    ])
    const several = {
      names: ['a/h1', 'b/h1', 'h2'],
      groupNames: [...groups.keys()],
      group: (name: string) => groups.get(name),
      isHost: (name: string) => ['a/h1', 'b/h1', 'h2'].includes(name),
    }
    expect(errorOf('h1', several).reason).toBe('h1 is ambiguous: a/h1 or b/h1')
    expect(errorOf('@w', several).reason).toBe('@w is ambiguous: @a/w or @b/w')
  })

  test('names an unknown group with the nearest one', () => {
    expect(errorOf('@wokers', context).reason).toBe('there is no group @wokers; did you mean @workers?')
  })

  test('treats a glob that matches nothing as an error, not as an empty set', () => {
    expect(errorOf('m1,x*', context).reason).toBe('x* matches no host')
  })

  test('does not let names from stdin ask for stdin again', () => {
    expect(errorOf('-', { ...context, stdinNames: ['-'] }).reason).toContain('stdin')
  })
})

describe('a wrong expression is refused with its place and what to write', () => {
  test.each([
    ['', 0, 'it is empty'],
    ['a,,b', 2, 'a name is missing before ,'],
    ['a,', 2, 'a name is missing after ,'],
    ['!a', 0, 'write all!NAME'],
    ['a b', 2, 'write a comma'],
    ['(a', 0, '( without ) after it'],
    ['a)', 1, ') without ( before it'],
    ['a,()', 3, 'a name is missing before )'],
    ['m[8-', 1, '[ without ] after it'],
    ['m8]', 2, '] without [ before it'],
    ['m[]', 2, 'a number is missing'],
    ['m[1,,2]', 4, 'a number is missing'],
    ['m[1 2]', 2, '1 2 is not a range of numbers'],
    ['m[a-c]', 2, 'a-c is not a range of numbers'],
    ['m[1-3/0]', 2, 'the step of 1-3/0 is 0'],
    ['m1,m[9-8]', 5, 'write 8-9'],
    ['m[01-100]', 2, 'write 001-100'],
    ['a[0-9999999999]', 0, 'it names 10000000000 hosts; the maximum is 100000'],
    ['a[0-999999999999999999]', 2, 'at most 15 digits'],
    [`${'a[0-9]'.repeat(6)}`, 0, 'it names 1000000 hosts'],
    ['a[0-99999],b[0-99999]', 21, 'more than 100000 names'],
    ['"a', 0, 'without a closing'],
    ['"\\x"', 0, 'not a JSON string'],
    ['all', 0, 'there is none here'],
    ['m*', 0, 'there is none here'],
    ['-', 0, 'cannot be read from stdin here'],
    ['@', 0, 'a group name is missing after @'],
    ['('.repeat(5000), 101, 'nested more than 100 deep'],
  ])('%s', (expression, offset, reason) => {
    const error = errorOf(expression)
    expect(error.reason).toContain(reason)
    expect(error.offset).toBe(offset)
    expect(error).toBeInstanceOf(MusterError)
    expect(error.code).toBe('usage')
  })

  test('shows no control characters of the expression in the message', () => {
    expect(errorOf('m1,\u001b[2J').message).not.toContain('\u001b')
  })

  test('reads any text, or refuses it with a place inside it', () => {
    const piece = fc.constantFrom(
      'm',
      '[',
      ']',
      '1',
      '0',
      '-',
      ',',
      '/',
      '!',
      '&',
      '^',
      '(',
      ')',
      '@',
      '*',
      '"',
      ' ',
      ':',
      '\\',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const text = pieces.join('')
        try {
          expect(Array.isArray(expandHostSet(text))).toBe(true)
        } catch (error) {
          if (!(error instanceof HostSetError)) throw error
          expect(error.offset).toBeGreaterThanOrEqual(0)
          expect(error.offset).toBeLessThanOrEqual(text.length)
        }
      }),
      { numRuns: randomRuns(800) },
    )
  })
})

describe('names typed with blanks between them', () => {
  test.each([
    ['m1 m3', 'm1,m3'],
    [' m[1-2]  @gpus m* ', 'm[1-2],@gpus,m*'],
    ['all !m3 & @a', 'all !m3 & @a'],
    ['m[ 1 - 3, 5 ]', 'm[ 1 - 3, 5 ]'],
    ['root@10.0.0.7:22 (m1, m2)', 'root@10.0.0.7:22,(m1, m2)'],
    ['"a b"', '"a b"'],
  ])('%s', (typed, expression) => {
    expect(withCommas(typed)).toBe(expression)
  })
})

describe('the shortest notation', () => {
  test.each([
    [['m10', 'm9', 'm8', 'gpu01', 'gpu02', 'gpu03', 'gpu04'], 'gpu[01-04],m[8-10]'],
    [['m8'], 'm8'],
    [[], ''],
    [['a1', 'a01', 'a2', 'a02', 'a10'], 'a[1-2],a[01-02,10]'],
    [['n9', 'n10', 'n09'], 'n9,n[09-10]'],
    [['n099', 'n100', 'n101'], 'n[099-101]'],
    [['n0', 'n00', 'n1'], 'n[0-1],n00'],
    [expandHostSet('rack[1-2]n[01-08]'), 'rack[1-2]n[01-08]'],
    [expandHostSet('10.0.[0-1].[1-254]'), '10.0.[0-1].[1-254]'],
    [expandHostSet('r[1-2]n[1-3],r3n1'), 'r[1-2]n[1-3],r3n1'],
    [expandHostSet('r[1-3]n1,r[1-2]n2'), 'r[1-2]n[1-2],r3n1'],
    [['m1-ib0', 'm2-ib0'], 'm[1-2]-ib0'],
    [['root@h1:22', 'root@h2:22'], 'root@h[1-2]:22'],
    [['[::1]:22', '[::2]:22'], '[::1]:22,[::2]:22'],
    [['[3]', 'u@[4]'], '"[3]","u@[4]"'],
    [['a b', 'all', '-x', '@g', 'x*'], '"-x","@g","a b","all","x*"'],
    [['x123456789012345678901', 'x123456789012345678902'], 'x123456789012345678901,x123456789012345678902'],
    [range(1, 10_000), 'm[1-10000]'],
  ])('%s', (names, folded) => {
    expect(foldHostSet(names)).toBe(folded)
  })

  const anyName = fc.oneof(
    fc
      .tuple(fc.constantFrom('m', 'gpu', 'n', ''), fc.constantFrom('', '0', '00'), fc.nat(30))
      .map((parts) => parts.join('')),
    fc
      .array(fc.tuple(fc.constantFrom('r', 'n', '.', '-', ':', '@'), fc.constantFrom('', '0'), fc.nat(12)), {
        minLength: 1,
        maxLength: 5,
      })
      .map((parts) => parts.flat().join('')),
    fc.tuple(fc.constantFrom('x', '1'), fc.bigInt({ min: 0n, max: 10n ** 30n })).map((parts) => parts.join('')),
    fc.string({ minLength: 1, unit: anyCharacter, maxLength: 12 }),
    fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom(...'[]0123456789,-/!&^()@*?" :%\\') }),
    fc.constantFrom('all', '@all', '-', '[::1]:22', 'u@[::1]', '1', '01', '001', '0', '00'),
  )

  test('expands to the folded set again, whatever the names', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyName, { maxLength: 60 }), (names) => {
        fc.pre(names.length > 0)
        expect(expandHostSet(foldHostSet(names)).toSorted()).toEqual(names.toSorted())
      }),
      { numRuns: randomRuns(600) },
    )
  })

  test('does not depend on the order of the names', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyName, { maxLength: 30 }), (names) => {
        expect(foldHostSet(names.toReversed())).toBe(foldHostSet(names))
      }),
    )
  })

  test('folds and expands ten thousand names of several shapes', () => {
    const shapes = [
      (i: number): string => `m${i}`,
      (i: number): string => `rack${i % 100}n${String(Math.floor(i / 100)).padStart(2, '0')}`,
      (i: number): string => `a${(i * 7) % 10_007}b${(i * 13) % 10_009}`,
    ]
    for (const shape of shapes) {
      const names = Array.from({ length: 10_000 }, (_, i) => shape(i))
      expect(new Set(expandHostSet(foldHostSet(names)))).toEqual(new Set(names))
    }
  })
})
