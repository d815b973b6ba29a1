/** What the helper of a host may say: whatever has another shape ends it, and its host is served through the shell. */
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { type HelperMessage, RemoteHelper } from '../../../../src/ssh/copy/remote-helper.ts'
import { endpointOf } from '../../../support/endpoint.ts'
import { createHostileTransport, type HostileChannel } from '../../../support/hostile-host/hostile-transport.ts'
import { watchedContext } from '../../../support/ssh-context.ts'
import { ManualClock } from '../manual-clock.ts'

async function started() {
  let channel: HostileChannel | undefined
  const transport = createHostileTransport({
    onExec: (own) => {
      channel = own
    },
    onBytes: (own, bytes) => {
      const token = /^TOKEN = "([^"]+)"/.exec(Buffer.from(bytes).toString('latin1', 0, 100))?.[1]
      if (token !== undefined) queueMicrotask(() => own.say(Buffer.from(`${token}\n`)))
    },
  })
  const connection = await transport.connect(endpointOf('m2'), watchedContext())
  const { signal } = new AbortController()
  const helper = await RemoteHelper.start(connection, { clock: new ManualClock(), startLimitMs: 1000, signal })
  return { helper, channel }
}

async function heard(line: string): Promise<readonly (HelperMessage | undefined)[]> {
  const { helper, channel } = await started()
  const messages: (HelperMessage | undefined)[] = []
  helper?.onMessage((message) => messages.push(message))
  channel?.say(Buffer.from(`${line}\n`))
  await setImmediate()
  helper?.close()
  return messages
}

it('answers no order after it has ended, and no order waits for it', async () => {
  const { helper } = await started()
  helper?.close()
  await expect(helper?.ask({ op: 'attributes', paths: [] })).rejects.toThrow('the helper on the host has ended')
})

it('is given up when the copy is aborted before it has begun', async () => {
  const abort = new AbortController()
  const connection = await createHostileTransport({ onExec() {} }).connect(endpointOf('m2'), watchedContext())
  const clock = new ManualClock()
  const starting = RemoteHelper.start(connection, { clock, startLimitMs: 1000, signal: abort.signal })
  abort.abort()
  expect(await starting).toBeUndefined()
})

it.each([
  '{"link": 1, "at": ["10.0.0.2", 5301]}',
  '{"link": 1, "up": true}',
  '{"link": 1, "probe": [1048576, 0.4]}',
  '{"file": 1, "have": 1048576}',
  '{"link": 1, "error": "no route"}',
])('a message of the helper is accepted: %s', async (line) => {
  expect(await heard(line)).toEqual([JSON.parse(line), undefined])
})

it.each([
  '{"answers": 5}',
  '{"answers": ["need", 1]}',
  '{"failures": [["0", "no"]]}',
  '{"link": 1, "at": null}',
  '{"link": 1, "at": [{}, 5301]}',
  '{"link": 1, "probe": [1048576, 0]}',
  '{"file": 1, "have": 1.5}',
  '{"file": 1, "have": -1}',
  '{"link": 1, "error": ["\\u001b]0;title\\u0007"]}',
])('a message of the helper ends the connection: %s', async (line) => {
  expect(await heard(line)).toEqual([undefined])
})
