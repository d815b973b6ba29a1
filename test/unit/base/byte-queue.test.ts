import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteQueue } from '../../../src/base/byte-queue.ts'

describe('a queue of bytes', () => {
  it('takes a chunk whole or not at all', () => {
    const queue = new ByteQueue(1000)
    expect(queue.push(new Uint8Array(999))).toBe(true)
    expect(queue.push(new Uint8Array(2))).toBe(false)
    expect(queue.bytes).toBe(999)
    expect(queue.push(new Uint8Array(1))).toBe(true)
  })

  it('keeps order and counts right, however much is taken at once', () => {
    const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 5 }))
    fc.assert(
      fc.property(chunks, fc.infiniteStream(fc.integer({ min: 1, max: 7 })), (writes, most) => {
        const queue = new ByteQueue()
        for (const bytes of writes) queue.push(bytes)
        const all = Buffer.concat(writes)
        const taken: Uint8Array[] = []
        for (let bytes = queue.take(most.next().value); bytes; bytes = queue.take(most.next().value)) {
          taken.push(bytes)
          expect(queue.bytes).toBe(all.length - Buffer.concat(taken).length)
        }
        expect(Buffer.concat(taken)).toEqual(all)
        expect(queue.bytes).toBe(0)
      }),
    )
  })

  it('gives whole chunks without a limit, and forgets everything at once', () => {
    const queue = new ByteQueue()
    for (const length of [7, 2, 3]) queue.push(new Uint8Array(length))
    expect(queue.take()).toHaveLength(7)
    expect(queue.takeAll()).toHaveLength(5)
    expect([queue.bytes, queue.take()]).toEqual([0, undefined])
  })
})
