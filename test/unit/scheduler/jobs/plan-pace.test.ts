import { expect, test } from 'vitest'
import { PlanPace } from '../../../../src/scheduler/jobs/driver.ts'

test('plans at once for writes of others while plans are cheap, and spends at most a fifth of the time otherwise', () => {
  const planned = (tookMs: number) => {
    const pace = new PlanPace(1000)
    const at: number[] = []
    for (let nowMs = 10_000; nowMs < 20_000; nowMs += 5) {
      pace.noteNews()
      if (!pace.isDue(nowMs)) continue
      at.push(nowMs)
      pace.notePlan(nowMs, nowMs + tookMs)
    }
    return at
  }
  expect(planned(0)).toHaveLength(2000)
  expect(planned(20)).toHaveLength(100)
  expect(planned(3000)).toHaveLength(10)
})

test('plans at the longest interval when nothing is new', () => {
  const pace = new PlanPace(1000)
  pace.notePlan(10_000, 10_002)
  expect([pace.isDue(10_999), pace.isDue(11_000)]).toEqual([false, true])
})
