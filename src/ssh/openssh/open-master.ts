/** One ControlMaster of the system's ssh, in a PTY so that it ends with this program: reads its phases and answers its questions. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Pty, PtyHandlers, PtySpawner } from '../../base/pty.ts'
import { Secret } from '../../base/secret.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import { howToAdd } from '../known-hosts/verifier.ts'
import { type Answered, type HostKeyReviewer, type NewHostKey, only } from '../questions.ts'
import { sshWords } from '../ssh-words.ts'
import { behindJump, describeEndpoint, remoteText } from '../ssh2/failures.ts'
import {
  type ConnectContext,
  ConnectError,
  type ConnectFailure,
  type ConnectPhase,
  type FailureKind,
} from '../transport.ts'
import type { Answerer, AskpassServer } from './askpass-server.ts'
import { jumpLogFile, loginMarker, masterArguments } from './ssh-arguments.ts'

const DEBUG = /^debug\d: /

/** Debug messages of ssh(1) at level 1, and the phase that each begins. */
const PHASES: readonly (readonly [RegExp, ConnectPhase])[] = [
  [/^debug1: Executing proxy command/, 'proxy'],
  [/^debug1: Connecting to /, 'tcp'],
  [/^debug1: Connection established/, 'banner'],
  // Behind a proxy, the first sign of the host itself.
  [/^debug1: Remote protocol version /, 'banner'],
  [/^debug1: Server host key: /, 'host-key'],
  // From here on, a banner may come.
  [/^debug1: SSH2_MSG_SERVICE_ACCEPT received/, 'authentication'],
  [/^debug1: Authentications that can continue/, 'authentication'],
  [/^debug1: Next authentication method/, 'authentication'],
]

/** The order in which the phases come. */
export function isLater(phase: ConnectPhase, than: ConnectPhase): boolean {
  const order = ['name', ...PHASES.map(([, each]) => each)]
  return order.indexOf(phase) > order.indexOf(than)
}

export function phaseOf(line: string): ConnectPhase | undefined {
  return PHASES.find(([pattern]) => pattern.test(line))?.[1]
}

type Cause = {
  readonly pattern: RegExp
  readonly kind: FailureKind
  readonly phase?: ConnectPhase
  readonly hint?: string
  /** Earlier lines that say more, the most telling first. */
  readonly details?: readonly Detail[]
}

type Detail = { readonly pattern: RegExp; readonly reason?: string; readonly hint?: string }

/** By the last line of ssh: what comes before it may be a banner of the host. */
const CAUSES: readonly Cause[] = [
  {
    pattern: /^Host key verification failed/,
    kind: 'host-key',
    phase: 'host-key',
    details: [
      {
        pattern: /^(WARNING: )?REVOKED HOST KEY|^Host key .* revoked by /,
        reason: 'the host key is revoked',
        hint: 'Do not log in: the key was withdrawn.',
      },
      {
        pattern: /^(WARNING: REMOTE )?HOST IDENTIFICATION HAS CHANGED/,
        reason: 'the host key is not the one in known_hosts',
        hint: 'If the host was really reinstalled, remove its old key with ssh-keygen -R, then connect again.',
      },
      { pattern: /^No .* host key is known/ },
    ],
  },
  {
    pattern: /: Permission denied \(.*\)|Too many authentication failures/,
    kind: 'authentication',
    phase: 'authentication',
    hint: 'Check the user name, and that the host knows your key.',
  },
  {
    pattern: /Bad configuration option|terminating, \d+ bad configuration|Bad owner or permissions|command-line line/,
    kind: 'configuration',
    hint: 'Check ~/.ssh/config with: ssh -G HOST',
    details: [{ pattern: /Bad configuration option/ }],
  },
  {
    pattern: /^stdio forwarding failed/,
    kind: 'unreachable',
    hint: 'Check that it reaches the next host, and that AllowTcpForwarding of its sshd permits this.',
    details: [{ pattern: /^channel \d+: open failed: / }],
  },
  { pattern: /Could not resolve hostname/, kind: 'unreachable', phase: 'name', hint: 'Check the name of the host.' },
  { pattern: /^Unable to negotiate|no matching /, kind: 'configuration', phase: 'banner' },
  { pattern: /^kex_exchange_identification|^banner exchange/, kind: 'unreachable', phase: 'banner' },
  { pattern: /^ssh: connect to host /, kind: 'unreachable', phase: 'tcp' },
]

