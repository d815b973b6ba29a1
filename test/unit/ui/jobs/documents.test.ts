/** The filter of the list of jobs: what is drawn is searched. */
import { describe, expect, it } from 'vitest'
import type { Job, JobState } from '../../../../src/scheduler/jobs/job.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { lineColumns, listDocument } from '../../../../src/ui/jobs/documents.ts'
import { FIRST_TABLE_VIEW, filterRows } from '../../../../src/ui/rows/table-view.ts'
import { hostSpecs, jobOf, runningOn, statusOf } from './fake-queue.ts'

const NOW_MS = 600_000
const ONE_CORE = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
const failed: JobState = {
  ...{ kind: 'failed', startedMs: 0, endedMs: 400_000, reason: 'exit 1: out of memory' },
  places: [{ host: 'n1', devices: [] }],
  bundles: [{ kind: 'ended', end: { kind: 'exit', code: 1 }, beganMs: 0, ranMs: 400_000 }],
}
const JOBS: readonly Job[] = [
  { ...jobOf(1, failed), user: 'bob' },
  jobOf(2, runningOn('n2')),
  jobOf(3, { kind: 'done', endedMs: 0 }),
  jobOf(4, { kind: 'failed', endedMs: 0 }),
  jobOf(5, { kind: 'held' }),
  jobOf(6, runningOn('n3'), { request: ONE_CORE }),
]
const status = statusOf(hostSpecs(3), JOBS, { arrays: { 3: 3 }, down: { n2: 'no route' } })
const { groups: lines } = status
const columns = lineColumns({ status, readMs: NOW_MS })
const left = (filter: string): readonly number[] => filterRows(lines, columns, filter).map(({ first }) => first)

describe('the filter of the list of jobs', () => {
  const document = listDocument({
    ...{ status, lines, chosen: undefined, filter: 'all', view: FIRST_TABLE_VIEW },
    ...{ columns: 300, theme: themes.none, nowMs: NOW_MS },
  })
  it.each(
    lines.map(({ first }, index) => [first, index] as const),
  )('finds the row of job %i by each word that it shows, and leaves it out by each', (first, index) => {
    const row = document
      .row(index)
      .map(({ text }) => text)
      .join('')
    const words = row.split(/[\s█▒·]+/).filter((word) => /\D/.test(word))
    expect(words.length).toBeGreaterThan(5)
    for (const word of words) {
      expect([word, left(word)]).toEqual([word, expect.arrayContaining([first])])
      expect([word, left(`!${word}`)]).toEqual([word, expect.not.arrayContaining([first])])
    }
  })

  it('finds what jobs ask for, but by a number alone only by the title of the column', () => {
    expect(left('gpu')).toEqual([3, 2, 1])
    expect(left('!gpu')).toEqual([6])
    expect(left('asks:1')).toEqual([6])
    // Each of the others asks for 8 GiB.
    expect(left('8')).toEqual([])
    expect(left('user:bob')).toEqual([1])
    expect(left('no answer')).toEqual([2])
    expect(left('2/3')).toEqual([3])
    expect(left('on:n[1-2]')).toEqual([2, 1])
  })
})
