/** The socket of a console: only processes that can read the user's secret get further than a greeting. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FromConsole, ToConsole } from '../../../../src/cli/sessions/messages.ts'
import { acceptLink, openProvenLink } from '../../../../src/cli/sessions/proven-link.ts'
import { encodeHeader, FRAME_KINDS } from '../../../../src/ssh/persist/link.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const TOKEN = Buffer.alloc(32, 1)
const OTHER = Buffer.alloc(32, 2)

describe('a console at its socket', () => {
  let directory: string
  let address: string
  let server: Server
  const handled: ToConsole[] = []
  const clock = new ManualClock()

  const listen = async (onSocket: (socket: Socket) => void) => {
    server = createServer(onSocket)
    await once(server.listen(address), 'listening')
  }

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-link-'))
    address = join(directory, 'console')
    handled.length = 0
  })

  afterEach(async () => {
    server.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const serve = () =>
    listen((socket) => {
      const link = acceptLink(
        socket,
        TOKEN,
        {
          onMessage: (message) => {
            handled.push(message)
            link.send({ type: 'refused', reason: 'test' })
          },
          onClose: () => {},
        },
        clock,
      )
    })

  it('answers a client that has the secret', async () => {
    await serve()
    const answers: FromConsole[] = []
    const closed = Promise.withResolvers<void>()
    const link = await openProvenLink(
      address,
      TOKEN,
      {
        onMessage: (message) => {
          answers.push(message)
          link.close()
        },
        onClose: closed.resolve,
      },
      clock,
    )
    link.send({ type: 'describe' })
    await closed.promise
    expect(answers).toEqual([{ type: 'refused', reason: 'test' }])
    expect(handled).toEqual([{ type: 'describe' }])
  })

  it('is not believed by a client with another secret', async () => {
    await serve()
    const nothing = { onMessage: () => {}, onClose: () => {} }
    await expect(openProvenLink(address, OTHER, nothing, clock)).rejects.toThrow('is not a console of this version')
    expect(handled).toEqual([])
  })

  it.each([
    ['attaches without a proof', [{ type: 'attach', terminal: '/dev/tty', environment: {} }]],
    ['ends it without a proof', [{ type: 'hello', protocol: 1, nonce: '00' }, { type: 'end' }]],
    [
      'guesses the proof',
      [{ type: 'hello', protocol: 1, nonce: '00' }, { type: 'proof', proof: '00' }, { type: 'end' }],
    ],
  ])('disconnects a stranger that %s', async (_, messages) => {
    await serve()
    const socket = connect(address)
    await once(socket, 'connect')
    for (const message of messages) {
      const payload = Buffer.from(JSON.stringify(message))
      socket.write(Buffer.concat([encodeHeader(FRAME_KINDS.control, 0, payload.length), payload]))
    }
    socket.resume()
    await once(socket, 'close')
    expect(handled).toEqual([])
  })

  it('disconnects a silent client, and a client gives up on a silent console', async () => {
    await serve()
    const socket = connect(address).resume()
    await waitUntil(() => clock.timerCount === 1, 'the console to wait for a greeting')
    clock.advance(3_000)
    await once(socket, 'close')

    server.close()
    await once(server, 'close')
    await listen(() => {})
    const opening = openProvenLink(address, TOKEN, { onMessage: () => {}, onClose: () => {} }, clock)
    await waitUntil(() => clock.timerCount === 1, 'the client to wait for an answer')
    clock.advance(3_000)
    await expect(opening).rejects.toThrow('does not answer')
  })
})
