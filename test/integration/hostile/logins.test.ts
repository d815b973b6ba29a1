/** Servers that greet and ask with hostile bytes: what reaches the user is printable and short, and nothing counts as a login. */
import { describe, it } from 'vitest'
import type { PtyHandlers } from '../../../src/base/pty.ts'
import { Secret } from '../../../src/base/secret.ts'
import { answerQuestions, isLater, openMaster } from '../../../src/ssh/openssh/open-master.ts'
import { AuthSequence } from '../../../src/ssh/ssh2/auth-sequence.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { ConnectError } from '../../../src/ssh/transport.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { untilEnded } from '../../support/hostile-host/hostile-transport.ts'
import { type Choice, mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const MOST_SHOWN = 2_000

function expectShown(texts: readonly string[]): void {
  for (const text of texts) {
    expectPrintable(text, 'what is shown')
    if (text.length > MOST_SHOWN) throw new Error(`${text.length} characters are shown`)
  }
}

describe('a hostile server that asks over a real connection', () => {
  // Each is a key exchange and a login: 200 of them take as long as 10,000 of the others.
  it('shows nothing that acts on a terminal, and nothing long', async () => {
    await playMutations(
      async ({ choice, note }) => {
        const text = (good: string) => textOf(good, choice, ['root@m1', 'm1'], note)
        const { endpoint } = await startInProcessServer((attempt) => {
          if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
          attempt.prompt([{ prompt: text('Password: '), echo: false }], text('Login'), text('Enter it'), () =>
            attempt.reject(),
          )
        })
        const shown: string[] = []
        const credentials = {
          ...nobody,
          async keyboardInteractive(_: unknown, instruction: string, prompts: readonly { readonly text: string }[]) {
            shown.push(instruction, ...prompts.map((prompt) => prompt.text))
            return undefined
          },
        }
        const connecting = createSsh2Transport().connect(endpoint(), watchedContext({ credentials }))
        const error: unknown = await connecting.then(
          () => undefined,
          (reason: unknown) => reason,
        )
        if (!(error instanceof ConnectError)) throw new Error(`it ended with ${String(error)}`)
        expectNoDefect(error.failure.reason, 'the reason')
        expectShown([...shown, error.failure.reason])
      },
      0.02,
      4,
    )
  })
})

describe('a hostile server that asks', () => {
  const FOREIGN = ['root@m1', "root@m1's password: ", '(root@m1) Password: ', 'm1']

  /** Keeps what the user is shown, and types an answer. */
  function asker(shown: string[]) {
    const answer = new Secret('hunter2')
    return {
      ...nobody,
      async keyboardInteractive(_: unknown, instruction: string, prompts: readonly { readonly text: string }[]) {
        shown.push(instruction, ...prompts.map(({ text }) => text))
        return prompts.map(() => answer)
      },
    }
  }

  it('gets only a few answers, however many rounds and prompts it sends', async () => {
    await playMutations(async ({ choice, note }) => {
      const text = (good: string) => textOf(good, choice, FOREIGN, note)
      const shown: string[] = []
      const signal = new AbortController().signal
      const sequence = new AuthSequence({
        ...{ endpoint: endpointOf('m2'), credentials: asker(shown), signal, identities: undefined as never },
        asking: async (question) => await question(),
        giveUp() {},
      })
      await sequence.next(null, false)
      const method = await sequence.next(['keyboard-interactive'], false)
      if (method === false || method.type !== 'keyboard-interactive') throw new Error('it is not asked')
      let given = 0
      for (let round = choice.one([1, 2, 15]); round > 0; round--) {
        const prompt = { prompt: text('Password: '), ...(choice.once(3) ? {} : { echo: choice.once(2) }) }
        const prompts = Array.from({ length: choice.one([0, 1, 2, 5, 40]) }, () => prompt)
        const finish = Promise.withResolvers<readonly string[]>()
        method.prompt(text('Login'), text('Enter it'), '', prompts, finish.resolve)
        given += (await finish.promise).length
      }
      expectShown(shown)
      if (given > 160) throw new Error(`${given} answers were given`)
    })
  })

  it('gets through the system’s ssh no yes to a key, no passphrase and no password for another account', async () => {
    const GOOD = [
      'Password: ',
      'Verification code: ',
      'Are you sure you want to continue connecting (yes/no/[fingerprint])? ',
      "Enter passphrase for key '/root/.ssh/id_ed25519': ",
      "root@m1's password: ",
    ] as const
    await playMutations(async ({ choice, note }) => {
      const shown: string[] = []
      const never = async () => {
        throw new Error('another question was asked than that of a server')
      }
      const credentials = { ...asker(shown), passphrase: never, password: never }
      const answer = answerQuestions({
        ...{ endpoint: endpointOf('m2'), context: watchedContext({ credentials }) },
        reviewer: { review: never },
        ...{ onOpen() {}, onAnswered() {}, onUnanswered() {} },
      })
      // So ssh marks what comes of the server.
      await answer(`(root@m2) ${textOf(choice.one(GOOD), choice, FOREIGN, note)}`, choice.one([undefined, 'confirm']))
      expectShown(shown)
    })
  })
})

describe('a hostile server that greets through the system’s ssh', () => {
  const GOOD = [
    'debug1: Connecting to m2 [10.0.0.2] port 22.',
    'debug1: Connection established.',
    'debug1: Local version string SSH-2.0-OpenSSH_9.2p1',
    'debug1: Server host key: ssh-ed25519 SHA256:Zm9v',
    'Welcome to m2. Authorised users only.',
    'debug1: Authentications that can continue: publickey,password',
    'debug1: Next authentication method: publickey',
    'root@m2: Permission denied (publickey).',
  ].map((line) => `${line}\r\n`)

  it('gets no login, and its phases come one after the other', async () => {
    await playMutations(async ({ choice, note }) => {
      const clock = new ManualClock()
      const context = watchedContext()
      let ssh: PtyHandlers | undefined
      let isClosed = false
      const opening = openMaster(endpointOf('m2', { connectTimeoutMs: 10_000 }), context, {
        ...{ sshFile: 'ssh', clock, reviewer: undefined, environment: {} },
        askpass: {
          directory: '/nowhere',
          register: () => ({ environment: {}, [Symbol.dispose]() {} }),
          [Symbol.dispose]() {},
        },
        spawnPty(_, handlers) {
          ssh = handlers
          const close = () => {
            isClosed = true
          }
          return { pid: 0, write: () => true, resize() {}, pause() {}, resume() {}, close }
        },
      }).then(
        () => new Error('it is taken for a login'),
        (error: unknown) => error,
      )
      const FOREIGN = [
        'muster-login-',
        'muster-login-000000000000',
        'debug1: Local version string',
        'Permission denied',
      ]
      const answer = mutate(Buffer.from(GOOD.join('')), choice, FOREIGN)
      note(...answer.how)
      for (const piece of answer.pieces) ssh?.onData(piece)
      for (let count = 0; answer.endless !== undefined && count < 100; count++) ssh?.onData(answer.endless)
      if (answer.end !== 'silent') ssh?.onExit({ code: 255 })
      const error = await untilEnded(opening, clock, 20_000)
      if (!(error instanceof ConnectError)) throw error
      expectShown([error.failure.reason])
      expectNoDefect(error.failure.reason, 'the reason')
      const { phases } = context
      if (phases.some((phase, at) => at > 0 && !isLater(phase, phases[at - 1] ?? phase)))
        throw new Error(`the phases were ${phases.join()}`)
      if (answer.end === 'silent' && !isClosed) throw new Error('ssh goes on')
      if (clock.timerCount > 0) throw new Error('timers are left')
    })
  })
})

function textOf(
  good: string,
  choice: Choice,
  foreign: readonly string[],
  note: (...how: readonly string[]) => void,
): string {
  const answer = mutate(Buffer.from(good), choice, foreign)
  note(...answer.how)
  return Buffer.concat(answer.pieces).subarray(0, 20_000).toString('latin1')
}
