/** `npm run bench -- ranks`: what it takes to fold the output of all ranks of a job into one text, and to find the odd line. */
import { foldLines } from '../../src/scheduler/launch/fold.ts'
import { formatPair, formatTable, median } from './support/statistics.ts'

const RANKS = 8
const LINES = 10_000
const ROUNDS = 30
const GOAL_MS = 100

export function benchRanks(): string {
  const streams = Array.from({ length: RANKS }, (_, rank) => ({ rank, lines: linesOf(rank) }))
  streams[5]?.lines.splice(LINES / 2, 0, 'ECC error on GPU 1')
  const times = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    const odd = foldLines(streams).filter(({ isOdd }) => isOdd)
    if (odd.length !== 1) throw new Error(`found ${odd.length} odd lines`)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
  return formatTable([
    {
      what: `${RANKS} ranks of ${LINES} lines folded, ms of processor time p50 / p99`,
      ours: formatPair(times),
      peer: '–',
      goal: `p50 ≤ ${GOAL_MS}`,
      isReached: median(times) <= GOAL_MS,
    },
  ])
}

const linesOf = (rank: number): string[] =>
  Array.from({ length: LINES }, (_, step) => {
    const loss = Math.abs(Math.sin(step + rank)).toFixed(5)
    return `2026-11-21 10:00:${step % 60} epoch ${step >> 6} step ${step}/${LINES} loss ${loss} lr 1e-${rank}`
  })
