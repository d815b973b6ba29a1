import { describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import { CredentialBroker } from '../../../src/ssh/credential-broker.ts'
import { type Answered, type CredentialDialog, type CredentialRequest, only } from '../../../src/ssh/questions.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ManualClock } from './manual-clock.ts'

const textOf = (answer: Answered<Secret>) => (answer instanceof Secret ? answer.reveal() : answer)

/** A user who is asked, and answers when the test says so. */
class Person implements CredentialDialog {
  readonly requests: CredentialRequest[] = []
  readonly signals: AbortSignal[] = []
  readonly #answers: ((secrets: readonly Secret[] | undefined) => void)[] = []

  ask(request: CredentialRequest, signal: AbortSignal): Promise<readonly Secret[] | undefined> {
    this.requests.push(request)
    this.signals.push(signal)
    return new Promise((resolve) => {
      this.#answers.push(resolve)
      signal.addEventListener('abort', () => resolve(undefined))
    })
  }

  answers(...texts: string[]): void {
    this.#answers.shift()?.(texts.map((text) => new Secret(text)))
  }

  dismisses(): void {
    this.#answers.shift()?.(undefined)
  }
}

function setUp() {
  const person = new Person()
  const clock = new ManualClock()
  const broker = new CredentialBroker({ dialog: person, clock, formatHosts: (hosts) => hosts.join('+') })
  const live = new AbortController().signal
  const dialog = async (count: number) => {
    clock.advance(200)
    await waitUntil(() => person.requests.length === count, `dialog ${count}`)
    return person.requests[count - 1]!
  }
  const password = (host: string, isRetry = false, signal = live) =>
    broker.password(endpointOf(host), isRetry, signal).then(textOf)
  return { person, clock, broker, live, dialog, password }
}

describe('the credential broker', () => {
  it('asks one password for all hosts that ask within a moment', async () => {
    const { person, dialog, password } = setUp()
    const answers = [password('m8'), password('m9')]
    const request = await dialog(1)
    expect(request).toMatchObject({
      kind: 'password',
      hosts: ['m8', 'm9'],
      title: 'Password of root on m8+m9',
      isRetry: false,
    })
    person.answers('pw')
    expect(await Promise.all(answers)).toEqual(['pw', 'pw'])
  })

  it('gives a password to no host of another file, neither at once nor later', async () => {
    const { person, broker, clock, dialog, live } = setUp()
    const ask = (host: string, passwordScope: string) =>
      broker.password(endpointOf(host, { passwordScope }), false, live).then(textOf)
    const prompt = (host: string, passwordScope: string) =>
      broker
        .keyboardInteractive(
          endpointOf(host, { passwordScope }),
          '',
          [{ text: 'Password: ', isEchoed: false }],
          false,
          live,
        )
        .then((secrets) => textOf(only(secrets)))
    for (const question of [ask, prompt]) {
      const before = person.requests.length
      const [own, other] = [question('m8', 'lab'), question('n1', 'gpu')]
      expect((await dialog(before + 1)).hosts).toEqual(['m8'])
      person.answers('of lab')
      expect(await own).toBe('of lab')
      expect((await dialog(before + 2)).hosts).toEqual(['n1'])
      person.answers('of gpu')
      expect(await other).toBe('of gpu')
      clock.advance(5000)
      expect([await question('m9', 'lab'), await question('n2', 'gpu')]).toEqual(['of lab', 'of gpu'])
    }
  })

  it('adds a host that asks while the dialog is open', async () => {
    const { person, dialog, password } = setUp()
    const first = password('m8')
    await dialog(1)
    const second = password('m9')
    person.answers('pw')
    expect(await Promise.all([first, second])).toEqual(['pw', 'pw'])
    expect(person.requests).toHaveLength(1)
  })

  it('does not ask again for a late host that needs the same password', async () => {
    const { person, clock, dialog, password } = setUp()
    const first = password('m8')
    await dialog(1)
    person.answers('pw')
    await first
    clock.advance(5000)
    expect(await password('m9')).toBe('pw')
    expect(person.requests).toHaveLength(1)
  })

  it('forgets the password once no host has needed it for a while', async () => {
    const { person, clock, dialog, password } = setUp()
    const first = password('m8')
    await dialog(1)
    person.answers('pw')
    await first
    clock.advance(21_000)
    const later = password('m9')
    await dialog(2)
    person.answers('other')
    expect(await later).toBe('other')
  })

  it('asks again, together, for the hosts whose answer was wrong', async () => {
    const { person, dialog, password } = setUp()
    const first = [password('m8'), password('m9')]
    await dialog(1)
    person.answers('wrong')
    await Promise.all(first)
    const again = [password('m8', true), password('m9', true)]
    expect(await dialog(2)).toMatchObject({ hosts: ['m8', 'm9'], isRetry: true })
    person.answers('right')
    expect(await Promise.all(again)).toEqual(['right', 'right'])
  })

  it('gives an answer that was wrong somewhere to no other host', async () => {
    const { person, dialog, password } = setUp()
    const first = password('m8')
    await dialog(1)
    person.answers('wrong')
    await first
    const again = [password('m8', true), password('m9')]
    expect((await dialog(2)).hosts).toEqual(['m8', 'm9'])
    person.answers('right')
    expect(await Promise.all(again)).toEqual(['right', 'right'])
  })

  it('gives a host that rejects its answer late the newer one without a question', async () => {
    const { person, dialog, password } = setUp()
    const first = [password('m8'), password('m9')]
    await dialog(1)
    person.answers('wrong')
    await Promise.all(first)
    const again = password('m8', true)
    await dialog(2)
    person.answers('right')
    await again
    expect(await password('m9', true)).toBe('right')
    expect(person.requests).toHaveLength(2)
  })

  it('asks for different users separately, one dialog at a time', async () => {
    const { person, broker, clock, dialog, live } = setUp()
    const root = broker.password(endpointOf('m8'), false, live)
    const other = broker.password(endpointOf('m9', { user: 'ada' }), false, live)
    await dialog(1)
    expect(person.requests).toHaveLength(1)
    person.answers('one')
    await root
    clock.advance(200)
    expect((await dialog(2)).title).toBe('Password of ada on m9')
    person.answers('two')
    expect(textOf(await other)).toBe('two')
  })

  it('treats prompts that differ only by the host name as one question', async () => {
    const { person, broker, dialog, live } = setUp()
    const ask = (host: string) =>
      broker.keyboardInteractive(
        endpointOf(host),
        '',
        [{ text: `root@${host}'s password: `, isEchoed: false }],
        false,
        live,
      )
    const answers = [ask('m8'), ask('m9')]
    expect((await dialog(1)).hosts).toEqual(['m8', 'm9'])
    person.answers('pw')
    expect((await Promise.all(answers)).map((secrets) => textOf(only(secrets)))).toEqual(['pw', 'pw'])
  })

  it.each([
    ['', 'Verification code: '],
    ['', "One-time password (OATH) for `root': "],
    ['', 'Password & verification code: '],
    ['', 'Password or OTP: '],
    ['', '(OTP) Password: '],
    ['Two-factor login', 'Password: '],
    ['', 'Enter your new password: '],
    ['Enter the six digits that your fob shows now.', 'Password: '],
    ['', '(RSA SecurID) Password: '],
    ['', 'Password for YubiKey: '],
    ['', "fob's password: "],
  ])('asks again for what may be a one-time code: %s%s', async (instruction, text) => {
    const { person, broker, dialog, live } = setUp()
    const ask = (host: string) =>
      broker.keyboardInteractive(endpointOf(host), instruction, [{ text, isEchoed: false }], false, live)
    const first = ask('m8')
    await dialog(1)
    person.answers('111111')
    await first
    const second = ask('m9')
    await dialog(2)
    person.answers('222222')
    expect(textOf(only(await second))).toBe('222222')
  })

  it.each([
    'Password: ',
    'password:',
    "root@m8's password: ",
    '(root@m8) Password: ',
    'Password for root@m8:',
    'Password ',
  ])('keeps a password for hosts that ask the same a moment later: %s', async (text) => {
    const { person, broker, dialog, live } = setUp()
    const ask = (host: string) =>
      broker.keyboardInteractive(
        endpointOf(host),
        '',
        [{ text: text.replace('m8', host), isEchoed: false }],
        false,
        live,
      )
    const first = ask('m8')
    await dialog(1)
    person.answers('hunter2')
    await first
    expect(textOf(only(await ask('m9')))).toBe('hunter2')
  })

  it('gives a one-time code to no host that asks after its question was shown', async () => {
    const { person, broker, clock, dialog, live } = setUp()
    const ask = (host: string) =>
      broker.keyboardInteractive(endpointOf(host), '', [{ text: 'Verification code: ', isEchoed: false }], false, live)
    const first = [ask('m1'), ask('m2')]
    expect((await dialog(1)).hosts).toEqual(['m1', 'm2'])
    const late = [ask('m3'), ask('m4')]
    person.answers('111111')
    expect((await Promise.all(first)).map((secrets) => textOf(only(secrets)))).toEqual(['111111', '111111'])
    clock.advance(200)
    expect((await dialog(2)).hosts).toEqual(['m3', 'm4'])
    person.answers('222222')
    expect((await Promise.all(late)).map((secrets) => textOf(only(secrets)))).toEqual(['222222', '222222'])
  })

  it('keeps what a server writes short, so that the title stays in view', async () => {
    const { person, broker, dialog, live } = setUp()
    const text = `Password:${' '.repeat(5000)}Passphrase of /root/.ssh/id${'\n'.repeat(5000)}${'x'.repeat(5000)}`
    const asked = broker.keyboardInteractive(endpointOf('m8'), text, [{ text, isEchoed: false }], false, live)
    const { instruction, prompts } = await dialog(1)
    for (const line of [instruction, prompts[0]?.text]) {
      expect(line).toContain('Password: Passphrase of')
      expect(line?.length).toBeLessThanOrEqual(201)
    }
    person.dismisses()
    await asked
  })

  it('shows what a server wrote with its control characters made visible', async () => {
    const { broker, dialog, live, person } = setUp()
    const asked = broker.keyboardInteractive(
      endpointOf('m8'),
      'hello\u001b]0;x\u0007',
      [{ text: 'Password\u202e: ', isEchoed: false }],
      false,
      live,
    )
    const request = await dialog(1)
    expect(request.instruction).toBe('hello\\x1b]0;x\\x07')
    expect(request.prompts[0]?.text).toBe('Password\\u202e:')
    person.dismisses()
    await asked
  })

  it('declines for all hosts when the dialog is dismissed', async () => {
    const { person, dialog, password } = setUp()
    const answers = [password('m8'), password('m9')]
    await dialog(1)
    person.dismisses()
    expect(await Promise.all(answers)).toEqual([undefined, undefined])
  })

  it('closes the dialog when the last host that waits for it goes away, and not before', async () => {
    const { person, dialog, password } = setUp()
    const aborts = [new AbortController(), new AbortController()]
    const answers = [password('m8', false, aborts[0]!.signal), password('m9', false, aborts[1]!.signal)]
    await dialog(1)
    aborts[0]?.abort()
    expect(person.signals[0]?.aborted).toBe(false)
    aborts[1]?.abort()
    expect(person.signals[0]?.aborted).toBe(true)
    expect(await Promise.all(answers)).toEqual([undefined, undefined])
  })

  it('asks for the passphrase of a key file once, and at once', async () => {
    const { person, broker, live } = setUp()
    const ask = (host: string) => broker.passphrase('/home/u/.ssh/id', endpointOf(host), false, live)
    const answers = [ask('m8'), ask('m9')]
    await waitUntil(() => person.requests.length === 1, 'the dialog')
    expect(person.requests[0]?.title).toBe('Passphrase of /home/u/.ssh/id')
    person.answers('secret')
    expect((await Promise.all(answers)).map(textOf)).toEqual(['secret', 'secret'])
  })

  it('says when there is nobody to ask, which is no dismissal', async () => {
    const { signal } = new AbortController()
    const withoutUser = new CredentialBroker()
    const withoutTerminal = new CredentialBroker({ dialog: { ask: async () => 'nobody' } })
    for (const broker of [withoutUser, withoutTerminal])
      expect(await broker.password(endpointOf('m8'), false, signal)).toBe('nobody')
  })

  it('declines what still waits when it is disposed of', async () => {
    const { broker, dialog, password } = setUp()
    const answer = password('m8')
    await dialog(1)
    broker[Symbol.dispose]()
    expect(await answer).toBeUndefined()
  })
})
