/** A keeper and a program that send without end to each other: each is cut off, with the reason, before it has filled the other's memory. */

import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { KeeperClient, KeeperGone } from '../../../../src/ssh/persist/keeper-client.ts'
import { newNonce, proofOf } from '../../../../src/ssh/persist/keeper-directory.ts'
import { encodeHeader, FRAME_KINDS, type FrameKind } from '../../../../src/ssh/persist/link.ts'
import { PROTOCOL } from '../../../../src/ssh/persist/messages.ts'
import { ServedProgram } from '../../../../src/ssh/persist/serve-program.ts'
import { WarmConnections } from '../../../../src/ssh/persist/warm-connections.ts'
import type { Connection, RemoteProcess } from '../../../../src/ssh/transport.ts'
import { watchedContext } from '../../../support/ssh-context.ts'
import { endpointOf } from '../fake-transport.ts'
import { ManualClock } from '../manual-clock.ts'

const TOKEN = Buffer.alloc(32, 7)
/** Far more than anybody may have to keep. */
const ENDLESS_BYTES = 256 * 1024 * 1024
const PIECE = Buffer.alloc(64 * 1024)

/** The other end of a socket, as a test plays it. */
class Peer {
  readonly messages: { type: string; [name: string]: unknown }[] = []
  readonly socket: Socket

  constructor() {
    const socket = new Duplex({
      read: () => {},
      write: (bytes: Buffer, _encoding, done) => {
        if (bytes[0] === 0x7b) this.messages.push(JSON.parse(bytes.toString()))
        done()
      },
    })
    this.socket = Object.assign(socket, { ref() {}, unref() {} }) as unknown as Socket
  }

  bytes(kind: FrameKind, channel: number, payload: Buffer): void {
    this.socket.emit('data', encodeHeader(kind, channel, payload.length))
    this.socket.emit('data', payload)
  }

  say(message: object): void {
    this.bytes(FRAME_KINDS.control, 0, Buffer.from(JSON.stringify(message)))
  }

  async heard(type: string) {
    for (let turn = 0; turn < 100; turn += 1) {
      const found = this.messages.find((message) => message.type === type)
      if (found !== undefined) return found
      await new Promise(setImmediate)
    }
    throw new Error(`nobody said ${type}`)
  }

  /** How much it took until the other side had enough. */
  flood(send: () => number): number {
    let sent = 0
    while (!this.socket.destroyed && sent < ENDLESS_BYTES) sent += send()
    return sent
  }
}

describe('a keeper that sends without end', () => {
  const borrow = async () => {
    const keeper = new Peer()
    const client = new KeeperClient(keeper.socket, TOKEN, () => {})
    const { nonce } = await keeper.heard('hello')
    const own = newNonce()
    keeper.say({ type: 'hello', protocol: PROTOCOL, nonce: own, proof: proofOf('keeper', TOKEN, String(nonce), own) })
    await client.greeted
    const lost: string[] = []
    const context = { ...watchedContext(), onLost: (reason: string) => void lost.push(reason) }
    const connecting = client.connect(endpointOf('m1'), 1000, context)
    const { id } = await keeper.heard('connect')
    return { keeper, connecting, id, lost }
  }

  it('is disconnected after its first bytes while it has not proved itself', async () => {
    const keeper = new Peer()
    const client = new KeeperClient(keeper.socket, TOKEN, () => {})
    const greeted = client.greeted.catch((error: unknown) => error)
    const sent = keeper.flood(() => {
      keeper.socket.emit('data', Buffer.alloc(PIECE.length, 0xff))
      return PIECE.length
    })
    expect(sent).toBe(PIECE.length)
    const error = await greeted
    expect(error).toBeInstanceOf(KeeperGone)
    expect(String(error)).toContain('the keeper of warm connections was cut off: it sent a frame of 4294967295 bytes')
  })

  it('is disconnected if output comes for a channel that nothing reads', async () => {
    const { keeper, connecting, id, lost } = await borrow()
    keeper.say({ type: 'connected', id })
    const connection = await connecting
    const handlers = { onStdout() {}, onStderr() {}, onEnd() {} }
    const executing = connection.exec('yes', handlers)
    const { channel } = await keeper.heard('open')
    keeper.say({ type: 'opened', channel })
    ;(await executing).pause()
    const sent = keeper.flood(() => {
      keeper.bytes(FRAME_KINDS.stdout, Number(channel), PIECE)
      return PIECE.length
    })
    expect(sent).toBeLessThan(2 * 1024 * 1024)
    await new Promise(setImmediate)
    expect(lost).toEqual(['the keeper of warm connections was cut off: it sent more than its window allows'])
  })

  it('is disconnected if it asks without end', async () => {
    const { keeper, connecting, id } = await borrow()
    const failed = connecting.catch((error: unknown) => error)
    let question = 0
    const what = { kind: 'algorithms', endpoint: endpointOf('m1') }
    keeper.flood(() => {
      question += 1
      keeper.say({ type: 'ask', id, question, what })
      return 1024
    })
    expect(question).toBeLessThan(50)
    expect(String(await failed)).toContain('was cut off: it asked more than 16 questions at once')
  })
})

describe('a program that sends without end', () => {
  const serve = async () => {
    const program = new Peer()
    const clock = new ManualClock()
    const deaf: RemoteProcess = {
      write: () => false,
      endInput() {},
      signal() {},
      pause() {},
      resume() {},
      close() {},
    }
    const connection = { exec: async () => deaf, close() {} } as unknown as Connection
    new ServedProgram(program.socket, {
      token: TOKEN,
      warm: new WarmConnections(clock, () => {}),
      transport: { connect: async () => connection },
      clock,
      onGone() {},
    })
    return program
  }

  it('is disconnected after its first bytes while it has not proved itself', async () => {
    const program = await serve()
    const sent = program.flood(() => {
      program.socket.emit('data', Buffer.alloc(PIECE.length, 0x20))
      return PIECE.length
    })
    expect(sent).toBe(PIECE.length)
  })

  it('is disconnected if its input goes to a command that does not read', async () => {
    const program = await serve()
    const own = newNonce()
    program.say({ type: 'hello', protocol: PROTOCOL, nonce: own })
    const { nonce } = await program.heard('hello')
    program.say({ type: 'proof', proof: proofOf('program', TOKEN, own, String(nonce)) })
    program.say({ type: 'connect', id: 1, endpoint: endpointOf('m1'), persistMs: 1000 })
    await program.heard('connected')
    program.say({ type: 'open', id: 1, channel: 2, what: { kind: 'exec', command: 'sleep 1000' } })
    await program.heard('opened')
    await new Promise(setImmediate)
    const sent = program.flood(() => {
      program.bytes(FRAME_KINDS.stdin, 2, PIECE)
      return PIECE.length
    })
    expect(sent).toBeLessThan(2 * 1024 * 1024)
  })
})
