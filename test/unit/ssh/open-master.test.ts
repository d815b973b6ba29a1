import { describe, expect, it } from 'vitest'
import type { PtyHandlers, PtySpawner } from '../../../src/base/pty.ts'
import { openMaster } from '../../../src/ssh/openssh/open-master.ts'
import { createOpensshTransport } from '../../../src/ssh/openssh/openssh-transport.ts'
import { ConnectError } from '../../../src/ssh/transport.ts'
import { watchedContext } from '../../support/ssh-context.ts'
import { endpointOf } from './fake-transport.ts'
import { ManualClock } from './manual-clock.ts'

describe('a login with the system’s ssh', () => {
  it('ends in time although the banner of the host looks like the progress of ssh', async () => {
    const clock = new ManualClock()
    let ssh: PtyHandlers | undefined
    const spawnPty: PtySpawner = (_, handlers) => {
      ssh = handlers
      return { pid: 0, write: () => true, resize() {}, pause() {}, resume() {}, close() {} }
    }
    const askpass = {
      directory: '/nowhere',
      register: () => ({ environment: {}, [Symbol.dispose]() {} }),
      [Symbol.dispose]() {},
    }
    const context = watchedContext()
    const endpoint = { ...endpointOf('m1'), connectTimeoutMs: 10_000 }
    let failure: unknown
    openMaster(endpoint, context, {
      sshFile: 'ssh',
      spawnPty,
      clock,
      askpass,
      reviewer: undefined,
      environment: {},
    }).catch((error: unknown) => {
      failure = error
    })
    const prints = (line: string) => ssh?.onData(Buffer.from(`${line}\r\n`))
    prints('debug1: Connecting to m1 [10.0.0.1] port 22.')
    prints('debug1: Next authentication method: publickey')
    for (let count = 0; count < 10; count += 1) {
      clock.advance(5_000)
      prints('debug1: Connecting to m1 [10.0.0.1] port 22.')
      prints('debug1: Authentications that can continue: password')
      await Promise.resolve()
    }
    expect(failure).toBeInstanceOf(ConnectError)
    expect(context.phases).toEqual(['tcp', 'authentication'])
  })

  it.each([
    ['the current display', ':2', ':2'],
    ['a made-up display if there is none, for the questions of old versions', undefined, ':0'],
  ])('has %s', async (_, display, expected) => {
    const displays: (string | undefined)[] = []
    const spawnPty: PtySpawner = ({ environment }, handlers) => {
      displays.push(environment.DISPLAY)
      queueMicrotask(() => handlers.onExit({ code: 255 }))
      return { pid: 0, write: () => true, resize() {}, pause() {}, resume() {}, close() {} }
    }
    const environment: Record<string, string | undefined> = { PATH: process.env.PATH, DISPLAY: ':1' }
    // Any program that exists: it is not started.
    using transport = createOpensshTransport({ spawnPty, environment, sshFile: 'sh' })
    environment.DISPLAY = display
    await expect(transport.connect(endpointOf('m1'), watchedContext())).rejects.toThrow(ConnectError)
    expect(displays).toEqual([expected])
  })
})
