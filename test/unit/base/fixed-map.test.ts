import { describe, expect, it } from 'vitest'
import { FixedMap } from '../../../src/base/fixed-map.ts'

describe('a fixed map', () => {
  const map = FixedMap.of([
    ['m1', 1],
    ['m2', 2],
  ])

  it('reads like a map in the order of its entries', () => {
    expect([...map]).toEqual([
      ['m1', 1],
      ['m2', 2],
    ])
    expect([[...map.keys()], [...map.values()], map.size]).toEqual([['m1', 'm2'], [1, 2], 2])
    expect([map.get('m2'), map.get('m3'), map.has('m1'), map.has('m3')]).toEqual([2, undefined, true, false])
    const visited: unknown[] = []
    map.forEach((value, key, whole) => void visited.push([value, key, whole === map]))
    expect(visited).toEqual([
      [1, 'm1', true],
      [2, 'm2', true],
    ])
  })

  it('leaves the map before a change as it was', () => {
    expect([...map.with('m1', 7)]).toEqual([
      ['m1', 7],
      ['m2', 2],
    ])
    expect([...map.with('m3', 3).keys()]).toEqual(['m1', 'm2', 'm3'])
    expect([...map.map((value) => -value).values()]).toEqual([-1, -2])
    expect([...map.values()]).toEqual([1, 2])
  })
})
