import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  encodeHeader,
  FRAME_KINDS,
  type Frame,
  FrameError,
  FrameReader,
  LARGEST_PAYLOAD,
} from '../../../../src/ssh/persist/link.ts'

const read = (reader: FrameReader, bytes: Buffer): Frame[] => {
  reader.add(bytes)
  const frames: Frame[] = []
  for (let frame = reader.next(); frame !== undefined; frame = reader.next()) frames.push(frame)
  return frames
}

describe('frames', () => {
  it('arrive unchanged, however the stream is cut', () => {
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
        const arrived: unknown[] = []
        for (let at = 0, turn = 0; at < stream.length; turn += 1) {
          const size = cuts[turn % cuts.length] ?? 1
          arrived.push(...read(reader, stream.subarray(at, at + size)))
          at += size
        }
        expect(arrived).toEqual(frames)
      }),
    )
  })

  it('of hostile bytes are frames or an error, and never need more memory than was sent', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        try {
          for (const { payload } of read(new FrameReader(), Buffer.from(bytes)))
            expect(payload.length).toBeLessThanOrEqual(bytes.length)
        } catch (error) {
          expect(error).toBeInstanceOf(FrameError)
        }
      }),
    )
  })

  it('that claim to be huge are refused by their header alone', () => {
    const header = encodeHeader(FRAME_KINDS.stdout, 1, LARGEST_PAYLOAD + 1)
    expect(() => read(new FrameReader(), header)).toThrow(FrameError)
  })
})
