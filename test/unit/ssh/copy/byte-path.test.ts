import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  baseName,
  bytePathOf,
  joinPath,
  parentOf,
  quoteWord,
  showPath,
  withoutDash,
} from '../../../../src/ssh/copy/byte-path.ts'
import { touchTimes } from '../../../../src/ssh/copy/source.ts'
import { randomRuns } from '../../../support/random-runs.ts'

describe('paths of any bytes', () => {
  it.each([
    ['a/b', 'b', 'a'],
    ['a/b/', 'b', 'a'],
    ['/a', 'a', '/'],
    ['a', 'a', '.'],
    ['/', '', '/'],
    ['a/.', '', 'a'],
    ['a/..', '', 'a'],
  ])('%s has the name %j and is in %s', (path, name, parent) => {
    expect(baseName(path)).toBe(name)
    expect(parentOf(path)).toBe(parent)
  })

  it('are joined with one slash', () => {
    expect([joinPath('a', 'b'), joinPath('/', 'b'), joinPath('a/', 'b'), joinPath('a', ''), joinPath('', 'b')]).toEqual(
      ['a/b', '/b', 'a/b', 'a', 'b'],
    )
  })

  it('are never mistaken for an option', () => {
    expect(withoutDash('-rf')).toBe('./-rf')
  })

  it('are shown as printable UTF-8', () => {
    expect(showPath(bytePathOf('é\n\u001b[2J'))).toBe('é\\x0a\\x1b[2J')
  })

  it('survive the shell as one word on one line', () => {
    const text = fc.string({ unit: fc.integer({ min: 1, max: 255 }).map((byte) => String.fromCharCode(byte)) })
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), (words) => {
        const line = `NL=$(printf '\\n_'); NL=\${NL%_}; printf '%s\\0' ${words.map(quoteWord).join(' ')}`
        expect(line).not.toContain('\n')
        const input = Buffer.from(`${line}\n`, 'latin1')
        const script = 'IFS= read -r line; eval "$line"'
        const said = execFileSync('/bin/sh', ['-c', script], { input, env: { LC_ALL: 'C' } }).toString('latin1')
        expect(said).toBe(words.map((word) => `${word}\0`).join(''))
      }),
      { numRuns: randomRuns(30) },
    )
  })
})

describe('times for touch', () => {
  it('are in UTC with nanoseconds, also before 1970', () => {
    expect(touchTimes(1_000_000_000_000_000_001n)).toEqual(['2001-09-09 01:46:40.000000001', '200109090146.40'])
    expect(touchTimes(-1n)).toEqual(['1969-12-31 23:59:59.999999999', '196912312359.59'])
  })
})
