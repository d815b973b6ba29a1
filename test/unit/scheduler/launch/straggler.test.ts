import { describe, expect, it } from 'vitest'
import {
  cpuPartOf,
  findStragglers,
  formatLag,
  noteSights,
  type RankSight,
  type RankTraces,
  silenceOf,
} from '../../../../src/scheduler/launch/straggler.ts'

const RANKS = [0, 1, 2, 3]

/** Readings every two seconds; `sightOf`: of a rank after so many seconds. */
function traced(seconds: number, sightOf: (rank: number, s: number) => Partial<RankSight>): RankTraces {
  let traces: RankTraces = new Map()
  for (let s = 0; s <= seconds; s += 2) {
    const sights = RANKS.map((rank) => ({ rank, process: '0 9', cpuS: 0, quietS: 0, ...sightOf(rank, s) }))
    traces = noteSights(traces, sights, s * 1000)
  }
  return traces
}

/** Rank 2 does so many steps a second, the others 4. */
const paced = (seconds: number, perS: number) =>
  traced(seconds, (rank, s) => ({ step: Math.floor(s * (rank === 2 ? perS : 4)) }))

describe('stragglers', () => {
  it('are ranks whose steps lag by a fifth for a minute', () => {
    const found = findStragglers(paced(70, 2.4), RANKS)
    expect([...found.keys()]).toEqual([2])
    const [lag] = found.values()
    expect(formatLag('rank 2', lag ?? (undefined as never))).toBe('rank 2 is behind: 0.42 s a step, the others 0.25 s')
  })

  it('are not named before a minute has passed, nor for less than a fifth', () => {
    expect(findStragglers(paced(50, 2.4), RANKS).size).toBe(0)
    expect(findStragglers(paced(70, 3.6), RANKS).size).toBe(0)
  })

  it('are named when they do no step at all while the others go on', () => {
    const [lag] = findStragglers(paced(70, 0), RANKS).values()
    expect(formatLag('rank 2', lag ?? (undefined as never))).toBe(
      'rank 2 is behind: no step for 60 s, the others 0.25 s a step',
    )
  })

  it('are not ranks whose next line is only due, as programs that print every hundredth step write rarely', () => {
    const rare = (late: number) => (rank: number, s: number) => ({
      step: 100 * Math.floor((s + (rank === 2 ? 0 : late)) / 25),
    })
    expect(findStragglers(traced(90, rare(20)), RANKS).size).toBe(0)
    expect(findStragglers(traced(400, rare(20)), RANKS).size).toBe(0)
    const slow = (rank: number, s: number) => ({ step: 100 * Math.floor(s / (rank === 2 ? 60 : 25)) })
    expect([...findStragglers(traced(400, slow), RANKS).keys()]).toEqual([2])
  })

  it('are not known of programs without steps, of one rank alone, and of ranks that began anew', () => {
    expect(
      findStragglers(
        traced(70, () => ({})),
        RANKS,
      ).size,
    ).toBe(0)
    expect(findStragglers(paced(70, 2), [2]).size).toBe(0)
    const anew = traced(70, (rank, s) => (rank === 2 && s > 40 ? { step: s, process: '1 12' } : { step: 4 * s }))
    expect(findStragglers(anew, RANKS).size).toBe(0)
    const epochs = traced(70, (_, s) => ({ step: (4 * s) % 100 }))
    expect(findStragglers(epochs, RANKS).size).toBe(0)
  })
})

describe('silence', () => {
  const quiet = (cpuPerS: number) => traced(60, (rank, s) => ({ quietS: 700 + s, cpuS: rank === 1 ? s * cpuPerS : 3 }))

  it('is that no rank wrote anything and none used its processor', () => {
    expect(silenceOf(quiet(0), RANKS, 600)).toEqual({ quietS: 760, watchedS: 60, usesCpu: false })
    expect(silenceOf(quiet(0.001), RANKS, 600)).toMatchObject({ usesCpu: false })
  })

  it('tells ranks that use a core apart, as MPI does when it waits', () => {
    expect(silenceOf(quiet(0.9), RANKS, 600)).toMatchObject({ usesCpu: true })
    expect(cpuPartOf(quiet(0.9), 1)).toBeCloseTo(0.9)
  })

  it('is not claimed before some seconds were watched, nor while one rank writes', () => {
    expect(
      silenceOf(
        traced(4, () => ({ quietS: 900 })),
        RANKS,
        600,
      ),
    ).toBeUndefined()
    expect(
      silenceOf(
        traced(60, (rank) => ({ quietS: rank === 3 ? 5 : 900 })),
        RANKS,
        600,
      ),
    ).toBeUndefined()
    expect(silenceOf(new Map(), RANKS, 600)).toBeUndefined()
    expect(silenceOf(new Map(), [], 600)).toBeUndefined()
  })
})
