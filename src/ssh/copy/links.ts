/** Links between hosts, made once for each pair by their helpers, and measured. Each has its own secret, sent over SSH. */

import { generateKeyPairSync, sign } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { HelperMessage } from './remote-helper.ts'

/** The helper, as links and chains use it. */
export interface LinkHelper {
  readonly isLost: boolean
  send(order: object): void
  /** Undefined: the helper has ended. */
  onMessage(listener: (message: HelperMessage | undefined) => void): void
}

/** A host that can take files from other hosts and relay them. */
export type Peer = {
  readonly host: string
  /** Where other hosts find it, unless its SSH server says so. */
  readonly address: string
  readonly helper: LinkHelper
}

export type Link = {
  readonly number: number
  readonly from: Peer
  readonly to: Peer
  readonly bitsPerSecond: number
}

/** The helpers give up earlier if nothing comes back. */
const SETUP_LIMIT_MS = 20_000
const PROBE = { bytes: 1024 * 1024, seconds: 0.4 }
const PROBE_LIMIT_MS = 10_000

type Waiting = {
  readonly link: number
  /** Only these may report about this link. */
  readonly peers: readonly Peer[]
  isAnswer(message: HelperMessage): boolean
  settle(message: HelperMessage): void
  readonly timer: Disposable
}

export class Links implements Disposable {
  readonly #clock: Clock
  readonly #onLost: (link: Link, reason: string) => void
  readonly #made = new Map<string, Promise<Link>>()
  readonly #open = new Map<number, Link>()
  readonly #waiting = new Set<Waiting>()
  #lastNumber = 0

  constructor(clock: Clock, onLost: (link: Link, reason: string) => void) {
    this.#clock = clock
    this.#onLost = onLost
  }

  /** Rejects with the reason why the hosts cannot reach each other. */
  between(from: Peer, to: Peer): Promise<Link> {
    const key = `${from.host}\n${to.host}`
    const made = this.#made.get(key) ?? this.#make(from, to)
    this.#made.set(key, made)
    made.catch(() => this.#made.delete(key))
    return made
  }

  drop(link: Link): void {
    if (!this.#open.delete(link.number)) return
    this.#made.delete(`${link.from.host}\n${link.to.host}`)
    for (const { helper } of [link.from, link.to]) helper.send({ op: 'drop', link: link.number })
  }

  /** A report of a peer's helper, which counts for the links of this peer only. */
  handle(peer: Peer, message: HelperMessage): void {
    for (const each of this.#waiting) {
      if (
        each.link !== message.link ||
        !each.peers.includes(peer) ||
        (message.error === undefined && !each.isAnswer(message))
      )
        continue
      this.#waiting.delete(each)
      each.settle(message)
    }
    const link = this.#open.get(message.link ?? 0)
    if (message.error === undefined || link === undefined || (link.from !== peer && link.to !== peer)) return
    this.drop(link)
    this.#onLost(link, message.error)
  }

  [Symbol.dispose](): void {
    for (const { timer } of this.#waiting) timer[Symbol.dispose]()
    this.#waiting.clear()
  }

  async #make(from: Peer, to: Peer): Promise<Link> {
    this.#lastNumber += 1
    const link = this.#lastNumber
    const secret = createLinkCertificate()
    try {
      const listening = this.#answer(link, [to], SETUP_LIMIT_MS, ({ at }) => at !== undefined)
      to.helper.send({ op: 'listen', link, address: to.address, ...secret })
      const { at } = await listening
      const up = this.#answer(link, [from, to], SETUP_LIMIT_MS, (message) => message.up === true)
      const probed = this.#answer(link, [from, to], SETUP_LIMIT_MS + PROBE_LIMIT_MS, ({ probe }) => probe !== undefined)
      from.helper.send({ op: 'connect', link, to: at, ...secret })
      // Do not wait: with a slow connection to this machine, each order takes long.
      from.helper.send({ op: 'probe', link, ...PROBE })
      await up
      const [bytes, seconds] = (await this.#within(PROBE_LIMIT_MS, probed)).probe ?? [0, 1]
      const made = { number: link, from, to, bitsPerSecond: (8 * bytes) / seconds }
      this.#open.set(link, made)
      return made
    } catch (error) {
      for (const { helper } of [from, to]) helper.send({ op: 'drop', link })
      throw error
    }
  }

  async #within(limitMs: number, answer: Promise<HelperMessage>): Promise<HelperMessage> {
    const late = Promise.withResolvers<never>()
    using _limit = this.#clock.after(limitMs, () => late.reject(new Error('no answer')))
    return await Promise.race([answer, late.promise])
  }

  #answer(
    link: number,
    peers: readonly Peer[],
    limitMs: number,
    isAnswer: (message: HelperMessage) => boolean,
  ): Promise<HelperMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<HelperMessage>()
    const timer = this.#clock.after(limitMs, () => {
      this.#waiting.delete(waiting)
      reject(new Error('no answer'))
    })
    const waiting: Waiting = {
      link,
      peers,
      timer,
      isAnswer,
      settle: (message) => {
        timer[Symbol.dispose]()
        if (message.error === undefined) resolve(message)
        else reject(new Error(message.error))
      },
    }
    this.#waiting.add(waiting)
    promise.catch(() => {})
    return promise
  }
}

export type LinkCertificate = { readonly certificate: string; readonly key: string }

/** Self-signed, for one link; both ends trust nothing else. Node cannot make certificates: this is the DER (RFC 5280, RFC 5480). */
export function createLinkCertificate(): LinkCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(Buffer.from('06082a8648ce3d040302', 'hex'))
  // CN=muster
  const name = sequence(tagged(0x31, sequence(Buffer.from('0603550403', 'hex'), tagged(0x0c, Buffer.from('muster')))))
  // Valid from 2000 to 9999: clocks of hosts may be wrong, and the key is used for one copy only.
  const validity = sequence(tagged(0x17, Buffer.from('000101000000Z')), tagged(0x18, Buffer.from('99991231235959Z')))
  const content = sequence(
    tagged(0xa0, Buffer.from([2, 1, 2])),
    Buffer.from([2, 1, 1]),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
  )
  const signature = sign('sha256', content, privateKey)
  const der = sequence(content, ecdsaWithSha256, tagged(0x03, Buffer.from([0]), signature))
  const lines = der.toString('base64').replace(/.{64}/g, '$&\n')
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.trimEnd()}\n-----END CERTIFICATE-----\n`,
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  }
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts)
}

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}
