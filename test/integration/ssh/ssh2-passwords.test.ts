import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ssh2, { type AuthContext, type Connection } from 'ssh2'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import { createCredentialBroker } from '../../../src/ssh/credential-broker.ts'
import type { CredentialRequest } from '../../../src/ssh/credentials.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { failureOf, openWatchedShell, watchedContext } from '../../support/ssh-context.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'
import { waitUntil } from '../../support/wait-until.ts'

const transport = createSsh2Transport()

/** A user who gives these answers one after the other, then dismisses what is asked. */
function personWith(...answers: string[]) {
  const requests: CredentialRequest[] = []
  const credentials = createCredentialBroker({
    dialog: {
      ask: async (request) => {
        requests.push(request)
        const answer = answers.shift()
        return answer === undefined ? undefined : request.prompts.map(() => new Secret(answer))
      },
    },
  })
  return { requests, credentials }
}

const withPassword = (right: string) => (attempt: AuthContext) => {
  if (attempt.method === 'password' && attempt.password === right) attempt.accept()
  else attempt.reject(['password'])
}

const withPrompt = (prompt: string, right: string) => (attempt: AuthContext) => {
  if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
  attempt.prompt([{ prompt, echo: false }], (answers) => {
    if (answers[0] === right) attempt.accept()
    else attempt.reject(['keyboard-interactive'])
  })
}

describe('logging in with words', () => {
  it('asks for a password', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const { requests, credentials } = personWith('pw')
    const connection = await transport.connect(server.endpoint(), watchedContext({ credentials }))
    connection.close()
    expect(requests.map(({ kind, isRetry }) => [kind, isRetry])).toEqual([['password', false]])
  })

  it('asks once for twelve hosts that want the same', async () => {
    const servers = await Promise.all(Array.from({ length: 12 }, () => startInProcessServer(withPassword('pw'))))
    const { requests, credentials } = personWith('pw')
    const connections = await Promise.all(
      servers.map((server, index) =>
        transport.connect(server.endpoint({ host: `m${index}` }), watchedContext({ credentials })),
      ),
    )
    for (const connection of connections) connection.close()
    expect(requests).toHaveLength(1)
  })

  it('asks again after a wrong one', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const { requests, credentials } = personWith('wrong', 'pw')
    const connection = await transport.connect(server.endpoint(), watchedContext({ credentials }))
    connection.close()
    expect(requests.map(({ isRetry }) => isRetry)).toEqual([false, true])
  })

  it('gives up after three wrong ones, over all methods together', async () => {
    let attempts = 0
    const server = await startInProcessServer((attempt) => {
      if (attempt.method === 'password') attempts += 1
      if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive', 'password'])
      attempt.prompt([{ prompt: 'Password: ', echo: false }], () => {
        attempts += 1
        attempt.reject(['keyboard-interactive', 'password'])
      })
    })
    const { requests, credentials } = personWith('a', 'b', 'c', 'd', 'e')
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext({ credentials })))
    expect(failure).toMatchObject({ kind: 'authentication', phase: 'authentication' })
    expect(attempts).toBe(3)
    expect(requests).toHaveLength(3)
  })

  it('takes a dismissed question for an answer', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const { credentials } = personWith()
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext({ credentials })))
    expect(failure.kind).toBe('declined')
  })

  it('answers keyboard-interactive prompts, and takes a dismissal there too', async () => {
    const server = await startInProcessServer(withPrompt('Code: ', '42'))
    const { requests, credentials } = personWith('7', '42')
    const connection = await transport.connect(server.endpoint(), watchedContext({ credentials }))
    connection.close()
    expect(requests.map(({ prompts, isRetry }) => [prompts[0]?.text, isRetry])).toEqual([
      ['Code:', false],
      ['Code:', true],
    ])
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext(personWith())))
    expect(failure.kind).toBe('declined')
  })

  it('goes on to the second factor after a partial success', async () => {
    let isFirstDone = false
    const server = await startInProcessServer((attempt) => {
      if (attempt.method === 'password' && attempt.password === 'pw') {
        isFirstDone = true
        return attempt.reject(['keyboard-interactive'], true)
      }
      if (isFirstDone) return withPrompt('Code: ', 'pw')(attempt)
      attempt.reject(['password'])
    })
    const connection = await transport.connect(server.endpoint(), watchedContext(personWith('pw', 'pw')))
    connection.close()
  })

  it('goes on to a password after a key that is only half of what is needed', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-key-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const { private: privateKey } = ssh2.utils.generateKeyPairSync('ed25519')
    writeFileSync(join(directory, 'key'), privateKey, { mode: 0o600 })
    let hasKey = false
    const server = await startInProcessServer((attempt) => {
      if (attempt.method === 'publickey') {
        if (attempt.signature === undefined) return attempt.accept()
        hasKey = true
        return attempt.reject(['password'], true)
      }
      if (hasKey) return withPassword('pw')(attempt)
      attempt.reject(['publickey'])
    })
    const endpoint = server.endpoint({ identityFiles: [join(directory, 'key')] })
    const connection = await transport.connect(endpoint, watchedContext(personWith('pw')))
    connection.close()
  })

  it('follows a server that asks on within one conversation for three wrong answers, no further', async () => {
    let asked = 0
    const server = await startInProcessServer((attempt) => {
      if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
      const ask = () => {
        asked += 1
        attempt.prompt([{ prompt: 'Password: ', echo: false }], (answers) => {
          if (answers.length === 0) attempt.reject(['keyboard-interactive'])
          else ask()
        })
      }
      ask()
    })
    const { requests, credentials } = personWith('a', 'b', 'c', 'd', 'e')
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext({ credentials })))
    expect(failure.kind).toBe('authentication')
    expect(requests.map(({ isRetry }) => isRetry)).toEqual([false, true, true])
    expect(asked).toBe(4)
  })

  it('asks nobody a thousand questions of a server', async () => {
    const server = await startInProcessServer((attempt) => {
      if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
      const prompts = Array.from({ length: 1000 }, (_, index) => ({ prompt: `${index}?`, echo: true }))
      attempt.prompt(prompts, () => attempt.reject([]))
    })
    const { requests, credentials } = personWith('a', 'b', 'c')
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext({ credentials })))
    expect(failure.kind).toBe('authentication')
    expect(requests).toEqual([])
  })

  it('does not hang when the password has expired', async () => {
    const server = await startInProcessServer((attempt) => {
      if (attempt.method !== 'password') return attempt.reject(['password'])
      attempt.requestChange('Choose a new one', () => {})
    })
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext(personWith('pw'))))
    expect(failure.reason).toContain('has expired')
  })

  it('says what the server takes when that is nothing that we know', async () => {
    const server = await startInProcessServer((attempt) => attempt.reject(['gssapi-with-mic'] as never))
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext()))
    expect(failure.reason).toContain('the server accepts gssapi-with-mic')
    expect(failure.hint).toContain('transport: openssh')
  })

  it('lets the user take longer than the time limit, but not the server', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const credentials = createCredentialBroker({
      dialog: {
        ask: () => new Promise((resolve) => setTimeout(() => resolve([new Secret('pw')]), 2_500)),
      },
    })
    const endpoint = server.endpoint({ connectTimeoutMs: 2_000 })
    const patient = createSsh2Transport({ authenticationTimeoutMs: 2_000 })
    ;(await patient.connect(endpoint, watchedContext({ credentials }))).close()
    const silent = await startInProcessServer(() => {})
    const failure = await failureOf(patient.connect(silent.endpoint(), watchedContext()))
    expect(failure).toMatchObject({ kind: 'unreachable', phase: 'authentication' })
  })

  it('leaves at once when it is stopped while the user is asked', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const abort = new AbortController()
    let isAsked = false
    const credentials = createCredentialBroker({
      dialog: {
        ask: () => {
          isAsked = true
          return new Promise(() => {})
        },
      },
    })
    let isGone = false
    const failing = failureOf(
      transport.connect(server.endpoint(), watchedContext({ credentials, signal: abort.signal })),
    )
    await waitUntil(() => isAsked, 'the question')
    server.peers[0]?.on('close', () => {
      isGone = true
    })
    abort.abort()
    expect((await failing).kind).toBe('declined')
    await waitUntil(() => isGone, 'the connection to close')
  })

  it('shows no secret in a failure', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const failure = await failureOf(
      transport.connect(server.endpoint(), watchedContext(personWith('hunter2', 'hunter2', 'hunter2'))),
    )
    expect(JSON.stringify(failure)).not.toContain('hunter2')
  })
})

