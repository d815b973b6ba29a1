/** The machine that the console runs on, looked at beside the hosts. */
import { expect, it, vi } from 'vitest'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'
import { OwnMachine } from '../../../../src/ops/net/watch/watch-hosts.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const seen: Omit<Sample, 'atMs'> = {
  cores: 2,
  cpu: 0.25,
  memoryBytes: 100,
  memoryUsedBytes: 50,
  swapBytes: 0,
  swapUsedBytes: 0,
  cards: [],
  gpus: [],
}

it('is sampled once a second until it is disposed of', async () => {
  const clock = new ManualClock()
  let looks = 0
  const changed = { next: Promise.withResolvers<void>() }
  const own = new OwnMachine({
    port: { poll: async () => (++looks === 1 ? undefined : seen) },
    clock,
    onChange: () => changed.next.resolve(),
  })
  await vi.waitFor(() => expect(clock.timerCount).toBe(1))
  expect(own.view).toEqual({ host: '(here)', samples: [], isOwn: true })
  clock.advance(1000)
  await changed.next.promise
  expect(own.view.samples).toEqual([{ ...seen, atMs: clock.now() }])
  own[Symbol.dispose]()
  clock.advance(5000)
  expect(looks).toBe(2)
})

it('says why it cannot be sampled', async () => {
  const changed = Promise.withResolvers<void>()
  using own = new OwnMachine({
    port: { poll: () => Promise.reject(new Error('no package')) },
    clock: new ManualClock(),
    onChange: changed.resolve,
  })
  await changed.promise
  expect(own.view.trouble).toBe('no package')
})
