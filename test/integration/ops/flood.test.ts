/** Hosts that answer a short question without end, through real sshd. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createOpsHosts } from '../../../src/cli/connect/ops-hosts.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'

describe.skipIf(!requirement('sshd', 'ssh-keygen'))('a host that prints without end', () => {
  let server: OpenSshServer
  beforeAll(async () => {
    server = await startOpenSshServer()
  })
  afterAll(async () => await server?.stop())

  it.each(['exec yes', 'exec yes >&2'])('is cut off long before the time limit: %s', async (flood) => {
    const over = new AbortController()
    const ssh2 = createSsh2Transport()
    const hosts = createOpsHosts([server.endpoint({ host: 'm1' })], {
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
    const { outcome, stdout } = await hosts.exec('m1', flood, { timeoutMs: 600_000, signal: over.signal })
    expect(outcome).toEqual({
      kind: 'refused',
      reason: expect.stringMatching(/^it printed more than 64\.0 MiB .* was cut off$/),
    })
    expect(stdout.length).toBeLessThanOrEqual(1024 * 1024)
    const next = await hosts.exec('m1', 'touch ~/next', { timeoutMs: 20_000, signal: over.signal })
    expect([next.outcome.kind, existsSync(join(server.directory, 'next'))]).toEqual(['exit', true])
  })
})