/** What ssh says when its proxy command has ended or says nothing. */
const PROXY_ENDED = /^(kex|ssh)_exchange_identification: |^banner exchange: |during banner exchange|UNKNOWN port 65535/

/** What ssh logs while all is well. */
const NO_FAILURE = /^Warning: /

/** `lines`: what ssh wrote, oldest first; `phase`: how far it had come. */
export function failureFromOutput(lines: readonly string[], phase: ConnectPhase): ConnectFailure {
  const said = wordsOf(lines)
  if (phase === 'proxy') {
    const last = said.findLast((line) => !PROXY_ENDED.test(line))
    const reason = last === undefined ? 'the proxy command closed the connection' : `proxy command: ${last}`
    return { kind: 'unreachable', phase, reason: remoteText(reason) }
  }
  // The host chose the words of a disconnection, several lines even; ssh ends them with a line of its own.
  const line = /^Disconnected from /.test(said.at(-1) ?? '')
    ? (said.findLast((each) => each.startsWith('Received disconnect from ')) ?? said.at(-1))
    : said.at(-1)
  if (line === undefined) return { kind: 'unreachable', phase, reason: 'ssh ended without a message' }
  const isAuthenticating = isLater(phase, 'host-key')
  const cause = CAUSES.find(({ pattern, kind }) => pattern.test(line) && !(kind === 'host-key' && isAuthenticating))
  // Not what a proxy command said before.
  const since = wordsOf(lines.slice(lines.findLastIndex((each) => /^debug1: Server host key: /.test(each)) + 1))
  const found = cause?.details?.flatMap((detail) =>
    since.filter((each) => detail.pattern.test(each)).map((each) => ({ ...detail, line: each })),
  )[0]
  const hint = found?.hint ?? cause?.hint
  return {
    kind: cause?.kind ?? 'unreachable',
    phase: cause?.phase ?? phase,
    reason: found?.reason ?? remoteText(sentence(found?.line ?? line)),
    ...(hint === undefined ? {} : { hint }),
  }
}

/** The first jump host in trouble. `logs`: of each jump host, the first one reached first. */
export function troubleOfJump(endpoint: Endpoint, logs: readonly string[]) {
  const index = logs.findIndex((log) => wordsOf(log.split('\n')).length > 0)
  const jumpHost = endpoint.jump[index]
  const lines = logs[index]?.split('\n') ?? []
  if (jumpHost === undefined) return undefined
  const hasProxyEnded = wordsOf(lines).at(-1)?.includes('UNKNOWN port 65535') === true
  return { jumpHost, failure: failureFromOutput(lines, hasProxyEnded ? 'proxy' : 'tcp') }
}

/** Why the way through the jump hosts did not lead to the host. */
export function failureBehindJump(endpoint: Endpoint, logs: readonly string[]): ConnectFailure {
  const trouble = troubleOfJump(endpoint, logs)
  if (trouble !== undefined) return behindJump(endpoint, trouble.jumpHost, trouble.failure)
  const names = endpoint.jump.map(({ host }) => printable(host)).join(', ')
  return {
    kind: 'unreachable',
    phase: 'proxy',
    reason: `cannot reach ${describeEndpoint(endpoint)}: no answer`,
    hint: `Check that ${names} can be reached, and reaches it.`,
  }
}

function wordsOf(lines: readonly string[]): readonly string[] {
  return lines
    .filter((line) => !DEBUG.test(line) && !NO_FAILURE.test(line))
    .map((line) => line.replace(/^@(.*)@\r?$/, '$1').trim())
    .filter((line) => line !== '' && !/^@+$/.test(line))
}

