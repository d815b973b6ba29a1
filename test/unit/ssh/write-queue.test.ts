import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WRITE_QUEUE_LIMIT_BYTES, WriteQueue } from '../../../src/ssh/write-queue.ts'

describe('write queue', () => {
  it('takes a write whole or not at all', () => {
    const queue = new WriteQueue()
    expect(queue.offer(new Uint8Array(WRITE_QUEUE_LIMIT_BYTES - 1))).toBe(true)
    expect(queue.offer(new Uint8Array(2))).toBe(false)
    expect(queue.bytes).toBe(WRITE_QUEUE_LIMIT_BYTES - 1)
    expect(queue.offer(new Uint8Array(1))).toBe(true)
  })

  it('keeps the order and counts right, however often the channel fills', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 5 })),
        fc.infiniteStream(fc.boolean()),
        (writes, room) => {
          const queue = new WriteQueue()
          for (const bytes of writes) queue.offer(bytes)
          const written: Uint8Array[] = []
          const isEmpty = () =>
            queue.flush((bytes) => {
              written.push(bytes)
              return room.next().value as boolean
            })
          for (let rounds = 0; rounds <= writes.length && !isEmpty(); rounds++) {
            expect(queue.bytes).toBe(writes.slice(written.length).reduce((sum, { length }) => sum + length, 0))
          }
          expect(written).toEqual(writes)
          expect(queue.bytes).toBe(0)
        },
      ),
    )
  })

  it('forgets everything at once', () => {
    const queue = new WriteQueue()
    queue.offer(new Uint8Array(7))
    expect(queue.clear()).toBe(7)
    expect(queue.flush(() => expect.unreachable('nothing waits'))).toBe(true)
  })
})
