/**
 * The API of Kubernetes over HTTP on a byte stream that somebody else opens, such as the socket of `kubectl proxy`. Authentication is
 * not its business. Answers are bounded, and a failure is a value.
 */
import type { IncomingMessage } from 'node:http'
import { request as httpRequest } from 'node:http'
import type { Duplex } from 'node:stream'
import { onAbort } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { type JsonRecord, parseJson, record, textOf } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'

/** Opens a stream to something that speaks HTTP for the API server. Rejects with an error whose message is for people. */
export type Dial = (signal: AbortSignal) => Promise<Duplex>

export type KubernetesRefusal = {
  readonly ok: false
  /** Of HTTP; 0: there was no answer of the API server. */
  readonly status: number
  /** As the API server says it, such as `AlreadyExists`; `Unreachable` if `status` is 0. */
  readonly reason: string
  /** For people, in one printable line. */
  readonly message: string
  /** How long the API server asks to wait. */
  readonly retryAfterMs?: number
}

export type KubernetesAnswer =
  | { readonly ok: true; readonly status: number; readonly body: JsonRecord }
  | KubernetesRefusal

export type KubernetesMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type KubernetesQuery = Readonly<Record<string, string | number | boolean | undefined>>

export type KubernetesRequest = {
  /** Sent as JSON. */
  readonly body?: unknown
  readonly query?: KubernetesQuery
  /** Of the body; a PATCH is a merge patch unless given. */
  readonly contentType?: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export type KubernetesStream = {
  readonly query?: KubernetesQuery | undefined
  readonly signal?: AbortSignal | undefined
  /** The API server has accepted the request. */
  onBegin?(): void
}

const REQUEST_MS = 30_000
const MOST_ANSWER_BYTES = 48 * 1024 * 1024
/** Of a refusal. */
const MOST_WORDS_BYTES = 64 * 1024
const MOST_WORDS = 600
const MOST_RETRY_AFTER_S = 300

export class KubernetesApi {
  readonly #dial: Dial
  readonly #clock: Clock
  readonly #signal: AbortSignal

  /** `signal` ends everything. */
  constructor(dial: Dial, clock: Clock, signal: AbortSignal) {
    this.#dial = dial
    this.#clock = clock
    this.#signal = signal
  }

  /** The JSON of an answer. Never rejects. */
  async request(
    method: KubernetesMethod,
    path: string,
    { timeoutMs = REQUEST_MS, signal, ...options }: KubernetesRequest = {},
  ): Promise<KubernetesAnswer> {
    using limit = this.#limit(timeoutMs, signal)
    const answer = await this.#send(method, path, options, limit)
    if (!isResponse(answer)) return answer
    const { statusCode: status = 0 } = answer
    const text = await readText(answer, MOST_ANSWER_BYTES).catch((error: unknown) => limit.failure(error))
    if (typeof text !== 'string') return text
    const body = record(parseJson(text))
    if (body === undefined) return nonsense('the answer is not a JSON object, or has too many values')
    return { ok: true, status, body }
  }

  /**
   * The bytes of an answer that may not end, such as a log or a watch. The next bytes are read when `onBytes` has finished. Resolves
   * when it ended, with why if it was not whole. Never rejects.
   */
  async stream(
    path: string,
    { query, signal, onBegin }: KubernetesStream,
    onBytes: (bytes: Uint8Array) => void | Promise<void>,
  ): Promise<KubernetesRefusal | undefined> {
    using limit = this.#limit(REQUEST_MS, signal)
    const answer = await this.#send('GET', path, { query }, limit)
    if (!isResponse(answer)) return answer
    limit.lift()
    onBegin?.()
    try {
      for await (const bytes of answer as AsyncIterable<Uint8Array>) await onBytes(bytes)
      return undefined
    } catch (error) {
      return limit.failure(error)
    }
  }

  /** The head of an answer that is no refusal. */
  async #send(
    method: KubernetesMethod,
    path: string,
    { body, query, contentType }: Pick<KubernetesRequest, 'body' | 'contentType'> & Pick<KubernetesStream, 'query'>,
    limit: Limit,
  ): Promise<IncomingMessage | KubernetesRefusal> {
    if (/\/(\.{0,2})(\/|$)/.test(path)) return nonsense(`${JSON.stringify(path)} is not a path of the API`)
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const type = contentType ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')
    try {
      const stream = await this.#dial(limit.signal)
      // Nobody may listen to it between two of its owners.
      stream.on('error', () => {})
      limit.onEnd(() => stream.destroy())
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const request = httpRequest({
          createConnection: () => stream,
          // kubectl proxy takes requests for localhost only.
          setHost: false,
          method,
          path: path + formatQuery(query),
          headers: {
            host: 'localhost',
            accept: 'application/json',
            ...(bytes && { 'content-type': type, 'content-length': bytes.length }),
          },
          signal: limit.signal,
        })
        request.on('response', resolve)
        request.on('error', reject)
        request.end(bytes)
      })
      const { statusCode = 0 } = answer
      if (statusCode >= 200 && statusCode < 300) return answer
      const text = await readText(answer, MOST_WORDS_BYTES)
      return refusalOf(answer, text)
    } catch (error) {
      return limit.failure(error)
    }
  }

  #limit(timeoutMs: number, signal: AbortSignal | undefined): Limit {
    return new Limit(this.#clock, timeoutMs, signal === undefined ? [this.#signal] : [this.#signal, signal])
  }
}

