/** A way to a server on this machine that a test can freeze, cut, or answer in the place of the server. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What becomes of new connections: `silent` never says a word, `banner-only` hangs after the first line. */
export type ProxyMode = 'open' | 'silent' | 'banner-only'

export class TcpProxy implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #targetPort: number
  readonly #sockets = new Set<Socket>()
  #isStalled = false
  mode: ProxyMode = 'open'
  /** Each connection is cut when the server has sent so many bytes. */
  cutsAfterBytes = Number.POSITIVE_INFINITY

  constructor(targetPort: number) {
    this.#targetPort = targetPort
  }

  static async to(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Nothing passes in either direction; connections stay, and new ones are made. */
  stall(): void {
    this.#isStalled = true
    for (const socket of this.#sockets) socket.pause()
  }

  unstall(): void {
    this.#isStalled = false
    for (const socket of this.#sockets) socket.resume()
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(client: Socket): void {
    if (this.mode !== 'open') {
      this.#own(client)
      client.resume()
      if (this.mode === 'banner-only') client.write('SSH-2.0-silent\r\n')
      return
    }
    const server = connect({ port: this.#targetPort, host: '127.0.0.1', noDelay: true })
    client.setNoDelay(true)
    this.#pass(client, server, () => {})
    let left = this.cutsAfterBytes
    this.#pass(server, client, (bytes) => {
      left -= bytes
      if (left <= 0) server.destroy()
    })
  }

  #pass(from: Socket, to: Socket, onBytes: (bytes: number) => void): void {
    this.#own(from)
    from.on('data', (bytes) => {
      if (!to.write(bytes)) from.pause()
      onBytes(bytes.length)
    })
    to.on('drain', () => {
      if (!this.#isStalled) from.resume()
    })
    from.on('end', () => to.end())
    from.on('close', () => to.destroy())
    if (this.#isStalled) from.pause()
  }

  #own(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
  }
}

/** An endpoint by the proxy's port: its host key is known under the port of the server. */
export function through<T extends { readonly address: string; readonly port: number }>(
  proxy: TcpProxy,
  endpoint: T,
): T {
  return { ...endpoint, port: proxy.port, hostKeyAlias: `[${endpoint.address}]:${endpoint.port}` }
}
