/** How long a command on a host may take to begin, on a connection that the test holds in its hands. */
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createHostExec, type ExecEnd } from '../../../src/ssh/exec/host-exec.ts'
import { wordsFor } from '../../../src/ssh/exec/remote-command.ts'
import type { ChannelEnd, Connection, RemoteProcess } from '../../../src/ssh/transport.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { createHostileTransport } from '../../support/hostile-host/hostile-transport.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'
import { ManualClock } from './manual-clock.ts'

const LIMIT_MS = 10_000
const SILENT: RemoteProcess = {
  write: () => true,
  endInput() {},
  signal() {},
  pause() {},
  resume() {},
  close() {},
}

it('a command that waits for a session has its full time to start once it has one', async () => {
  const clock = new ManualClock()
  const session = Promise.withResolvers<RemoteProcess>()
  const refuse = () => Promise.reject(new Error('not here'))
  const connection: Connection = {
    exec: () => session.promise,
    openShell: refuse,
    connectSocket: refuse,
    connectTcp: refuse,
    listenTcp: refuse,
    close() {},
  }
  const exec = createHostExec({
    transports: { ssh2: { connect: async () => connection } },
    hostKeys: watchedContext().hostKeys,
    credentials: nobody,
    clock,
    token: 'word',
  })
  const ends: ExecEnd[] = []
  exec.start(
    endpointOf('m1', { connectTimeoutMs: LIMIT_MS }),
    { command: 'true' },
    { onBegin() {}, onStdout() {}, onStderr() {}, onEnd: (end) => ends.push(end) },
  )
  await setImmediate()
  clock.advance(10 * LIMIT_MS)
  expect(ends).toEqual([])
  session.resolve(SILENT)
  await setImmediate()
  clock.advance(LIMIT_MS - 1)
  expect(ends).toEqual([])
  clock.advance(1)
  expect(ends).toMatchObject([{ kind: 'unreachable', reason: expect.stringContaining('did not start') }])
})

/** `begins`: the program reads the word that it is sent, and says so. */
const ended = async (end: ChannelEnd, said: string, begins = false): Promise<ExecEnd> => {
  const transport = createHostileTransport({
    onExec: (channel) => {
      channel.say(Buffer.from(said))
      if (!begins) channel.end(end)
    },
    onBytes: (channel, word) => {
      channel.say(Buffer.from(wordsFor(Buffer.from(word).toString().trim()).begin))
      channel.say(Buffer.from('\n'))
      channel.end(end)
    },
  })
  const exec = createHostExec({
    transports: { ssh2: transport },
    hostKeys: watchedContext().hostKeys,
    credentials: nobody,
    clock: new ManualClock(),
    token: 'word',
  })
  return await new Promise((onEnd) => {
    exec.start(endpointOf('m1'), { command: 'true' }, { onBegin() {}, onStdout() {}, onStderr() {}, onEnd })
  })
}

it('a command that never started is no success, whatever the login shell says', async () => {
  expect(await ended({ kind: 'exit', code: 0 }, 'Welcome\n')).toMatchObject({
    kind: 'refused',
    reason: expect.stringContaining('without running the command'),
  })
  expect(await ended({ kind: 'exit', code: 127 }, 'no such shell\n')).toEqual({ kind: 'exit', code: 127 })
  expect(await ended({ kind: 'exit', code: 0 }, 'Welcome\nreadyword\n', true)).toEqual({ kind: 'exit', code: 0 })
})

it('the name of a signal comes from the host, and does not act on a terminal', async () => {
  const end = await ended({ kind: 'signal', signal: 'K\x1b[2JILL' }, 'readyword\n', true)
  expect(end).toEqual({ kind: 'signal', signal: 'SIGK\\x1b[2JILL' })
})

it('nothing is printed after the end, where a second prompt for a password ends a command', async () => {
  const transport = createHostileTransport({
    onExec: (channel) => channel.say(Buffer.from('readyword\n')),
    onBytes: (channel, word) => {
      const { prompt } = wordsFor(Buffer.from(word).toString().trim())
      channel.say(Buffer.from(`one\n${prompt}two\n${prompt}three\n`), 'stderr')
    },
  })
  const exec = createHostExec({
    transports: { ssh2: transport },
    hostKeys: watchedContext().hostKeys,
    credentials: nobody,
    clock: new ManualClock(),
    token: 'word',
  })
  const seen: unknown[] = []
  await new Promise<void>((resolve) => {
    exec.start(
      endpointOf('m1'),
      { command: 'true', sudoPassword: () => new Promise(() => undefined) },
      {
        onBegin() {},
        onStdout() {},
        onStderr: (bytes) => seen.push(Buffer.from(bytes).toString()),
        onEnd: (end) => {
          seen.push(end)
          // What follows in the same piece comes before this.
          setImmediate().then(resolve)
        },
      },
    )
  })
  expect(seen).toEqual(['one\n', 'two\n', { kind: 'refused', reason: 'sudo did not accept the password' }])
})
