/** A stranger at a keeper's socket that cannot read its secret: the keeper connects, reports and asks nothing for it. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, it } from 'vitest'
import { KeeperClient } from '../../../src/ssh/persist/keeper-client.ts'
import { proofOf } from '../../../src/ssh/persist/keeper-directory.ts'
import { encodeHeader, FRAME_KINDS, FrameReader } from '../../../src/ssh/persist/link.ts'
import { PROTOCOL } from '../../../src/ssh/persist/messages.ts'
import { ServedProgram } from '../../../src/ssh/persist/serve-program.ts'
import { WarmConnections } from '../../../src/ssh/persist/warm-connections.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { type Choice, mutate } from '../../support/hostile-host/mutate.ts'
import { playMutations } from '../../support/hostile-host/play.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const TOKEN = Buffer.alloc(32, 1)
const NONCE = '0123456789abcdef0123456789abcdef'
const GUESSED = proofOf('keeper', Buffer.alloc(32), NONCE, NONCE)
const FOREIGN = [NONCE, GUESSED, 'proof', 'hello', 'connect', '{"toString":1}', '{"length":1e9}']

function socketOf(): { readonly socket: Socket; readonly written: Buffer[] } {
  const written: Buffer[] = []
  const write = (bytes: Buffer, _: unknown, done: () => void) => {
    written.push(bytes)
    done()
  }
  const socket = Object.assign(new Duplex({ read() {}, write }), { ref() {}, unref() {} })
  return { socket: socket as unknown as Socket, written }
}

/** Messages as frames; either the messages are mutated or the bytes of all of them. */
function play(
  socket: Socket,
  messages: readonly object[],
  choice: Choice,
  note: (...how: readonly string[]) => void,
): void {
  const frames = messages.map((message) => {
    const good = Buffer.from(JSON.stringify(message))
    const { pieces, how } = choice.once(2) ? mutate(good, choice, FOREIGN) : { pieces: [good], how: [] }
    note(...how)
    const payload = Buffer.concat(pieces)
    return Buffer.concat([encodeHeader(FRAME_KINDS.control, 0, payload.length), payload])
  })
  const good = Buffer.concat(frames)
  const answer = choice.once(3)
    ? mutate(good, choice, FOREIGN)
    : { pieces: [good], endless: undefined, end: 'silent', how: [] }
  note(...answer.how)
  for (const piece of answer.pieces) socket.emit('data', piece)
  for (let count = 0; answer.endless !== undefined && count < 100; count++) socket.emit('data', answer.endless)
  if (answer.end !== 'silent') socket.destroy()
}

/** The kinds of messages that were written. */
function told(written: readonly Buffer[]): readonly unknown[] {
  const reader = new FrameReader()
  reader.add(Buffer.concat(written))
  const types: unknown[] = []
  for (let frame = reader.next(); frame !== undefined; frame = reader.next())
    types.push(JSON.parse(frame.payload.toString()).type)
  return types
}

describe('a stranger at the socket of a keeper', () => {
  const MESSAGES = [
    { type: 'hello', protocol: PROTOCOL, nonce: NONCE },
    { type: 'proof', proof: GUESSED },
    { type: 'connect', id: 1, endpoint: endpointOf('m1'), persistMs: 60_000 },
    { type: 'list', id: 2 },
    { type: 'stop', id: 3 },
  ]

  it('gets a greeting only, opens no connection and is disconnected', async () => {
    await playMutations(async ({ choice, note }) => {
      const clock = new ManualClock()
      const { socket, written } = socketOf()
      let isGone = false
      const served = new ServedProgram(socket, {
        ...{ token: TOKEN, clock, warm: new WarmConnections(clock, () => {}) },
        transport: {
          connect: () => {
            throw new Error('it connects for a stranger')
          },
        },
        onGone: () => {
          isGone = true
        },
      })
      play(socket, MESSAGES, choice, note)
      if (served.isTrusted) throw new Error('a stranger is trusted')
      clock.advance(60_000)
      await new Promise((resolve) => setImmediate(resolve))
      if (!isGone || !socket.destroyed) throw new Error('a stranger stays')
      const messages = told(written)
      if (messages.length > 1 || messages.some((type) => type !== 'hello'))
        throw new Error(`it is told ${messages.join()}`)
      if (clock.timerCount > 0) throw new Error('timers are left')
    })
  })
})

describe('a stranger in place of a keeper', () => {
  const MESSAGES = [
    { type: 'hello', protocol: PROTOCOL, nonce: NONCE, proof: GUESSED },
    { type: 'ask', id: 1, question: 1, what: { kind: 'password', endpoint: endpointOf('m1'), isRetry: false } },
    { type: 'connected', id: 1 },
    { type: 'warm', id: 1, connections: [] },
  ]

  it('gets no proof and no answer, and what waits for it ends', async () => {
    await playMutations(async ({ choice, note }) => {
      const { socket, written } = socketOf()
      const client = new KeeperClient(socket, TOKEN, () => {})
      const greeted = client.greeted.then(
        () => true,
        () => false,
      )
      play(socket, MESSAGES, choice, note)
      client.giveUp()
      if (await greeted) throw new Error('a stranger is taken for the keeper')
      await new Promise((resolve) => setImmediate(resolve))
      const messages = told(written)
      if (messages.length > 1 || messages.some((type) => type !== 'hello'))
        throw new Error(`it is told ${messages.join()}`)
      if (!socket.destroyed || !client.isGone) throw new Error('its socket stays open')
    })
  })
})
