/** A Unix socket between a client and a console's process, after each has proved that it can read the user's secret. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Clock, systemClock } from '../../base/clock.ts'
import { type ErrorCode, MusterError } from '../../base/errors.ts'
import { isProof, newNonce, proofOf } from '../../ssh/persist/keeper-directory.ts'
import { KeeperLink } from '../../ssh/persist/link.ts'
import { type FromConsole, PROTOCOL, type ToConsole } from './messages.ts'

/** A process on the same machine proves itself quickly; a stopped one never does. */
const GREETING_LIMIT_MS = 3_000

export type LinkHandlers<In> = { onMessage(message: In): void; onClose(): void }

/** These links carry messages only. */
const PLAIN = { onBytes: () => {}, onCredit: () => {} }

export type ClientLink = KeeperLink<FromConsole, ToConsole>
export type ConsoleLink = KeeperLink<ToConsole, FromConsole>

/** The link to a process that this one started: it needs no proof. */
export function inheritedLink<In, Out>(socket: Socket, handlers: LinkHandlers<In>): KeeperLink<In, Out> {
  const link = new KeeperLink<In, Out>(socket, { ...PLAIN, ...handlers })
  link.trust()
  return link
}

/** Rejects with the socket's error (ENOENT, ECONNREFUSED: nothing listens), or with a MusterError if it is not our console or does not answer. */
export async function openProvenLink(
  address: string,
  token: Buffer,
  handlers: LinkHandlers<FromConsole>,
  clock: Clock = systemClock,
): Promise<ClientLink> {
  const socket = connect(address)
  await once(socket, 'connect')
  const nonce = newNonce()
  const greeted = Promise.withResolvers<void>()
  let isTrusted = false
  const refuse = (what: string, code: ErrorCode = 'configuration') => {
    greeted.reject(new MusterError(code, `the process at the console's socket ${what}`))
    link.close()
  }
  const greet = (message: FromConsole) => {
    const isOurs =
      message.type === 'hello' &&
      message.protocol === PROTOCOL &&
      typeof message.nonce === 'string' &&
      isProof(message.proof, proofOf('console', token, nonce, message.nonce))
    if (!isOurs) return refuse('is not a console of this version')
    isTrusted = true
    link.trust()
    link.send({ type: 'proof', proof: proofOf('client', token, nonce, message.nonce) })
    greeted.resolve()
  }
  const link: ClientLink = new KeeperLink<FromConsole, ToConsole>(socket, {
    ...PLAIN,
    onMessage: (message) => (isTrusted ? handlers.onMessage(message) : greet(message)),
    onClose: () => (isTrusted ? handlers.onClose() : refuse('closed the connection')),
  })
  link.send({ type: 'hello', protocol: PROTOCOL, nonce })
  using _limit = clock.after(GREETING_LIMIT_MS, () => refuse('does not answer', 'unreachable'))
  await greeted.promise
  return link
}

/** The console's side. `onClose` is called for clients that never proved themselves, too. */
export function acceptLink(
  socket: Socket,
  token: Buffer,
  handlers: LinkHandlers<ToConsole>,
  clock: Clock = systemClock,
): ConsoleLink {
  const nonce = newNonce()
  let expected: string | undefined
  let isTrusted = false
  const limit = clock.after(GREETING_LIMIT_MS, () => link.close())
  const greet = (message: ToConsole) => {
    if (message.type === 'hello' && typeof message.nonce === 'string' && expected === undefined) {
      expected = proofOf('client', token, message.nonce, nonce)
      link.send({ type: 'hello', protocol: PROTOCOL, nonce, proof: proofOf('console', token, message.nonce, nonce) })
    } else if (message.type === 'proof' && expected !== undefined && isProof(message.proof, expected)) {
      isTrusted = true
      limit[Symbol.dispose]()
      link.trust()
    } else link.close()
  }
  const link: ConsoleLink = new KeeperLink<ToConsole, FromConsole>(socket, {
    ...PLAIN,
    onMessage: (message) => (isTrusted ? handlers.onMessage(message) : greet(message)),
    onClose: () => {
      limit[Symbol.dispose]()
      handlers.onClose()
    },
  })
  return link
}
