import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { complete } from '../../../../src/base/calculation.ts'
import { readListing } from '../../../../src/ssh/copy/fetch-from-hosts.ts'

const parseListing = (text: string) => complete(readListing(text))
const line = (name: string, mode = '81a4', size = 5, time = '1700000000.000000007') =>
  `${mode}:${size}:${time}:8:1000:100:${name}\n`
const batch = (names: readonly string[], facts: string) => `${names.map((name) => `${name}\0`).join('')}\0${facts}\0`

describe('the listing of a host', () => {
  it('has names and facts in the same order, in batches', () => {
    const first = batch(['/d', '/d/f'], line('/d', '41ed') + line('/d/f'))
    const { entries, unknown } = parseListing(first + batch(['/d/l'], line('/d/l', 'a1ff', 2, '-3')))
    expect(unknown).toEqual([])
    expect(entries).toMatchObject([
      { below: '', kind: 'directory', mode: 0o755, owner: { uid: 1000, gid: 100 } },
      { below: 'f', kind: 'file', mode: 0o644, sizeBytes: 5, mtimeNs: 1_700_000_000_000_000_007n, isSparse: false },
      { below: 'l', kind: 'link', mtimeNs: -3_000_000_000n },
    ])
  })

  it('accepts names of any bytes', () => {
    const names = fc.uniqueArray(
      fc.string({ unit: fc.integer({ min: 1, max: 255 }).map((byte) => String.fromCharCode(byte)), minLength: 1 }),
    )
    fc.assert(
      fc.property(names, (all) => {
        const wanted = all.filter((name) => !name.split('/').some((part) => ['', '.', '..'].includes(part)))
        const paths = ['r', ...wanted.map((name) => `r/${name}`)]
        const { entries } = parseListing(batch(paths, paths.map((path) => line(path)).join('')))
        expect(entries.map(({ path }) => path)).toEqual(paths)
      }),
    )
  })

  it('reports names without facts', () => {
    const { entries, unknown } = parseListing(batch(['/d', '/d/gone', '/d/f'], line('/d') + line('/d/f')))
    expect(unknown).toEqual(['/d/gone'])
    expect(entries).toHaveLength(2)
  })

  it.each(['/e', '/d/../e', '/d//e', '/d/./e', '/de'])('must not name %s, which is outside of the source', (name) => {
    expect(() => parseListing(batch(['/d', name], line('/d') + line(name)))).toThrow('outside')
  })

  it('may have any text in place of facts, which is looked at once for each name', () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `/d/${index}`)
    for (const facts of [
      'a'.repeat(10_000_000),
      `81a4:${'1'.repeat(10_000_000)}`,
      `81a4:1:${'9'.repeat(1_000_000)}:8:0:0:/d/0\n`,
    ])
      expect(parseListing(batch(names, facts)).unknown).toHaveLength(names.length)
  })

  it('has no file with a name by which none can be opened', () => {
    const long = `/d/${'x'.repeat(5000)}`
    const { entries, unknown } = parseListing(
      batch(['/d', long, '/d/f'], line('/d', '41ed') + line(long) + line('/d/f')),
    )
    expect(entries.map(({ below }) => below)).toEqual(['', 'f'])
    expect(unknown).toEqual([long.slice(0, 4096)])
  })

  it('must be complete', () => {
    const whole = batch(['/d'], line('/d'))
    for (let length = 1; length < whole.length; length += 1) {
      expect(() => parseListing(whole.slice(0, length))).toThrow('incomplete')
    }
  })
})
