import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import type { NewHostKey } from '../../../src/ssh/questions.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { makeKey, type OpenSshServer, publicLine, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { failureOf, run, watchedContext } from '../../support/ssh-context.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

describe.skipIf(!requirement('sshd', 'ssh-keygen', 'ssh'))('host keys of a real sshd', () => {
  let server: OpenSshServer
  const transport = createSsh2Transport()
  const file = (name: string) => join(server.directory, name)
  const known = (name: string, lines: string) => {
    writeFileSync(file(name), lines)
    return { knownHostsFiles: [file(name)] }
  }

  beforeAll(async () => {
    server = await startOpenSshServer({ hostKeyTypes: ['ed25519', 'ecdsa', 'rsa'] })
    makeKey(file('stranger'))
  })
  afterAll(() => server.stop())

  it.each(['ed25519', 'ecdsa', 'rsa'])('are recognized if only the %s key of several is known', async (type) => {
    const endpoint = server.endpoint(known('one', `[127.0.0.1]:${server.port} ${publicLine(file(`host_${type}`))}`))
    const connection = await transport.connect(endpoint, watchedContext())
    connection.close()
  })

  it('are recognized in a file whose names ssh-keygen hashed', async () => {
    const endpoint = server.endpoint(known('hashed', readFileSync(server.knownHosts, 'utf8')))
    spawnSync('ssh-keygen', ['-H', '-f', file('hashed')])
    expect(readFileSync(file('hashed'), 'utf8')).toMatch(/^\|1\|/)
    const connection = await transport.connect(endpoint, watchedContext())
    connection.close()
  })

  it('that changed are refused before the login begins', async () => {
    const endpoint = server.endpoint(known('changed', `[127.0.0.1]:${server.port} ${publicLine(file('stranger'))}`))
    const context = watchedContext()
    const failure = await failureOf(transport.connect(endpoint, context))
    expect(failure).toMatchObject({ kind: 'host-key', phase: 'host-key' })
    expect(failure.hint).toContain(`ssh-keygen -f ${file('changed')} -R '[127.0.0.1]:${server.port}'`)
    expect(context.phases).not.toContain('authentication')
  })

  it('that are unknown are refused when checking is strict', async () => {
    const failure = await failureOf(transport.connect(server.endpoint(known('empty', '')), watchedContext()))
    expect(failure.kind).toBe('host-key')
  })

  it('that are accepted are recorded so that ssh itself knows them', async () => {
    const reviewed: NewHostKey[] = []
    const hostKeys = createHostKeyVerifier({
      reviewer: {
        review: async (keys) => {
          reviewed.push(...keys)
          return new Set(keys.map(({ host }) => host))
        },
      },
    })
    const files = known('recorded', '')
    const endpoint = server.endpoint({ ...files, strictHostKeyChecking: 'ask', hashKnownHosts: true })
    const connection = await transport.connect(endpoint, watchedContext({ hostKeys }))
    connection.close()
    expect(reviewed.map(({ host, algorithm }) => [host, algorithm])).toEqual([['m1', 'ssh-ed25519']])
    const options = [`UserKnownHostsFile=${file('recorded')}`, 'StrictHostKeyChecking=yes', 'BatchMode=yes']
    const { status, stderr } = spawnSync('ssh', [
      ...['-F', 'none', '-p', String(server.port), '-i', server.keyFile],
      ...options.flatMap((option) => ['-o', option]),
      '127.0.0.1',
      'true',
    ])
    expect(`${status} ${stderr}`).toBe('0 ')
  })

  it('fail the connection as a configuration error when known_hosts cannot be read', async () => {
    const endpoint = server.endpoint({ knownHostsFiles: [server.directory] })
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    expect(failure.kind).toBe('configuration')
    expect(failure.reason).toContain(server.directory)
  })

  it('stay trusted when the server renews the session keys', async () => {
    const rekeying = await startOpenSshServer({ config: ['RekeyLimit 1M'] })
    const connection = await transport.connect(rekeying.endpoint(), watchedContext())
    const output = await run(connection, 'head -c 8000000 /dev/zero | tr "\\0" x; echo done >&2')
    expect(output.stdout).toHaveLength(8_000_000)
    expect(output.stderr).toBe('done\n')
    connection.close()
    await rekeying.stop()
  })

  it('may be reviewed for longer than the time limit of the connection', async () => {
    const clock = new ManualClock()
    const hostKeys = createHostKeyVerifier({
      reviewer: {
        review: async () => {
          clock.advance(3_600_000)
          return new Set(['m1'])
        },
      },
    })
    const endpoint = server.endpoint({ ...known('slow', ''), strictHostKeyChecking: 'ask', connectTimeoutMs: 2_000 })
    const connection = await createSsh2Transport({ clock }).connect(endpoint, watchedContext({ hostKeys }))
    connection.close()
  })
})