/** ssh's last lines at this level of messages. */
const STATISTICS = /^(?:Transferred|Bytes per second): sent /

/**
 * Why a login that had succeeded has ended. `lines`: what ssh wrote since then. A jump host whose ssh was ended before it could log why
 * looks like a host that has closed the connection.
 */
export function lossFromOutput(
  lines: readonly string[],
  end: Parameters<PtyHandlers['onExit']>[0],
  jump: readonly Endpoint[] = [],
): string {
  if ('signal' in end) return `ssh was ended by ${end.signal}`
  const said = wordsOf(lines).filter((line) => !STATISTICS.test(line))
  if (said.length === 0) return `ssh ended with exit code ${end.code}`
  const isProxyGone = said.at(-1)?.includes('UNKNOWN port 65535')
  if (isProxyGone) return 'its jump host or proxy command closed the connection'
  const { reason } = failureFromOutput(said, 'authentication')
  if (jump.length === 0 || !/ closed by remote host$/.test(reason)) return reason
  const names = jump.map(({ host }) => printable(host)).join(', ')
  return `${reason}, or by ${jump.length === 1 ? 'its jump host' : 'one of its jump hosts'} (${names})`
}

function sentence(line: string): string {
  return line
    .replace(/^ssh: /, '')
    .replace(/^channel \d+: open failed: /, '')
    .replace(/\.$/, '')
}

export type MasterOptions = {
  readonly sshFile: string
  readonly spawnPty: PtySpawner
  readonly clock: Clock
  readonly askpass: AskpassServer
  readonly reviewer: HostKeyReviewer | undefined
  readonly environment: Readonly<Record<string, string>>
}

export interface Master {
  readonly controlPath: string
  onGone(callback: (reason: string) => void): void
  close(): void
}

const KEPT_LINES = 60
const LONGEST_LINE = 4096

