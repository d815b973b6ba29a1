import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { pollUsage } from '../../../../src/cli/job/poll-usage.ts'
import type { EngineUsage } from '../../../../src/scheduler/jobs/engine.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const NOTHING: EngineUsage = { nodes: [], jobs: [] }

function polling() {
  const clock = new ManualClock()
  const asked: { readonly signal: AbortSignal; answer(usage: EngineUsage | string): void }[] = []
  const told: (EngineUsage | string)[] = []
  const read = (signal: AbortSignal) =>
    new Promise<EngineUsage | string>((resolve) => asked.push({ signal, answer: resolve }))
  const poll = pollUsage(read, clock, (usage) => told.push(usage))
  return { clock, asked, told, poll }
}

it('reads at once, then four seconds after each answer', async () => {
  const { clock, asked, told } = polling()
  asked[0]?.answer(NOTHING)
  await setImmediate()
  clock.advance(3999)
  expect([asked.length, told]).toEqual([1, [NOTHING]])
  clock.advance(1)
  expect(asked).toHaveLength(2)
  asked[1]?.answer('refused')
  await setImmediate()
  expect(told).toEqual([NOTHING, 'refused'])
})

it('gives up a reading without an answer, and asks again only after that has ended', async () => {
  const { clock, asked, told } = polling()
  clock.advance(60_000)
  expect([asked.length, asked[0]?.signal.aborted, told]).toEqual([1, true, ['no answer in time']])
  asked[0]?.answer(NOTHING)
  await setImmediate()
  clock.advance(4000)
  expect([asked.length, told]).toEqual([2, ['no answer in time']])
})

it('tells nothing and reads nothing after it was disposed', async () => {
  const { clock, asked, told, poll } = polling()
  poll[Symbol.dispose]()
  expect(asked[0]?.signal.aborted).toBe(true)
  asked[0]?.answer(NOTHING)
  await setImmediate()
  clock.advance(60_000)
  expect([asked.length, told]).toEqual([1, []])
})
