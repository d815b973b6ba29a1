import fc from 'fast-check'
import { expect, it } from 'vitest'
import { formatNumberSet } from '../../../../src/base/number-set.ts'
import { foldLines, formatRanksOf, lastLines } from '../../../../src/scheduler/launch/fold.ts'

const shown = (texts: readonly (readonly [number, string])[]) =>
  foldLines(texts.map(([rank, text]) => ({ rank, lines: lastLines(text, 100).lines }))).map(({ text, ranks, isOdd }) =>
    [formatNumberSet(ranks), text, ...(isOdd ? ['odd'] : [])].join(' '),
  )

it('makes one line of what all ranks say, numbers apart, and lets stand out what one says', () => {
  const line = (rank: number) => `epoch 3 loss 0.${40 + rank}\nepoch 4 loss 1e-${rank + 1}\n`
  expect(
    shown([
      [0, line(0)],
      [1, line(1)],
      [2, `epoch 3 loss 0.5\nworker 2 restarted\nepoch 4 loss 7\n`],
      [3, line(3)],
    ]),
  ).toEqual(['0-3 epoch 3 loss 0.40', '2 worker 2 restarted odd', '0-3 epoch 4 loss 1e-1'])
})

it('tells apart what several hosts say of one rank, and takes no text of theirs for the other ranks', () => {
  const [lines, lie] = [['epoch 3 loss 0.4'], ['epoch 3 loss 9', 'evil']]
  expect(
    foldLines([
      { rank: 0, lines: lie, claimedBy: 'm5' },
      { rank: 0, lines, claimedBy: 'm1' },
      { rank: 1, lines },
    ]).map((line) => [formatRanksOf(line), line.text, line.isOdd]),
  ).toEqual([
    ['1 0@m5 0@m1', 'epoch 3 loss 0.4', false],
    ['0@m5', 'evil', true],
  ])
})

it('finds a loss that is not a number', () => {
  expect(
    shown([
      [0, 'loss 0.1'],
      [1, 'loss nan'],
      [2, 'loss 0.2'],
    ]),
  ).toContain('1 loss nan odd')
})

it('puts the two streams of rank 0 in the order of the others', () => {
  expect(
    shown([
      [0, 'a\nc\nonly here'],
      [0, 'b'],
      [1, 'a\nb\nc'],
    ]),
  ).toEqual(['0-1 a', '0-1 b', '0-1 c', '0 only here'])
})

it('puts the stream that a rank wrote to last behind its other one', () => {
  const steps = 'step 1\nstep 2\nstep 3'
  const texts = shown([
    [0, 'warning: slow disk'],
    [0, steps],
    [1, steps],
    [1, 'Traceback\nValueError'],
    [2, steps],
  ])
  expect(texts).toEqual([
    '0 warning: slow disk',
    '0-2 step 1',
    '0-2 step 2',
    '0-2 step 3',
    '1 Traceback odd',
    '1 ValueError odd',
  ])
})

it('shows what a progress bar shows last', () => {
  expect(lastLines('  1%|#  \r 50%|##  \r\n\r \r\nnext\r\n', 100).lines).toEqual([' 50%|##', '', 'next'])
})

it('writes sets of ranks as ranges', () => {
  expect(formatNumberSet([0, 1, 2, 5, 7, 8])).toBe('0-2,5,7-8')
})

it('loses no line, and counts none twice', () => {
  const stream = fc.array(fc.constantFrom('a', 'b 1', 'b 2', 'c'), { maxLength: 12 })
  fc.assert(
    fc.property(fc.array(stream, { minLength: 1, maxLength: 5 }), (all) => {
      const folded = foldLines(all.map((lines, rank) => ({ rank, lines })))
      const forms = (lines: readonly string[]) => lines.map((line) => line.replace(/\d/g, '#')).toSorted()
      for (const [rank, lines] of all.entries())
        expect(forms(folded.filter(({ ranks }) => ranks.includes(rank)).map(({ text }) => text))).toEqual(forms(lines))
    }),
  )
})

it('finds the odd line among eight ranks of ten thousand', () => {
  const streams = Array.from({ length: 8 }, (_, rank) => ({
    rank,
    lines: Array.from({ length: 10_000 }, (_, step) => `step ${step} loss ${Math.sin(step + rank)}`),
  }))
  streams[5]?.lines.splice(7000, 0, 'ECC error on GPU 1')
  const folded = foldLines(streams)
  expect(folded).toHaveLength(10_001)
  expect(folded.filter(({ isOdd }) => isOdd)).toEqual([
    { claims: [], text: 'ECC error on GPU 1', varies: false, ranks: [5], isOdd: true },
  ])
  expect(folded.findIndex(({ isOdd }) => isOdd)).toBe(7000)
  expect(folded[0]?.varies).toBe(true)
})
