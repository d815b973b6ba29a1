/** The socket of the scheduler for programs: whatever connects and whatever it sends, the others are served. */
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askScheduler, programSocket, servePrograms } from '../../../src/cli/study/program-socket.ts'
import type { ProgramDesk, ProgramLine } from '../../../src/scheduler/jobs/study-desk.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Answers all but what waits: asks. */
class FakeDesk implements ProgramDesk {
  readonly waiting = new Map<ProgramLine, string>()
  readonly told: string[] = []

  request(...[request, line]: Parameters<ProgramDesk['request']>) {
    this.told.push(`${request.kind} ${request.study}`)
    if (request.kind !== 'ask') return Promise.resolve({})
    this.waiting.set(line, request.study)
    return Promise.withResolvers<never>().promise
  }

  leave(line: ProgramLine) {
    this.waiting.delete(line)
  }
}

describe('the socket for programs', () => {
  let directory: string
  let address: string
  let desk: FakeDesk
  let said: string[]
  let open: Disposable[]

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-socket-'))
    address = join(directory, 'jobs', 'lab.sock')
    desk = new FakeDesk()
    said = []
    open = []
  })
  afterEach(() => {
    for (const one of open) one[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  const serve = async (own = desk) => {
    const before = statSync(address, { throwIfNoEntry: false })?.ino
    const server = servePrograms(address, own, (text) => said.push(text))
    open.push(server)
    await waitUntil(
      () => ![undefined, before].includes(statSync(address, { throwIfNoEntry: false })?.ino),
      'the socket',
    )
    return server
  }
  const program = async () => {
    const socket = connect(address)
    open.push({ [Symbol.dispose]: () => socket.destroy() })
    let text = ''
    socket.on('error', () => {})
    await once(socket, 'connect')
    return Object.assign(socket, {
      listen() {
        socket.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
        })
        return socket
      },
      text: () => text,
    })
  }
  const isServed = async () => {
    const other = await program()
    other.listen()
    other.write('{"tell":"other","trial":1,"values":1}\n')
    await waitUntil(() => other.text() === '{}\n', 'the answer to another program')
    other.destroy()
  }

  it.skipIf(process.getuid?.() !== 0)('is not asked if it is another user’s', async () => {
    mkdirSync(dirname(address), { mode: 0o700 })
    await serve()
    chownSync(address, 65_534, 65_534)
    const context = { signal: new AbortController().signal, now: Date.now, stderr: new PassThrough() }
    await expect(askScheduler(address, { ask: 'wf' }, context as never)).rejects.toThrow(
      'is not used: it belongs to user 65534, not to you (0)',
    )
    expect(desk.told).toEqual([])
  })

  it('is only for its user', async () => {
    await serve()
    expect(statSync(address).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(address)).mode & 0o777).toBe(0o700)
    expect(readdirSync(dirname(address))).toEqual(['lab.sock'])
  })

  it('takes the place of one that was left, and leaves that of another scheduler', async () => {
    mkdirSync(dirname(address), { mode: 0o700 })
    writeFileSync(address, 'left')
    writeFileSync(`${address}-0123abcd`, 'left')
    writeFileSync(join(dirname(address), 'lab.sock.note'), 'mine')
    const first = await serve()
    expect(readdirSync(dirname(address)).toSorted()).toEqual(['lab.sock', 'lab.sock.note'])
    const second = await serve(new FakeDesk())
    first[Symbol.dispose]()
    await isServedBy(second)
    second[Symbol.dispose]()
    expect(readdirSync(dirname(address))).toEqual(['lab.sock.note'])
  })
  const isServedBy = async (_: Disposable) => await isServed()

  it('is in a short directory where the state directory has a long path', () => {
    expect(programSocket('/home/ann/.local/state/muster/jobs/lab.db')).toBe(
      '/home/ann/.local/state/muster/jobs/lab.sock',
    )
    const long = programSocket(`/home/${'a'.repeat(80)}/.local/state/muster/jobs/lab.db`)
    expect(long).toMatch(/^\/tmp\/muster-\d+\/[0-9a-f]{16}\.sock$/)
    expect(programSocket(`/home/${'b'.repeat(80)}/.local/state/muster/jobs/lab.db`)).not.toBe(long)
  })

  it('answers a line at a time, in order', async () => {
    await serve()
    const one = await program()
    one.listen()
    one.write('{"tell":"a","trial":1,"values":1}\n{"tell":"b","tri')
    one.write('al":1,"values":1}\n{"hold":"c","trial":1,"token":"t"}\n')
    await waitUntil(() => one.text() === '{}\n{}\n{}\n', 'three answers')
    expect(desk.told).toEqual(['tell a', 'tell b', 'hold c'])
  })

  it.each([
    ['garbage', 'GET / HTTP/1.1\r\n\r\n', 'a line must be a JSON object'],
    ['a line without an end', 'x'.repeat(70_000), 'a line must be shorter than 65536 characters'],
    ['a thousand lines at once', '{"ask":"wf"}\n'.repeat(10_000), 'too many lines before the first one is answered'],
  ])('refuses %s in words, and serves others', async (_, sent, words) => {
    await serve()
    const one = await program()
    one.listen()
    one.write(sent)
    await once(one, 'close')
    expect(one.text()).toContain(words)
    await isServed()
  })

  it('disconnects who sends and never reads, and serves others', async () => {
    await serve()
    const one = await program()
    one.pause()
    const line = '{"tell":"wf","trial":1,"values":1}\n'.repeat(1000)
    const send = () => {
      if (!one.destroyed) one.write(line, (error) => error ?? setImmediate(send))
    }
    send()
    await waitUntil(() => desk.told.length > 5000, 'the flood')
    await isServed()
    await waitUntil(() => one.destroyed, 'the end of the flood')
  })

  it('notices that a program is gone while it waits', async () => {
    await serve()
    const one = await program()
    one.write('{"ask":"wf"}\n')
    await waitUntil(() => desk.waiting.size === 1, 'the request')
    one.destroy()
    await waitUntil(() => desk.waiting.size === 0, 'the end of the connection')
  })

  it('takes what was told by a program that closed its connection at once', async () => {
    await serve()
    const one = await program()
    one.listen()
    one.end('{"tell":"wf","trial":1,"values":1}\n')
    await once(one, 'close')
    expect([desk.told, one.text()]).toEqual([['tell wf'], '{}\n'])
  })

  it('serves a bounded number of connections, and new ones when some have ended', async () => {
    await serve()
    const many = await Promise.all(Array.from({ length: 512 }, program))
    const over = await program()
    await once(over.listen(), 'close')
    many[0]?.end('{"tell":"wf","trial":1,"values":1}\n')
    await waitUntil(() => desk.told.length === 1, 'the request')
    for (const one of many) one.destroy()
    await waitUntil(async () => {
      const other = await program()
      other.listen().write('{"tell":"wf","trial":1,"values":1}\n')
      await Promise.race([once(other, 'data'), once(other, 'close')])
      return other.text() === '{}\n'
    }, 'room for another program')
  })

  it('says why it cannot be, and the scheduler goes on', async () => {
    writeFileSync(join(directory, 'jobs'), 'a file')
    open.push(servePrograms(address, desk, (text) => said.push(text)))
    expect(said).toEqual([expect.stringMatching(/^programs cannot ask for points at .*lab\.sock: /)])
  })

  describe('of a verb', () => {
    const context = () => ({
      signal: AbortSignal.timeout(10_000),
      stderr: { write: (text: string) => said.push(text) },
      now: Date.now,
    })

    it('waits for a scheduler that restarts', async () => {
      const asked = askScheduler(address, { tell: 'wf', trial: 1, values: 1 }, context() as never)
      await waitUntil(() => said.length > 0, 'the notice')
      await serve()
      expect(await asked).toEqual({})
      expect(said).toEqual(['muster: waiting for a scheduler. Run: muster job work\n'])
    })

    it('refuses a directory into which others can put a socket', async () => {
      mkdirSync(dirname(address))
      chmodSync(dirname(address), 0o777)
      await expect(askScheduler(address, { ask: 'wf' }, context() as never)).rejects.toThrow(
        'it can be changed by every user of this machine',
      )
    })

    it('is not misled by what is no scheduler', async () => {
      mkdirSync(dirname(address), { mode: 0o700 })
      const strange = createServer((socket) => socket.end('{"error":"\\u001b[2Jno"}\n')).listen(address)
      open.push({ [Symbol.dispose]: () => strange.close() })
      await once(strange, 'listening')
      await expect(askScheduler(address, { ask: 'wf' }, context() as never)).rejects.toThrow('\\x1b[2Jno')
    })
  })
})
