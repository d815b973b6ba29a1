import { describe, expect, test } from 'vitest'
import { QUEUE_POLICIES } from '../../../../src/scheduler/queue/queue-policies.ts'
import { parseWorkloadLog, runLog, scaleSubmitTimes } from '../../../../src/scheduler/simulate/swf.ts'
import { atOnce } from '../../../support/at-once.ts'

const REST = '-1 -1 -1 -1 -1 -1 -1 -1 -1'
const LOG = `; Version: 2.2
; MaxNodes: 4
; MaxProcs: 8
    1   0 -1 100  6 -1 -1 -1  -1 ${REST}
    2  10 -1   0  6 -1 -1 -1  -1 ${REST}
    3  20 -1  50  4 -1 -1  8  60 ${REST}
    4  30 -1  20  2 -1 -1 -1  10 ${REST}
    5  31 -1  20 99 -1 -1 -1  -1 ${REST}
`

describe('a workload log', () => {
  test('prefers requested to used amounts, and no estimate is below the run time', () => {
    expect(parseWorkloadLog(LOG)).toEqual({
      processors: 8,
      leftOut: 1,
      jobs: [
        { order: 0, submitS: 0, runS: 100, width: 6, estimateS: 100 },
        { order: 1, submitS: 20, runS: 50, width: 8, estimateS: 60 },
        { order: 2, submitS: 30, runS: 20, width: 2, estimateS: 20 },
        { order: 3, submitS: 31, runS: 20, width: 99, estimateS: 20 },
      ],
    })
  })

  test('names the line that is not a job', () => {
    expect(() => parseWorkloadLog(`${LOG}\n1 2 x\n`)).toThrow('line 10 is not a job')
  })

  test('scales submit times to whole seconds', () => {
    const { jobs } = parseWorkloadLog(LOG)
    expect(scaleSubmitTimes(jobs, 0.5).map(({ submitS }) => submitS)).toEqual([0, 10, 15, 15])
  })
})

test('computes waits, slowdowns and utilisation as defined', () => {
  const { jobs } = parseWorkloadLog(LOG)
  const { queueLengths, ...result } = atOnce(runLog(jobs, 8, QUEUE_POLICIES.fcfs()))
  // Starts 0, 100, 150; the last ends at 170.
  expect(result).toEqual({
    jobs: 3,
    tooWide: 1,
    averageWaitS: (0 + 80 + 120) / 3,
    averageBoundedSlowdown: (1 + 130 / 50 + 140 / 20) / 3,
    maximumWaitS: 120,
    utilisationPercent: (100 * (600 + 400 + 40)) / (8 * 170),
  })
  expect(Math.max(...queueLengths)).toBe(2)
  expect(atOnce(runLog(jobs, 8, QUEUE_POLICIES.easy()))).toMatchObject({ averageWaitS: 80 / 3, maximumWaitS: 80 })
})