/** Ends a request in time, and says why it ended. */
class Limit implements Disposable {
  readonly #abort = new AbortController()
  readonly #timeoutMs: number
  readonly #timer: Disposable
  readonly #listeners: readonly Disposable[]
  readonly #ends: (() => void)[] = []
  #hasTimedOut = false

  constructor(clock: Clock, timeoutMs: number, signals: readonly AbortSignal[]) {
    this.#timeoutMs = timeoutMs
    this.#timer = clock.after(timeoutMs, () => {
      this.#hasTimedOut = true
      this.#abort.abort()
    })
    this.#listeners = signals.map((signal) => onAbort(signal, () => this.#abort.abort()))
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  onEnd(end: () => void): void {
    this.#ends.push(end)
  }

  /** There is no time limit from now on. */
  lift(): void {
    this.#timer[Symbol.dispose]()
  }

  failure(error: unknown): KubernetesRefusal {
    if (this.#hasTimedOut) return unreachable(`no answer within ${this.#timeoutMs / 1000} s`)
    if (this.#abort.signal.aborted) return { ...unreachable('stopped'), reason: 'Stopped' }
    if (error instanceof TooLarge) return nonsense(error.message)
    return unreachable(reachWords(messageOf(error)))
  }

  [Symbol.dispose](): void {
    this.lift()
    for (const listener of this.#listeners) listener[Symbol.dispose]()
    for (const end of this.#ends) end()
  }
}

class TooLarge extends Error {}

async function readText(answer: IncomingMessage, mostBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let total = 0
  for await (const bytes of answer as AsyncIterable<Uint8Array>) {
    total += bytes.length
    if (total > mostBytes) throw new TooLarge(`the answer has more than ${mostBytes / 1024} KiB`)
    chunks.push(bytes)
  }
  if (!answer.complete) throw new Error('the connection was cut')
  return Buffer.concat(chunks).toString()
}

const isResponse = (answer: IncomingMessage | KubernetesRefusal): answer is IncomingMessage => !('ok' in answer)

/** Words of a server, for a line on a screen. */
export const remoteWords = (text: string): string => {
  const line = printable(text.replace(/\s+/g, ' ').trim())
  return line.length > MOST_WORDS ? `${line.slice(0, MOST_WORDS)}…` : line
}

export const unreachable = (message: string): KubernetesRefusal => ({
  ok: false,
  status: 0,
  reason: 'Unreachable',
  message: remoteWords(message),
})

export const nonsense = (message: string): KubernetesRefusal => ({ ...unreachable(message), reason: 'Unreadable' })

function refusalOf({ statusCode = 0, headers }: IncomingMessage, text: string): KubernetesRefusal {
  const body = record(parseJson(text))
  // kubectl proxy itself answers in plain text with 500 or 502 if it does not reach the server, and 403 if it refuses a path.
  if (textOf(body?.kind) !== 'Status')
    return statusCode >= 500
      ? unreachable(reachWords(text))
      : {
          ok: false,
          status: statusCode,
          reason: String(statusCode),
          message: remoteWords(text || `HTTP ${statusCode}`),
        }
  const message = textOf(body?.message)
  const seconds = Number(headers['retry-after'])
  return {
    ok: false,
    status: statusCode,
    reason: remoteWords(textOf(body?.reason)) || String(statusCode),
    message: statusCode === 401 ? UNAUTHORIZED : remoteWords(message || `HTTP ${statusCode}`),
    ...(Number.isFinite(seconds) && seconds > 0 ? { retryAfterMs: Math.min(seconds, MOST_RETRY_AFTER_S) * 1000 } : {}),
  }
}

const UNAUTHORIZED =
  'the API server does not accept the credentials of the kubeconfig: they are wrong or have expired. Log in again, or get a new kubeconfig'

/** What Go's HTTP client, TLS and the plugins for credentials say, as a cause and what to do about it. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [
    /(connection|was) refused/i,
    'no API server answers at its address: it is down, or the kubeconfig names another one',
  ],
  [/unauthorized|must be logged in|provide credentials/i, UNAUTHORIZED],
  [/no such host|server misbehaving|dial tcp: lookup /i, 'the name of the API server does not resolve'],
  [/i\/o timeout|deadline exceeded|no route to host|network is unreachable/i, 'the API server cannot be reached'],
  [
    /certificate has expired|expired certificate/i,
    'a certificate has expired: of the API server, or of the kubeconfig. Get a new kubeconfig',
  ],
  [/unknown authority|x509/i, "the API server's certificate does not match the kubeconfig. Get a new kubeconfig"],
  [
    /executable .* not found/i,
    'the kubeconfig needs a program for its credentials that is not installed where kubectl runs',
  ],
  [
    /getting credentials|exec plugin|executable .* failed|token.*(expired|invalid)|oidc|refresh token/i,
    'the credentials of the kubeconfig cannot be renewed. Log in again where kubectl runs',
  ],
]

/** Why kubectl does not reach the API server, with what it said. */
export function reachWords(said: string): string {
  const cause = CAUSES.find(([pattern]) => pattern.test(said))?.[1]
  const words = remoteWords(said)
  return cause === undefined ? words || 'no answer' : `${cause} (${words})`
}

function formatQuery(query: KubernetesQuery = {}): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
  return given.size === 0 ? '' : `?${given}`
}

/** `segments` are names, from wherever: they may be no Unicode. */
export const apiPath = (group: string, ...segments: readonly string[]): string =>
  [
    group === 'v1' ? '/api/v1' : `/apis/${group}`,
    ...segments.map((segment) => encodeURIComponent(segment.toWellFormed())),
  ].join('/')
