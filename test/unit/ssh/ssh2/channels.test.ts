import { Duplex, PassThrough, type Writable } from 'node:stream'
import type { Client, ClientChannel } from 'ssh2'
import { describe, expect, it } from 'vitest'
import { Ssh2Channel } from '../../../../src/ssh/ssh2/connection.ts'

/** A channel over a stream; both keep what is written until they are told to continue. */
function fullChannel() {
  const waiting = { channel: [] as (() => void)[], stream: [] as (() => void)[] }
  const held = (queue: (() => void)[]) =>
    new Duplex({ highWaterMark: 64 * 1024, read() {}, write: (_chunk, _encoding, done) => void queue.push(done) })
  const stream = held(waiting.stream)
  const channel = Object.assign(held(waiting.channel), { stderr: new PassThrough(), incoming: {}, outgoing: {} })
  let drainedCount = 0
  const host = {
    client: {} as Client,
    stream,
    lostReason: () => undefined,
    isHungUp: () => false,
  }
  const process = new Ssh2Channel(host, channel as unknown as ClientChannel, 65_536, {
    onStdout() {},
    onStderr() {},
    onEnd() {},
    onDrain: () => {
      drainedCount += 1
    },
  })
  /** Lets the first write that waits go on, and everything that follows from it. */
  const release = async (queue: (() => void)[]) => {
    queue.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { process, stream: stream as Writable, waiting, release, drained: () => drainedCount }
}

describe('a channel that is full', () => {
  it('has room again although the stream below holds data and never drains', async () => {
    const { process, stream, waiting, release, drained } = fullChannel()
    // More than half of what makes it full, and less than what the stream itself calls full.
    stream.write(Buffer.alloc(40 * 1024))
    expect(stream.writableNeedDrain).toBe(false)
    expect(process.write(Buffer.alloc(60 * 1024))).toBe(false)
    await release(waiting.channel)
    expect(drained()).toBe(1)
  })

  it('waits for a full stream below, each time', async () => {
    const { process, stream, waiting, release, drained } = fullChannel()
    stream.write(Buffer.alloc(70 * 1024))
    expect(process.write(Buffer.alloc(60 * 1024))).toBe(false)
    await release(waiting.stream)
    expect(drained()).toBe(0)
    stream.write(Buffer.alloc(70 * 1024))
    await release(waiting.channel)
    expect(drained()).toBe(0)
    await release(waiting.stream)
    expect(drained()).toBe(1)
  })
})
