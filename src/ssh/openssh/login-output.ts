/** What the system's ssh says while it logs in: phases from its debug messages, and the reason when it gives up. Pure. */
import { remoteText } from '../ssh2/failures.ts'
import type { ConnectFailure, ConnectPhase, FailureKind } from '../transport.ts'

const DEBUG = /^debug\d: /

/** Debug messages of ssh(1) at level 1, and the phase that each begins. */
const PHASES: readonly (readonly [RegExp, ConnectPhase])[] = [
  [/^debug1: Executing proxy command/, 'proxy'],
  [/^debug1: Connecting to /, 'tcp'],
  [/^debug1: Connection established/, 'banner'],
  [/^debug1: Local version string/, 'banner'],
  [/^debug1: Server host key: /, 'host-key'],
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
}

/** The most telling first: a changed key also ends in 'verification failed', a refused proxy in 'connection closed'. */
const CAUSES: readonly Cause[] = [
  {
    pattern: /REMOTE HOST IDENTIFICATION HAS CHANGED|HOST IDENTIFICATION HAS CHANGED/,
    kind: 'host-key',
    phase: 'host-key',
    hint: 'If the host was really reinstalled, remove its old key with ssh-keygen -R, then connect again.',
  },
  { pattern: /REVOKED HOST KEY/, kind: 'host-key', phase: 'host-key', hint: 'Do not log in: the key was withdrawn.' },
  { pattern: /Host key verification failed|No .* host key is known/, kind: 'host-key', phase: 'host-key' },
  {
    pattern: /Permission denied|Too many authentication failures|No more authentication methods/,
    kind: 'authentication',
    phase: 'authentication',
    hint: 'Check the user name, and that the host knows your key.',
  },
  {
    pattern: /Bad configuration option|terminating, \d+ bad configuration|Bad owner or permissions|command-line line/,
    kind: 'configuration',
    hint: 'Check ~/.ssh/config with: ssh -G HOST',
  },
  { pattern: /Could not resolve hostname/, kind: 'unreachable', phase: 'name', hint: 'Check the name of the host.' },
  { pattern: /Unable to negotiate|no matching /, kind: 'configuration', phase: 'banner' },
  { pattern: /UNKNOWN port 65535|proxy/i, kind: 'unreachable', phase: 'proxy' },
  { pattern: /kex_exchange_identification|banner/, kind: 'unreachable', phase: 'banner' },
  { pattern: /Connection refused|timed out|No route to host|unreachable/, kind: 'unreachable', phase: 'tcp' },
]

/** `lines`: what ssh wrote, oldest first; `phase`: how far it had come. */
export function failureFromOutput(lines: readonly string[], phase: ConnectPhase): ConnectFailure {
  const said = lines.filter((line) => !DEBUG.test(line)).map((line) => line.replace(/^@\s*|\s*@$/g, '').trim())
  for (const { pattern, ...cause } of CAUSES) {
    const line = said.find((each) => pattern.test(each))
    if (line === undefined) continue
    return {
      kind: cause.kind,
      phase: cause.phase ?? phase,
      reason: remoteText(sentence(line)),
      ...(cause.hint === undefined ? {} : { hint: cause.hint }),
    }
  }
  const last = said.filter((line) => line !== '').at(-1)
  return { kind: 'unreachable', phase, reason: remoteText(last ?? 'ssh ended without a message') }
}

/** Some of ssh's lines shout or begin with its own name. */
function sentence(line: string): string {
  return line.startsWith('WARNING: REMOTE HOST IDENTIFICATION')
    ? 'the host key is not the one in known_hosts'
    : line.replace(/^ssh: /, '').replace(/\.$/, '')
}
