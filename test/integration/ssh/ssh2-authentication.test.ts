import { chmodSync, copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import type { CredentialAsker } from '../../../src/ssh/questions.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import {
  makeKey,
  type OpenSshServer,
  publicLine,
  startAgent,
  startOpenSshServer,
} from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { failureOf, nobody, openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'

describe.skipIf(!requirement('sshd', 'ssh-keygen', 'ssh-agent', 'ssh-add'))('logging in to a real sshd', () => {
  let server: OpenSshServer
  const transport = createSsh2Transport()
  const file = (name: string) => join(server.directory, name)
  const allow = (...names: string[]) =>
    writeFileSync(file('authorized_keys'), names.map((name) => publicLine(file(name))).join(''))

  beforeAll(async () => {
    server = await startOpenSshServer()
    makeKey(file('other_key'))
    makeKey(file('rsa_key'), 'rsa')
    makeKey(file('ecdsa_key'), 'ecdsa')
  })
  afterAll(() => server.stop())

  const connects = async (...parameters: Parameters<typeof transport.connect>) => {
    const connection = await transport.connect(...parameters)
    const output = await run(connection, 'echo in')
    connection.close()
    return output.stdout === 'in\n'
  }

  it.each(['rsa_key', 'ecdsa_key'])('works with %s', async (name) => {
    allow(name)
    expect(await connects(server.endpoint({ identityFiles: [file(name)] }), watchedContext())).toBe(true)
    allow('user_key')
  })

  it('reports a key that the server does not know, and what the server accepts', async () => {
    const endpoint = server.endpoint({ identityFiles: [file('other_key')] })
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    expect(failure).toMatchObject({ kind: 'authentication', phase: 'authentication' })
    expect(failure.reason).toContain(file('other_key'))
    expect(failure.reason).toContain('the server accepts publickey')
    expect(failure.hint).toContain('ssh-copy-id')
  })

  it('tries the next key when the first is refused', async () => {
    const endpoint = server.endpoint({ identityFiles: [file('other_key'), file('nowhere'), server.keyFile] })
    expect(await connects(endpoint, watchedContext())).toBe(true)
  })

  it('does not offer an RSA key that is shorter than RequiredRSASize, and says so', async () => {
    allow('rsa_key')
    onTestFinished(() => allow('user_key'))
    const withKey = (requiredRsaBits: number) =>
      server.endpoint({ identityFiles: [file('rsa_key')], authentications: ['publickey'], requiredRsaBits })
    expect(await connects(withKey(2048), watchedContext())).toBe(true)
    const { reason } = await failureOf(transport.connect(withKey(16_384), watchedContext()))
    expect(reason).toMatch(/: no key or password to offer; .*rsa_key has \d+ bits, and RequiredRSASize asks for 16384$/)
  })

  it('names a key file with wrong permissions, and the command that fixes it', async () => {
    chmodSync(file('other_key'), 0o640)
    const endpoint = server.endpoint({ identityFiles: [file('other_key')] })
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    chmodSync(file('other_key'), 0o600)
    expect(failure).toMatchObject({ kind: 'configuration', hint: `chmod 600 ${file('other_key')}` })
  })

  it('uses the keys of the agent', async () => {
    const agent = await startAgent(server.directory, [server.keyFile])
    onTestFinished(agent.stop)
    const endpoint = server.endpoint({ identityFiles: [], identitiesOnly: false, agentSocket: agent.socket })
    expect(await connects(endpoint, watchedContext())).toBe(true)
  })

  it('says that the agent does not answer, and continues with files', async () => {
    const agentSocket = file('no-agent')
    const endpoint = server.endpoint({ identitiesOnly: false, agentSocket })
    expect(await connects(endpoint, watchedContext())).toBe(true)
    const failure = await failureOf(transport.connect({ ...endpoint, identityFiles: [] }, watchedContext()))
    expect(failure.reason).toContain(`the agent at ${agentSocket} does not answer`)
  })

  it('offers the named file before ten keys of the agent, and explains when ten keys were too many', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `many_${index}`)
    for (const name of names) makeKey(file(name))
    const agent = await startAgent(server.directory, names.map(file))
    onTestFinished(agent.stop)
    const endpoint = server.endpoint({ identitiesOnly: false, agentSocket: agent.socket })
    expect(await connects(endpoint, watchedContext())).toBe(true)
    const failure = await failureOf(transport.connect({ ...endpoint, identityFiles: [] }, watchedContext()))
    expect(failure.kind).toBe('authentication')
    expect(failure.reason).toContain('Too many authentication failures')
    expect(failure.hint).toContain('IdentitiesOnly yes')
  })

  it('asks for a passphrase only once for many hosts, and not at all when the key is not wanted', async () => {
    makeKey(file('locked'), 'ed25519', 'open sesame')
    let questions = 0
    const credentials: CredentialAsker = {
      ...nobody,
      passphrase: async () => {
        questions += 1
        return new Secret('open sesame')
      },
    }
    const endpoint = server.endpoint({ identityFiles: [file('locked')] })
    const fresh = createSsh2Transport()
    expect((await failureOf(fresh.connect(endpoint, watchedContext({ credentials })))).kind).toBe('authentication')
    expect(questions).toBe(0)
    const authorized = ` ${publicLine(file('user_key'))}`
    writeFileSync(
      file('authorized_keys'),
      authorized + (await import('node:fs')).readFileSync(file('locked.pub'), 'utf8'),
    )
    const hosts = Array.from({ length: 5 }, (_, index) => ({ ...endpoint, host: `m${index}` }))
    const connections = await Promise.all(hosts.map((host) => fresh.connect(host, watchedContext({ credentials }))))
    for (const connection of connections) connection.close()
    expect(questions).toBe(1)
    allow('user_key')
  })

  it('continues without a key whose passphrase is declined', async () => {
    const endpoint = server.endpoint({ identityFiles: [file('locked')] })
    copyFileSync(file('locked.pub'), file('authorized_keys'))
    const failure = await failureOf(createSsh2Transport().connect(endpoint, watchedContext()))
    expect(failure.reason).toContain('no passphrase was given')
    allow('user_key')
  })

  it('forwards the agent only when asked to', async () => {
    const agent = await startAgent(server.directory, [server.keyFile])
    onTestFinished(agent.stop)
    const endpoint = server.endpoint({ agentSocket: agent.socket })
    const socketOf = async (forwardAgent: boolean) => {
      const connection = await transport.connect(
        { ...endpoint, forwardAgent, shell: 'echo "[$SSH_AUTH_SOCK]"' },
        watchedContext(),
      )
      const watched = await openWatchedShell(connection)
      await watched.ended
      connection.close()
      return watched.text().trim()
    }
    expect(await socketOf(false)).toBe('[]')
    expect(await socketOf(true)).toMatch(/^\[\/.+\]$/)
    const connection = await transport.connect({ ...endpoint, forwardAgent: true }, watchedContext())
    expect((await run(connection, 'ssh-add -l')).stdout).toContain('ED25519')
    connection.close()
  })

  it('opens a shell although the server forbids agent forwarding', async () => {
    const agent = await startAgent(server.directory, [server.keyFile])
    onTestFinished(agent.stop)
    const strict = await startOpenSshServer({ config: ['AllowAgentForwarding no'] })
    onTestFinished(() => strict.stop())
    const connection = await transport.connect(
      strict.endpoint({ agentSocket: agent.socket, forwardAgent: true }),
      watchedContext(),
    )
    expect((await run(connection, 'echo still')).stdout).toBe('still\n')
    connection.close()
  })
})
