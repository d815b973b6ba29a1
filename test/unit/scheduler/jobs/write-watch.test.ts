import { expect, test } from 'vitest'
import { WriteWatch } from '../../../../src/scheduler/jobs/write-watch.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const watched = () => {
  const clock = new ManualClock()
  const looks: number[] = []
  const state = { hasNews: false }
  const beganMs = clock.now()
  const watch = new WriteWatch(clock, () => {
    looks.push(clock.now() - beganMs)
    return state.hasNews
  })
  return { clock, looks, state, watch }
}

test('finds a write soon after it can be read, which is after it was reported', () => {
  const { clock, looks, state, watch } = watched()
  watch.note()
  clock.advance(5)
  state.hasNews = true
  clock.advance(2)
  expect(looks.at(-1)).toBeLessThanOrEqual(7)
  expect(clock.timerCount).toBe(0)
})

test('looks less and less often, and not for long when nothing is new', () => {
  const { clock, looks, watch } = watched()
  watch.note()
  clock.advance(1000)
  expect(looks.length).toBeLessThan(15)
  expect(clock.timerCount).toBe(0)
  watch.note()
  watch.note()
  expect(clock.timerCount).toBe(1)
  watch[Symbol.dispose]()
  expect(clock.timerCount).toBe(0)
})
