/** What a host may answer: a host that answers more than it was asked for is given up. */
import { expect, it } from 'vitest'
import { RemoteFiles, RemoteLost } from '../../../../src/ssh/copy/remote-files.ts'
import type { Connection, ExecHandlers } from '../../../../src/ssh/transport.ts'
import { endpointOf } from '../../../support/endpoint.ts'
import { createHostileTransport } from '../../../support/hostile-host/hostile-transport.ts'
import { watchedContext } from '../../../support/ssh-context.ts'
import { ManualClock } from '../manual-clock.ts'

/** Says that it is ready, and gives these answers, one to each order. */
async function startWith(answers: readonly string[]): Promise<RemoteFiles> {
  const said = ['ok 0\n', ...answers]
  const connection = {
    async exec(command: string, handlers: ExecHandlers) {
      const token = /muster-[0-9a-f]+/.exec(command)?.[0]
      queueMicrotask(() => handlers.onStdout(Buffer.from(`${token}\n`)))
      let isSetUp = false
      return {
        write(bytes: Uint8Array) {
          const text = said.shift()
          if (!isSetUp || bytes.length > 0)
            queueMicrotask(() => text !== undefined && handlers.onStdout(Buffer.from(text)))
          isSetUp = true
          return true
        },
        endInput() {},
        signal() {},
        pause() {},
        resume() {},
        close() {},
      }
    },
  } as unknown as Connection
  return await RemoteFiles.start(connection, {
    clock: new ManualClock(),
    startLimitMs: 1000,
    signal: new AbortController().signal,
  })
}

it('reads the bytes that it requested', async () => {
  const files = await startWith(['ok 5\nbytes', 'ok 3\nyes'])
  const parts: Buffer[] = []
  await files.pull((bytes) => parts.push(bytes), 5, 'G', './x', 0, 5)
  expect(Buffer.concat(parts).toString()).toBe('bytes')
  expect(await files.call('D', './x')).toBe('yes')
})

it.each([
  'ok 6\nbytes!',
  'ok 4\nbyte',
  'ok 99999999999999999999\nbytes',
])('reads no more and no fewer bytes: %j', async (answer) => {
  const files = await startWith([answer])
  let taken = 0
  await expect(files.pull((bytes) => (taken += bytes.length), 5, 'G', './x', 0)).rejects.toThrow(RemoteLost)
  expect(taken).toBe(0)
})

it('keeps no endless answer', async () => {
  const files = await startWith(['ok 99999999999\n'])
  await expect(files.call('I', './x')).rejects.toThrow('the answer of the host is too long')
})

it('gives up a shell that has begun and does not answer, when it is aborted', async () => {
  const abort = new AbortController()
  const begun = Promise.withResolvers<void>()
  const transport = createHostileTransport({
    onExec: (channel) => channel.say(Buffer.from(`${/muster-[0-9a-f]+/.exec(channel.command)?.[0]}\n`)),
    onBytes: () => begun.resolve(),
  })
  const connection = await transport.connect(endpointOf('m2'), watchedContext())
  const { signal } = abort
  const starting = RemoteFiles.start(connection, { clock: new ManualClock(), startLimitMs: 1000, signal })
  await begun.promise
  abort.abort()
  await expect(starting).rejects.toThrow(RemoteLost)
})

it('names the signal that ended its shell, without acting on a terminal', async () => {
  const transport = createHostileTransport({
    onExec: (channel) => channel.end({ kind: 'signal', signal: 'K\x1b[2JILL' }),
  })
  const connection = await transport.connect(endpointOf('m2'), watchedContext())
  const { signal } = new AbortController()
  const starting = RemoteFiles.start(connection, { clock: new ManualClock(), startLimitMs: 1000, signal })
  await expect(starting).rejects.toThrow('the remote shell ended (SIGK\\x1b[2JILL)')
})
