import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ssh2, { type AuthContext, type Connection, type ServerChannel } from 'ssh2'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import { CredentialBroker } from '../../../src/ssh/credential-broker.ts'
import { generateEd25519KeyPair } from '../../../src/ssh/embedded/ed25519-key-pair.ts'
import type { CredentialRequest } from '../../../src/ssh/questions.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { failureOf, openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const transport = createSsh2Transport()

/** A user who gives these answers one after the other, then dismisses what is asked. */
function personWith(...answers: string[]) {
  const requests: CredentialRequest[] = []
  const credentials = new CredentialBroker({
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

/** Gone when the test is over. */
function keyFile(privateKey: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'muster-key-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'key')
  writeFileSync(file, privateKey, { mode: 0o600 })
  return file
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

describe('a login', () => {
  it('asks for a password', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const { requests, credentials } = personWith('pw')
    const connection = await transport.connect(server.endpoint(), watchedContext({ credentials }))
    connection.close()
    expect(requests.map(({ kind, isRetry }) => [kind, isRetry])).toEqual([['password', false]])
  })

  it('asks once for twelve hosts that want the same password', async () => {
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

  it('asks again after a wrong password', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const { requests, credentials } = personWith('wrong', 'pw')
    const connection = await transport.connect(server.endpoint(), watchedContext({ credentials }))
    connection.close()
    expect(requests.map(({ isRetry }) => isRetry)).toEqual([false, true])
  })

  it('fails when the server refuses every key', async () => {
    const { privateKeyText: privateKey } = generateEd25519KeyPair()
    const offered: string[] = []
    const server = await startInProcessServer((attempt) => {
      offered.push(attempt.method)
      attempt.reject(['publickey'])
    })
    const endpoint = server.endpoint({ identityFiles: [keyFile(privateKey)] })
    expect(await failureOf(transport.connect(endpoint, watchedContext()))).toMatchObject({
      kind: 'authentication',
      phase: 'authentication',
    })
    expect(offered).toContain('publickey')
  })

  it('gives up after three wrong answers, over all methods together', async () => {
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

  it('ends when the user dismisses the question', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const { credentials } = personWith()
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext({ credentials })))
    expect(failure.kind).toBe('declined')
  })

  it('answers keyboard-interactive prompts, and ends when the user dismisses one', async () => {
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

  it('reports what the server says without asking, a few times and bounded', async () => {
    const server = await startInProcessServer((attempt) => {
      if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
      let round = 0
      const say = () => {
        round += 1
        if (round > 15) return attempt.accept()
        attempt.prompt([], 'Duo', `Push ${round}\x1b[2J ${'was sent '.repeat(100)}`, say)
      }
      say()
    })
    const words: string[] = []
    const context = { ...watchedContext(personWith()), onWords: (text: string) => void words.push(text) }
    const connection = await transport.connect(server.endpoint(), context)
    connection.close()
    expect(words).toHaveLength(10)
    expect(words[0]).toMatch(/^Duo: Push 1[^\x1b]* was sent .*…$/)
    expect(words[0]?.length).toBeLessThan(250)
  })

  it('reports what a server prints before the login, bounded', async () => {
    const server = await startInProcessServer(withPassword('pw'), undefined, {
      banner: `AUTHORIZED\r\n${'x'.repeat(20_000)}`,
    })
    const banners: string[] = []
    const { credentials } = personWith('pw')
    const context = { ...watchedContext({ credentials }), onBanner: (text: string) => void banners.push(text) }
    const connection = await transport.connect(server.endpoint(), context)
    connection.close()
    expect(banners.map((text) => [text.slice(0, 12), text.length])).toEqual([['AUTHORIZED\r\n', 16_384]])
  })

  it('sends nothing for a question that the user dismisses, so that no server can accept an empty answer', async () => {
    let answered = 0
    const server = await startInProcessServer((attempt) => {
      if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
      attempt.prompt([{ prompt: 'Code: ', echo: false }], () => {
        answered += 1
        attempt.accept()
      })
    })
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext(personWith())))
    expect([failure.kind, answered]).toEqual(['declined', 0])
  })

  it.each([
    'password',
    'keyboard-interactive',
  ] as const)('is dismissed for good, also when the server hung up on the open question (%s)', async (method) => {
    const asked = Promise.withResolvers<(answer: undefined) => void>()
    const credentials = new CredentialBroker({ dialog: { ask: () => new Promise(asked.resolve) } })
    const server = await startInProcessServer((attempt) => {
      if (attempt.method === 'keyboard-interactive') attempt.prompt('Code: ', () => {})
      else attempt.reject([method])
    })
    const failing = failureOf(transport.connect(server.endpoint(), watchedContext({ credentials })))
    const dismiss = await asked.promise
    let isGone = false
    server.peers[0]?.on('close', () => {
      isGone = true
    })
    server.peers[0]?.end()
    await waitUntil(() => isGone, 'the connection to close')
    dismiss(undefined)
    expect((await failing).kind).toBe('declined')
  })

  it('is dismissed for good, also when the server let it in while the question was open', async () => {
    const asked = Promise.withResolvers<(answer: undefined) => void>()
    const credentials = new CredentialBroker({ dialog: { ask: () => new Promise(asked.resolve) } })
    const letIn = Promise.withResolvers<() => void>()
    let isIn = false
    const server = await startInProcessServer(
      (attempt) => {
        if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
        attempt.prompt('Code: ', () => {})
        letIn.resolve(() => attempt.accept())
      },
      () => {
        isIn = true
      },
    )
    const failing = failureOf(transport.connect(server.endpoint(), watchedContext({ credentials })))
    const dismiss = await asked.promise
    ;(await letIn.promise)()
    await waitUntil(() => isIn, 'the login')
    // What the server sends is read before the answer is.
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
    dismiss(undefined)
    expect((await failing).kind).toBe('declined')
  })

  it('says that nobody can be asked where there is no user, for a passphrase, too', async () => {
    const server = await startInProcessServer((attempt) => {
      if (attempt.method === 'publickey' && attempt.signature === undefined) attempt.accept()
      else attempt.reject(['publickey', 'password'])
    })
    const { private: privateKey } = ssh2.utils.generateKeyPairSync('ed25519', {
      passphrase: 'pp',
      cipher: 'aes256-cbc',
      rounds: 1,
    })
    const path = keyFile(privateKey)
    const context = watchedContext({ credentials: new CredentialBroker() })
    const failure = await failureOf(transport.connect(server.endpoint({ identityFiles: [path] }), context))
    expect(failure.kind).toBe('authentication')
    expect(failure.reason).toContain('it asks for a password, and there is no terminal to ask on')
    expect(failure.reason).toContain(`${path}: there is no terminal to ask for its passphrase on`)
  })

  it('continues with the second factor after a partial success', async () => {
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

  it('continues with a password after a key that is only the first factor', async () => {
    const { privateKeyText: privateKey } = generateEd25519KeyPair()
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
    const endpoint = server.endpoint({ identityFiles: [keyFile(privateKey)] })
    const connection = await transport.connect(endpoint, watchedContext(personWith('pw')))
    connection.close()
  })

  it('ends after three wrong answers to a server that keeps asking in one conversation', async () => {
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

  it('shows none of a thousand prompts from one server', async () => {
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

  it('names the methods of a server that accepts none of ours', async () => {
    const server = await startInProcessServer((attempt) => attempt.reject(['gssapi-with-mic'] as never))
    const failure = await failureOf(transport.connect(server.endpoint(), watchedContext()))
    expect(failure.reason).toContain('the server accepts gssapi-with-mic')
    expect(failure.hint).toContain('transport: openssh')
  })

  it('lets the user take longer than the time limit, but not the server', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const clock = new ManualClock()
    const credentials = new CredentialBroker({
      dialog: {
        ask: async () => {
          clock.advance(3_600_000)
          return [new Secret('pw')]
        },
      },
    })
    const endpoint = server.endpoint({ connectTimeoutMs: 2_000 })
    const transport = createSsh2Transport({ clock, authenticationTimeoutMs: 2_000 })
    ;(await transport.connect(endpoint, watchedContext({ credentials }))).close()
    let isTried = false
    const silent = await startInProcessServer(() => {
      isTried = true
    })
    const failing = failureOf(transport.connect(silent.endpoint(), watchedContext()))
    await waitUntil(() => isTried, 'the first attempt to log in')
    clock.advance(2_000)
    expect(await failing).toMatchObject({ kind: 'unreachable', phase: 'authentication' })
  })

  it('ends at once when it is stopped while the user is asked', async () => {
    const server = await startInProcessServer(withPassword('pw'))
    const abort = new AbortController()
    let isAsked = false
    const credentials = new CredentialBroker({
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

describe('commands and shells on a server in this process', () => {
  const open = (attempt: AuthContext) => attempt.accept()

  it('receive a signal, even after the end of their input', async () => {
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

  it('call no handler before their opener has returned, though the output comes with the answer', async () => {
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

  it('are refused by a server that opens no session', async () => {
    const server = await startInProcessServer(open, (client) => client.on('session', (_accept, reject) => reject()))
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const failure = await failureOf(openWatchedShell(connection))
    expect(failure.phase).toBe('shell')
    connection.close()
  })

  it('fail alone when the server refuses a terminal or a shell: commands still run', async () => {
    let refuses: 'pty' | 'shell' = 'pty'
    const serve = (client: Connection) =>
      client.on('session', (accept) => {
        const session = accept()
        session.on('pty', (acceptPty, reject) => (refuses === 'pty' ? reject?.() : acceptPty?.()))
        session.on('shell', (_acceptShell, reject) => reject())
        session.on('exec', (acceptExec) => {
          const channel = acceptExec()
          channel.exit(0)
          channel.end()
        })
      })
    const server = await startInProcessServer(open, serve)
    const connection = await transport.connect(server.endpoint(), watchedContext())
    for (const refused of ['pty', 'shell'] as const) {
      refuses = refused
      const failure = await failureOf(openWatchedShell(connection))
      expect(failure).toMatchObject({ kind: 'unreachable', phase: 'shell' })
      expect(failure.reason).toMatch(refused === 'pty' ? /Unable to request a pseudo-terminal$/ : /shell$/)
      expect((await run(connection, 'true')).end).toEqual({ kind: 'exit', code: 0 })
    }
    connection.close()
  })

  it('report when the server stops reading, keep the bytes, and report when it continues', async () => {
    const opened = Promise.withResolvers<ServerChannel>()
    const serve = (client: Connection) =>
      client.on('session', (accept) => {
        const session = accept()
        session.on('pty', (acceptPty) => acceptPty?.())
        session.on('shell', (acceptShell) => opened.resolve(acceptShell()))
      })
    const server = await startInProcessServer(open, serve)
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const drained = Promise.withResolvers<void>()
    const shell = await connection.openShell(
      { size: { columns: 80, rows: 24 }, term: 'dumb' },
      { onData: () => {}, onDrain: () => drained.resolve(), onEnd: () => {} },
    )
    const channel = await opened.promise
    const bytes = Buffer.alloc(50_000, 'x')
    let sent = bytes.length
    while (shell.write(bytes)) {
      sent += bytes.length
      if (sent > 50_000_000) throw new Error('the channel never fills')
    }
    let received = 0
    channel.on('data', (part: Buffer) => {
      received += part.length
    })
    await drained.promise
    await waitUntil(() => received === sent, 'every byte')
    connection.close()
  })
})
