import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  encodeHeader,
  FRAME_KINDS,
  FrameError,
  FrameReader,
  LARGEST_PAYLOAD,
} from '../../../../src/ssh/persist/frames.ts'

describe('frames', () => {
  it('arrive as they were sent, however the stream is cut', () => {
    const frame = fc.record({
      kind: fc.constantFrom(...Object.values(FRAME_KINDS)),
      channel: fc.nat(0xffffffff),
      payload: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    })
    fc.assert(
      fc.property(fc.array(frame), fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1 }), (frames, cuts) => {
        const stream = Buffer.concat(
          frames.flatMap(({ kind, channel, payload }) => [encodeHeader(kind, channel, payload.length), payload]),
        )
        const reader = new FrameReader()
        const read: unknown[] = []
        for (let at = 0, turn = 0; at < stream.length; turn += 1) {
          const size = cuts[turn % cuts.length] ?? 1
          read.push(...reader.push(stream.subarray(at, at + size)))
          at += size
        }
        expect(read).toEqual(frames)
      }),
    )
  })

  it('of hostile bytes are frames or an error, never more memory than was sent', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        try {
          for (const { payload } of new FrameReader().push(Buffer.from(bytes)))
            expect(payload.length).toBeLessThanOrEqual(bytes.length)
        } catch (error) {
          expect(error).toBeInstanceOf(FrameError)
        }
      }),
    )
  })

  it('that claim to be huge are refused by their header alone', () => {
    const header = encodeHeader(FRAME_KINDS.stdout, 1, LARGEST_PAYLOAD + 1)
    expect(() => new FrameReader().push(header)).toThrow(FrameError)
  })
})
