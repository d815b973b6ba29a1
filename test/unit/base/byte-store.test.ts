/** Bytes that come in pieces. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { ByteStore } from '../../../src/base/byte-store.ts'

it('has all of them in order', () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.uint8Array())), (rounds) => {
      const store = new ByteStore()
      for (const pieces of rounds) {
        for (const piece of pieces) store.append(piece)
        const all = Buffer.concat(pieces)
        expect(store.length).toBe(all.length)
        expect(store.take().equals(all)).toBe(true)
      }
    }),
  )
})

it('takes millions of single bytes', () => {
  const store = new ByteStore()
  for (let index = 0; index < 4_000_000; index += 1) store.append(Uint8Array.of(index % 256))
  expect(store.take()).toHaveLength(4_000_000)
})
