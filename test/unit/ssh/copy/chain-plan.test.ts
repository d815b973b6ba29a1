import { describe, expect, it } from 'vitest'
import { type Hop, isBelow, orderChain, pickSource } from '../../../../src/ssh/copy/chain.ts'

type TestHop = { -readonly [K in keyof Hop]: Hop[K] } & { readonly name: string; source: TestHop | undefined }

const hop = (name: string, have: number, source?: TestHop): TestHop => ({
  name,
  have,
  source,
  isUsable: true,
  isSlow: false,
  refused: new Set(),
})

describe('the order of a chain', () => {
  it.each([
    ['as given where all are about as fast', [100, 90, 110, 80], [0, 1, 2, 3]],
    ['slow hosts last, the slowest at the end', [10, 100, 40, 100, 100], [1, 3, 4, 2, 0]],
    ['one host', [5], [0]],
    ['nothing measured', [0, 0, 0], [0, 1, 2]],
  ])('%s', (_what, rates, expected) => {
    expect(orderChain([...rates.keys()], (index) => rates[index] ?? 0)).toEqual(expected)
  })
})

describe('the next source of a host', () => {
  const first = hop('first', 100)
  const second = hop('second', 80, first)
  const third = hop('third', 60, second)
  const fourth = hop('fourth', 40, third)
  const all = [first, second, third, fourth]

  it('is the source of the failed one', () => {
    expect(pickSource({ ...third, refused: new Set([second]) }, all)?.name).toBe('first')
  })

  it('is never a host that takes the file from this one', () => {
    expect(isBelow(fourth, second)).toBe(true)
    expect(pickSource(Object.assign(second, { refused: new Set([first]) }), all)).toBeUndefined()
    second.refused = new Set()
  })

  it('is the host that serves the fewest others, and among those has most of the file', () => {
    const late = hop('late', 0)
    expect(pickSource(late, [...all, late])?.name).toBe('fourth')
    expect(pickSource(late, [hop('less', 10), hop('more', 20), late])?.name).toBe('more')
  })

  it('is this machine if all others are gone or were refused', () => {
    const late = hop('late', 0)
    expect(pickSource({ ...late, refused: new Set([first]) }, [first, { ...second, isUsable: false }])).toBeUndefined()
  })
})
