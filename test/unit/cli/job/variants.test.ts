import { expect, test } from 'vitest'
import { expandVariants } from '../../../../src/cli/job/variants.ts'

test('makes one job without an array or a grid', () => {
  expect(expandVariants(undefined, [])).toEqual([{}])
})

test('makes each combination once, with exact decimals', () => {
  expect(expandVariants('7-8', ['lr=0.1:0.3:0.1', 'size=8,16']).map((one) => Object.values(one).join(' '))).toEqual(
    ['7', '8'].flatMap((index) => ['0.1', '0.2', '0.3'].flatMap((lr) => [`${index} ${lr} 8`, `${index} ${lr} 16`])),
  )
  expect(expandVariants(undefined, ['x=-0.2:0.2:0.1']).map(({ x }) => x)).toEqual(['-0.2', '-0.1', '0.0', '0.1', '0.2'])
  expect(expandVariants(undefined, ['n=1:10:4']).map(({ n }) => n)).toEqual(['1', '5', '9'])
})

test.each([
  ['9-3', []],
  ['x', []],
  ['0-100000', []],
  [undefined, ['a-b=1']],
  [undefined, ['a=']],
  [undefined, ['size']],
  [undefined, ['=1']],
  [undefined, ['a=1:2']],
  [undefined, ['a=2:1:1']],
  [undefined, ['a=0:1:0']],
  [undefined, ['a=1,1']],
  [undefined, ['a=1', 'a=2']],
  [undefined, ['a=0:1:0.000001']],
  ['0-999', ['a=0:999:1']],
] as const)('refuses %s %j', (array, grids) => {
  expect(() => expandVariants(array, grids)).toThrow(/--array|--grid|twice|at once/)
})
