/** An API server of Kubernetes that says what a test wants, and counts what it was asked. Plain HTTP, without authentication. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectUnixSocket } from '../../src/base/connect-stream.ts'
import type { Dial } from '../../src/ops/kubernetes/api.ts'

export type ApiRequest = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

type Answer = (request: ApiRequest, response: ServerResponse) => unknown

export class FakeApiServer implements Disposable {
  readonly requests: ApiRequest[] = []
  /** Watches that are open now. */
  readonly watches: ServerResponse[] = []
  readonly #directory = mkdtempSync(join(tmpdir(), 'muster-test-api-'))
  readonly #server: Server
  answer: Answer

  constructor(answer: Answer) {
    this.answer = answer
    this.#server = createServer((request, response) => void this.#take(request, response))
  }

  /** With a port (0: any) it listens on loopback, for kubectl; otherwise on a Unix socket, for `dial`. */
  static async start(answer: Answer, port?: number): Promise<FakeApiServer> {
    const server = new FakeApiServer(answer)
    await once(
      port === undefined ? server.#server.listen(server.path) : server.#server.listen(port, '127.0.0.1'),
      'listening',
    )
    return server
  }

  /** Of its Unix socket. */
  get path(): string {
    return join(this.#directory, 's')
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  readonly dial: Dial = (signal) => connectUnixSocket(this.path, signal)

  /** Of lists and of watches. */
  count(kind: 'list' | 'watch'): number {
    return this.requests.filter(({ method, query }) => method === 'GET' && query.has('watch') === (kind === 'watch'))
      .length
  }

  /** Cuts all connections. */
  cut(): void {
    this.#server.closeAllConnections()
  }

  [Symbol.dispose](): void {
    this.#server.close()
    this.cut()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost')
    let text = ''
    for await (const chunk of request) text += chunk
    const taken = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: text === '' ? undefined : JSON.parse(text),
    }
    this.requests.push(taken)
    if (taken.query.has('watch')) {
      this.watches.push(response)
      response.once('close', () => this.watches.splice(this.watches.indexOf(response), 1))
    }
    await this.answer(taken, response)
  }
}

export function sendJson(response: ServerResponse, body: unknown, status = 200, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

/** As the API server refuses. */
export function refuse(response: ServerResponse, code: number, reason: string, message = reason, headers = {}): void {
  sendJson(response, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message, code }, code, headers)
}

export function sendEvent(response: ServerResponse, type: string, object: unknown): void {
  response.write(`${JSON.stringify({ type, object })}\n`)
}
