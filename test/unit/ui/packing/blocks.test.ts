import { describe, expect, it } from 'vitest'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { blockRows, colourGroup, jobStyle, pastRows } from '../../../../src/ui/packing/blocks.ts'

const theme = themes.none
const textOf = (rows: ReturnType<typeof blockRows>): string[] => rows.map((row) => row.map(({ text }) => text).join(''))

describe('the cells of an amount', () => {
  const cells = (amounts: readonly number[], whole: number, width: number): string =>
    textOf(
      blockRows(
        amounts.map((amount, index) => ({ job: index + 1, amount })),
        whole,
        { width, height: 1 },
        { theme, groupOf: (job) => job, linesOf: () => [], isChosen: false },
      ),
    )[0] ?? ''

  it('give each job at least one, and keep one for what is free where it is worth it', () => {
    expect(cells([500, 500], 1000, 4)).toBe('AABB')
    expect(cells([10], 1000, 4)).toBe('A···')
    expect(cells([900], 1000, 4)).toBe('AAA·')
    expect(cells([990], 1000, 4)).toBe('AAAA')
    expect(cells([990], 1000, 60)).toBe(`${'A'.repeat(59)}·`)
    expect(cells([700], 1000, 1)).toBe('A')
    expect(cells([333, 333, 333], 1000, 3)).toBe('ABC')
    expect(cells([333, 333], 1000, 2)).toBe('AB')
    expect(cells([970, 10, 20], 1000, 4)).toBe('AABC')
    expect(cells([], 1000, 4)).toBe('····')
    expect(cells([2000], 1000, 4)).toBe('AAAA')
  })

  it('are as many as asked for, however many hold parts', () => {
    expect(cells(new Array(9).fill(100), 1000, 4)).toBe('ABCD')
    expect(cells([5], 0, 4)).toBe('AAAA')
    expect(cells([], 0, 4)).toBe('····')
  })
})

describe('a block', () => {
  const block = { theme, groupOf: (job: number) => job, linesOf: () => ['train', 'ann'], isChosen: false }

  it('has the letter alone, then the name, then more about the job as it grows', () => {
    const rows = (width: number, height: number) =>
      textOf(blockRows([{ job: 1, amount: 1 }], 1, { width, height }, block))
    expect(rows(3, 1)).toEqual(['AAA'])
    expect(rows(12, 1)).toEqual(['A train AAAA'])
    expect(rows(12, 3)).toEqual(['A train AAAA', 'ann AAAAAAAA', 'AAAAAAAAAAAA'])
    const coloured = textOf(
      blockRows([{ job: 1, amount: 1 }], 1, { width: 12, height: 2 }, { ...block, theme: themes.dark }),
    )
    expect(coloured).toEqual(['A train     ', '  ann       '])
  })

  it('is divided among the jobs that share it, each row as wide as the block', () => {
    const shares = [
      { job: 1, amount: 500 },
      { job: 2, amount: 250 },
    ]
    const rows = textOf(blockRows(shares, 1000, { width: 20, height: 2 }, block))
    expect(rows).toEqual(['A train AABBBBB·   ·', 'ann AAAAAABBBBB  ·  '])
  })

  it('names a device that is free', () => {
    const free = textOf(blockRows([], 1, { width: 12, height: 2 }, { ...block, freeText: 'GPU 3' }))
    expect(free).toEqual(['GPU 3   ·   ', '  ·   ·   · '])
  })

  it('has the colour of its job or of its user, always the same', () => {
    expect(jobStyle(1, themes.dark)).toEqual(jobStyle(13, themes.dark))
    expect(jobStyle(1, themes.dark)).not.toEqual(jobStyle(2, themes.dark))
    const groupOfAnn = (job: number) => colourGroup({ job, user: 'ann' }, true)
    expect(groupOfAnn(1)).toBe(groupOfAnn(7))
    expect(jobStyle(1, themes.dark, groupOfAnn(1))).toEqual(jobStyle(7, themes.dark, groupOfAnn(7)))
  })
})

describe('a strip', () => {
  it('is as high as the device was busy, and distinguishes idle, held and free without colours', () => {
    const cell = (past: Parameters<typeof pastRows>[0][number]['past'], busy = 0) => ({ past, busy, job: 1 })
    const cells = [
      cell('unknown'),
      cell('free'),
      cell('held'),
      cell('idle'),
      cell('used', 0.5),
      cell('used', 1),
      cell('taken', 1),
    ]
    expect(textOf(pastRows(cells, 1, theme))).toEqual([' ·─▁▄█▒'])
    expect(textOf(pastRows(cells, 2, theme))).toEqual(['     █▒', ' ·─▁██▒'])
  })
})