export function openMaster(endpoint: Endpoint, context: ConnectContext, options: MasterOptions): Promise<Master> {
  const { clock, askpass } = options
  const token = randomBytes(6).toString('hex')
  const controlPath = join(askpass.directory, token)
  const marker = loginMarker(token)

  return new Promise((resolve, reject) => {
    const lines: string[] = []
    const goneCallbacks: ((reason: string) => void)[] = []
    let phase: ConnectPhase = 'name'
    const decoder = new TextDecoder()
    let rest = ''
    let isReady = false
    let goneReason: string | undefined
    let isClosed = false
    let openQuestions = 0
    let deadline: Disposable | undefined
    let pty: Pty | undefined

    const finish = () => {
      deadline?.[Symbol.dispose]()
      questions[Symbol.dispose]()
      context.signal.removeEventListener('abort', cancel)
    }
    const fail = (failure: ConnectFailure) => {
      if (isReady || isClosed) return
      isClosed = true
      finish()
      pty?.close()
      reject(new ConnectError(failure))
    }
    const cancel = () => fail({ kind: 'declined', phase, reason: 'cancelled' })
    const startDeadline = () => {
      deadline?.[Symbol.dispose]()
      deadline = undefined
      if (openQuestions > 0 || isReady || isClosed) return
      const { stepMs, opensshStepMs } = connectLimits(endpoint)
      const seconds = Math.round(stepMs / 1000)
      deadline = clock.after(opensshStepMs, () =>
        fail({ kind: 'unreachable', phase, reason: `no answer for more than ${seconds} s (${phase})` }),
      )
    }

    const questions = askpass.register(
      answerQuestions({
        endpoint,
        context,
        reviewer: options.reviewer,
        onOpen: () => {
          openQuestions += 1
          startDeadline()
        },
        onAnswered: () => {
          openQuestions -= 1
          startDeadline()
        },
        onUnanswered: (what) => fail(UNANSWERED[what](endpoint)),
      }),
    )

    const read = (line: string) => {
      if (isReady || isClosed) {
        keep(lines, line)
        return
      }
      if (line === marker) {
        isReady = true
        // What it said while it logged in is no reason for a loss.
        lines.length = 0
        finish()
        resolve({
          controlPath,
          onGone: (callback) => {
            if (goneReason === undefined) goneCallbacks.push(callback)
            else callback(goneReason)
          },
          close: () => {
            if (isClosed) return
            isClosed = true
            pty?.close()
          },
        })
        return
      }
      keep(lines, line)
      const next = phaseOf(line)
      // A banner of the host may look the same: it gets no more time by that.
      if (next === undefined || !isLater(next, phase)) return
      startDeadline()
      phase = next
      context.onPhase(phase)
    }

    if (context.signal.aborted) return cancel()
    context.signal.addEventListener('abort', cancel)
    startDeadline()
    try {
      pty = options.spawnPty(
        {
          file: options.sshFile,
          args: masterArguments(endpoint, controlPath, token, options.sshFile),
          columns: 1000,
          rows: 24,
          term: 'dumb',
          // ssh before 8.4 ignores SSH_ASKPASS_REQUIRE, and uses SSH_ASKPASS only if there is a display.
          environment: { DISPLAY: ':0', ...options.environment, ...questions.environment, TERM: 'dumb' },
        },
        {
          onData: (bytes) => {
            const parts = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n/)
            rest = (parts.pop() ?? '').slice(-LONGEST_LINE)
            for (const line of parts) read(line)
          },
          onExit: (end) => {
            if (rest !== '') read(rest)
            const logs = endpoint.jump.map((_, index) => readLog(jumpLogFile(controlPath, index)))
            const isBehindJump = phase === 'proxy' && logs.length > 0
            if (!isReady)
              return fail(isBehindJump ? failureBehindJump(endpoint, logs) : failureFromOutput(lines, phase))
            if (isClosed) return
            const trouble = troubleOfJump(endpoint, logs)
            goneReason =
              trouble === undefined
                ? lossFromOutput(lines, end, endpoint.jump)
                : `jump host ${printable(trouble.jumpHost.host)}: ${trouble.failure.reason}`
            for (const callback of goneCallbacks.splice(0)) callback(goneReason)
          },
        },
      )
    } catch (error) {
      fail({
        kind: 'configuration',
        phase,
        reason: printable(`${options.sshFile} cannot be run: ${messageOf(error)}`),
        hint: 'Install the OpenSSH client, or use the transport ssh2 for this host.',
      })
    }
  })
}

