import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { roundRobin, slotsOf } from '../../../../src/ops/net/mesh/link.ts'

const names = (count: number) => Array.from({ length: count }, (_, index) => `m${index + 1}`)
const counts = fc.integer({ min: 1, max: 65 })

describe('rounds of a mesh', () => {
  it('have every pair once, and no host twice at the same time', () => {
    fc.assert(
      fc.property(counts, (count) => {
        const rounds = roundRobin(names(count))
        expect(rounds).toHaveLength(count < 2 ? 0 : count % 2 === 0 ? count - 1 : count)
        for (const round of rounds) {
          const ends = round.flatMap(({ from, to }) => [from, to])
          expect(new Set(ends).size).toBe(ends.length)
        }
        const pairs = new Set(rounds.flat().map(({ from, to }) => [from, to].toSorted().join(' ')))
        expect(pairs.size).toBe((count * (count - 1)) / 2)
        expect(rounds.flat()).toHaveLength(pairs.size)
      }),
    )
  })

  it('become slots that contain every ordered pair once, whatever is measured at the same time', () => {
    fc.assert(
      fc.property(counts, fc.boolean(), fc.boolean(), (count, isSerial, isBidirectional) => {
        const slots = slotsOf(names(count), { isSerial, isBidirectional })
        const links = slots.flat().map(({ from, to }) => `${from} ${to}`)
        expect(links).toHaveLength(count * (count - 1))
        expect(new Set(links).size).toBe(links.length)
        for (const slot of slots) {
          const senders = slot.map(({ from }) => from)
          const receivers = slot.map(({ to }) => to)
          expect(new Set(senders).size).toBe(senders.length)
          expect(new Set(receivers).size).toBe(receivers.length)
          if (!isBidirectional) expect(new Set([...senders, ...receivers]).size).toBe(2 * slot.length)
          if (isSerial) expect(slot.length).toBe(isBidirectional ? 2 : 1)
        }
      }),
    )
  })
})