describe('commands and shells on a server of our own', () => {
  const open = (attempt: AuthContext) => attempt.accept()

  it('are reached by a signal, even after the end of their input', async () => {
    const received: string[] = []
    const serve = (client: Connection) =>
      client.on('session', (accept) => accept().on('exec', (acceptExec) => acceptExec()))
    const debug = (line: string) => received.push(line)
    const server = await startInProcessServer(open, serve, { debug })
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const remote = await connection.exec('sleep 60', { onStdout: () => {}, onStderr: () => {}, onEnd: () => {} })
    remote.endInput()
    remote.signal('SIGTERM')
    await waitUntil(() => received.some((line) => line.includes('signal: TERM')), 'the signal')
    expect(received.findIndex((line) => line.includes('CHANNEL_EOF'))).toBeLessThan(
      received.findIndex((line) => line.includes('signal: TERM')),
    )
    connection.close()
  })

  it('call no handler before their opener has them, though the output comes with the answer', async () => {
    const serve = (client: Connection) =>
      client.on('session', (accept) => {
        const session = accept()
        session.on('exec', (acceptExec) => {
          const channel = acceptExec()
          channel.write('now')
          channel.stderr.write('now')
          channel.exit(0)
          channel.end()
        })
      })
    const server = await startInProcessServer(open, serve)
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const calls: string[] = []
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const opening = connection.exec('now', {
      onStdout: () => calls.push('stdout'),
      onStderr: () => calls.push('stderr'),
      onEnd: () => {
        calls.push('end')
        resolve()
      },
    })
    await opening.then(async () => {
      // As deep as the callers of callers are.
      for (let depth = 0; depth < 20; depth += 1) await null
      calls.push('opened')
    })
    await ended
    expect(calls).toEqual(['opened', 'stdout', 'stderr', 'end'])
    connection.close()
  })

  it('end as lost when the server closes them without a status', async () => {
    const serve = (client: Connection) =>
      client.on('session', (accept) => {
        const session = accept()
        session.on('pty', (acceptPty) => acceptPty?.())
        session.on('shell', (acceptShell) => acceptShell().close())
      })
    const server = await startInProcessServer(open, serve)
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const watched = await openWatchedShell(connection)
    expect(await watched.ended).toEqual({ kind: 'lost', reason: 'the channel was closed without an exit status' })
    connection.close()
  })

  it('are refused with the words of the server', async () => {
    const server = await startInProcessServer(open, (client) => client.on('session', (_accept, reject) => reject()))
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const failure = await failureOf(openWatchedShell(connection))
    expect(failure.phase).toBe('shell')
    connection.close()
  })
})
