/** What stays open on a host beside commands that come and go, through real sshd with room for one session on a connection. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createOpsHosts } from '../../../src/cli/connect/ops-hosts.ts'
import { HostLocks } from '../../../src/ops/kernel/lock.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'

const TIMEOUT_MS = 20_000

describe.skipIf(!requirement('sshd', 'ssh-keygen', 'flock'))('a host with MaxSessions 1', () => {
  let narrow: OpenSshServer
  beforeAll(async () => {
    narrow = await startOpenSshServer({ config: ['MaxSessions 1'] })
  })
  afterAll(async () => await narrow?.stop())

  const connected = () => {
    const over = new AbortController()
    const ssh2 = createSsh2Transport()
    const hosts = createOpsHosts([narrow.endpoint({ host: 'm1' })], {
      transports: { ssh2, openssh: ssh2, local: ssh2 },
      hostKeys: watchedContext().hostKeys,
      credentials: nobody,
      fanOut: 8,
      signal: over.signal,
      sudoPassword: async () => undefined,
    })
    onTestFinished(() => {
      over.abort()
      hosts[Symbol.dispose]()
    })
    return { hosts, over }
  }

  it('allows a shell of the queue, a watching program and commands at the same time', async () => {
    const { hosts, over } = connected()
    const say = async (word: string) => {
      const { stdout } = await hosts.exec('m1', `echo ${word}`, { timeoutMs: TIMEOUT_MS, signal: over.signal })
      return Buffer.from(stdout).toString()
    }
    expect(await say('first')).toBe('first\n')

    const written = Promise.withResolvers<string>()
    using shell = hosts.openShell('m1', {
      onStdout: (bytes) => written.resolve(Buffer.from(bytes).toString()),
      onEnd: written.reject,
    })
    shell.write('echo from the shell\n')
    expect(await written.promise).toBe('from the shell\n')

    const watching = Promise.withResolvers<string>()
    const watch = hosts.exec('m1', 'echo watching; exec sleep 1000', {
      timeoutMs: Number.POSITIVE_INFINITY,
      signal: over.signal,
      onOutput: (_stream, text) => watching.resolve(text),
    })
    expect(await watching.promise).toBe('watching\n')
    expect(await Promise.all(['one', 'two', 'three'].map(say))).toEqual(['one\n', 'two\n', 'three\n'])
    over.abort()
    expect((await watch).outcome.kind).toBe('cancelled')
  })

  it('can be locked while it is asked', async () => {
    const { hosts, over } = connected()
    using locks = new HostLocks(hosts, { owner: 'a test', signal: over.signal })
    expect(await locks.take('m1')).toMatchObject({ kind: 'held', isReal: true })
    const asked = await hosts.exec('m1', 'echo reached', { timeoutMs: TIMEOUT_MS, signal: over.signal })
    expect(Buffer.from(asked.stdout).toString()).toBe('reached\n')
  })

  it('allows a waiting script beside those before it', async () => {
    const { hosts, over } = connected()
    const exec = async (script: string, turn?: Promise<void>) => {
      const options = { timeoutMs: TIMEOUT_MS, signal: over.signal, ...(turn === undefined ? {} : { turn }) }
      const { outcome, stdout } = await hosts.exec('m1', script, options)
      return [outcome, Buffer.from(stdout).toString()]
    }
    const turn = Promise.withResolvers<void>()
    const waiting = exec('read -r go && echo "went on"', turn.promise)
    expect(await exec('echo before')).toEqual([{ kind: 'exit', code: 0 }, 'before\n'])
    turn.resolve()
    expect(await waiting).toEqual([{ kind: 'exit', code: 0 }, 'went on\n'])
  })

  it('ends a script whose turn does not come, before it has done anything', async () => {
    const { hosts } = connected()
    const unwanted = new AbortController()
    const waits = Promise.withResolvers<string>()
    const waiting = hosts.exec('m1', 'echo waits; read -r go; echo "went on"; exec sleep 1000', {
      timeoutMs: TIMEOUT_MS,
      signal: unwanted.signal,
      turn: new Promise(() => {}),
      onOutput: (_stream, text) => waits.resolve(text),
    })
    expect(await waits.promise).toBe('waits\n')
    unwanted.abort()
    const { outcome, stdout } = await waiting
    expect([outcome.kind, Buffer.from(stdout).toString()]).toEqual(['cancelled', 'waits\n'])
  })

  it('delays nothing that has finished with it', async () => {
    const { hosts, over } = connected()
    const begun = Promise.withResolvers<string>()
    const lasting = hosts.exec('m1', 'echo begun; exec sleep 1000', {
      timeoutMs: Number.POSITIVE_INFINITY,
      signal: over.signal,
      onOutput: (_stream, text) => begun.resolve(text),
    })
    expect(await begun.promise).toBe('begun\n')
    hosts[Symbol.dispose]()
    expect((await lasting).outcome.kind).toBe('cancelled')
  })
})