/** Empty where that ssh has not started. */
function readLog(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function keep(lines: string[], line: string): void {
  lines.push(line)
  if (lines.length > KEPT_LINES) lines.shift()
}

const UNANSWERED = {
  'host-key': (endpoint: Endpoint): ConnectFailure => ({
    kind: 'host-key',
    phase: 'host-key',
    reason: 'the new host key was not accepted',
    hint: howToAdd(endpoint),
  }),
  declined: (): ConnectFailure => ({
    kind: 'declined',
    phase: 'authentication',
    reason: 'the question was dismissed',
  }),
  nobody: (endpoint: Endpoint): ConnectFailure => ({
    kind: 'authentication',
    phase: 'authentication',
    reason: 'it asks for a password or a passphrase, and there is no terminal to ask on',
    hint: `Install your key with: ssh-copy-id ${sshWords(endpoint)}`,
  }),
}

type AnswerOptions = {
  readonly endpoint: Endpoint
  readonly context: ConnectContext
  readonly reviewer: HostKeyReviewer | undefined
  onOpen(): void
  onAnswered(): void
  onUnanswered(what: keyof typeof UNANSWERED): void
}

/** Jump hosts ask too, in words that name them. */
function askedBy(user: string, endpoint: Endpoint): Endpoint {
  const names = (each: Endpoint) => [each.hostKeyAlias, each.address, each.host].map((name) => `${each.user}@${name}`)
  return [endpoint, ...endpoint.jump].find((each) => names(each).includes(user)) ?? endpoint
}

/** Hands the questions of the system's ssh (readpassphrase prompts of openssh-portable) to the user. Guesses no answer. */
export function answerQuestions(options: AnswerOptions): Answerer {
  const { endpoint, context, reviewer } = options
  const { credentials, signal } = context
  /** How often each kind was asked: the second time, the answer before was wrong. */
  const asked = new Map<string, number>()

  const isRetry = (what: string): boolean => {
    const times = asked.get(what) ?? 0
    asked.set(what, times + 1)
    return times > 0
  }

  const ask = async (question: AskpassQuestion): Promise<Answered<Secret>> => {
    switch (question.kind) {
      case 'host-key': {
        const accepted = (await reviewer?.review([question.key], signal)) ?? new Set<string>()
        return accepted.has(question.key.host) ? new Secret('yes') : undefined
      }
      case 'passphrase':
        return credentials.passphrase(question.keyFile, endpoint, isRetry(`passphrase ${question.keyFile}`), signal)
      case 'password':
        return credentials.password(askedBy(question.user, endpoint), isRetry(`password ${question.user}`), signal)
      case 'prompt': {
        const prompts = [{ text: remoteText(question.text), isEchoed: question.isEchoed }]
        const again = isRetry(`prompt ${question.text}`)
        return only(await credentials.keyboardInteractive(endpoint, '', prompts, again, signal))
      }
      case 'notice':
        return new Secret('')
      case 'refuse':
        return undefined
    }
  }

  return async (text, promptKind) => {
    const question = parseAskpassQuestion(endpoint.host, text, promptKind)
    options.onOpen()
    try {
      const answer = await ask(question)
      if (answer instanceof Secret) return answer
      options.onUnanswered(answer ?? (question.kind === 'host-key' ? 'host-key' : 'declined'))
      return undefined
    } finally {
      options.onAnswered()
    }
  }
}

type AskpassQuestion =
  | { readonly kind: 'host-key'; readonly key: NewHostKey }
  | { readonly kind: 'passphrase'; readonly keyFile: string }
  /** `user`: `user@host`, as ssh names the account. */
  | { readonly kind: 'password'; readonly user: string }
  | { readonly kind: 'prompt'; readonly text: string; readonly isEchoed: boolean }
  /** Nothing to answer: touch the security key. */
  | { readonly kind: 'notice'; readonly text: string }
  /** An answer of ours was not understood: never answered by guessing. */
  | { readonly kind: 'refuse' }

/** `promptKind` is SSH_ASKPASS_PROMPT (ssh(1), ENVIRONMENT): `confirm`, `none`, or not set. */
export function parseAskpassQuestion(host: string, text: string, promptKind: string | undefined): AskpassQuestion {
  if (promptKind === 'none') return { kind: 'notice', text }
  // A server's questions begin like this (since OpenSSH 8.5).
  if (/^\([^()\s]*\) /.exec(text)?.[0].includes('@'))
    return { kind: 'prompt', text, isEchoed: promptKind === 'confirm' }
  if (text.startsWith("Please type 'yes'")) return { kind: 'refuse' }
  if (/\(yes\/no(\/\[fingerprint\])?\)\?/.test(text)) {
    const key = newHostKey(host, text)
    return key === undefined ? { kind: 'refuse' } : { kind: 'host-key', key }
  }
  const passphrase = /^Enter passphrase for (?:key )?'?(.*?)'?: ?$/.exec(text)
  if (passphrase?.[1] !== undefined) return { kind: 'passphrase', keyFile: passphrase[1] }
  const password = /^([^()\n]*)'s password: ?$/.exec(text)
  if (password?.[1] !== undefined) return { kind: 'password', user: password[1] }
  return { kind: 'prompt', text, isEchoed: promptKind === 'confirm' }
}

function newHostKey(host: string, text: string): NewHostKey | undefined {
  const lookupName = /^The authenticity of host '([^'\s]+)/m.exec(text)?.[1]
  const [, algorithm, fingerprint] = /^(\S+) key fingerprint is (\S+?)\.?$/m.exec(text) ?? []
  if (lookupName === undefined || algorithm === undefined || fingerprint === undefined) return undefined
  return { host, lookupName, algorithm, fingerprint }
}
