/** One end of a keeper's socket: what is no frame ends it, what goes wrong in a handler is heard, who says nothing goes. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import {
  encodeHeader,
  FRAME_KINDS,
  type FrameKind,
  KeeperLink,
  LARGEST_GREETING,
} from '../../../../src/ssh/persist/link.ts'
import { ServedProgram } from '../../../../src/ssh/persist/serve-program.ts'
import { WarmConnections } from '../../../../src/ssh/persist/warm-connections.ts'
import { FakeTransport } from '../fake-transport.ts'
import { ManualClock } from '../manual-clock.ts'

const socketOf = (): Socket =>
  new Duplex({ read: () => {}, write: (_bytes, _encoding, done) => done() }) as unknown as Socket
const frame = (kind: FrameKind, text: string): Buffer =>
  Buffer.concat([encodeHeader(kind, 0, text.length), Buffer.from(text)])

describe('a link', () => {
  const handlers = { onMessage: () => {}, onBytes: () => {}, onCredit: () => {}, onClose: () => {} }

  it.each([
    ['no JSON', frame(FRAME_KINDS.control, '{')],
    ['no object', frame(FRAME_KINDS.control, 'null')],
    ['a credit that is too short', frame(FRAME_KINDS.credit, 'x')],
    ['a frame of no known kind', frame(9 as FrameKind, 'x')],
  ])('ends on a message that it cannot read: %s', (_what, bytes) => {
    const socket = socketOf()
    new KeeperLink(socket, handlers)
    socket.emit('data', bytes)
    expect(socket.destroyed).toBe(true)
  })

  it('ends with a peer that sends more than a greeting before it has proved itself', () => {
    const socket = socketOf()
    new KeeperLink(socket, handlers)
    socket.emit('data', encodeHeader(FRAME_KINDS.control, 0, LARGEST_GREETING + 1))
    expect(socket.destroyed).toBe(true)
  })

  it('reports a defect of Muster', () => {
    const socket = socketOf()
    const onMessage = () => {
      throw new Error('a defect')
    }
    new KeeperLink(socket, { ...handlers, onMessage })
    expect(() => socket.emit('data', frame(FRAME_KINDS.control, '{}'))).toThrow('a defect')
  })
})

describe('a program at the keeper', () => {
  it('that does not prove itself is disconnected', () => {
    const clock = new ManualClock()
    const socket = socketOf()
    const served = new ServedProgram(socket, {
      token: Buffer.alloc(32),
      warm: new WarmConnections(clock, () => {}),
      transport: new FakeTransport(),
      clock,
      onGone: () => {},
    })
    expect(served.isTrusted).toBe(false)
    clock.advance(9_000)
    expect(socket.destroyed).toBe(false)
    clock.advance(2_000)
    expect(socket.destroyed).toBe(true)
  })
})
