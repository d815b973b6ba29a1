/** A proxy in front of a server on this machine. A test can freeze it, cut it, or let it answer in place of the server. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What happens to new connections: `silent` sends nothing, `banner-only` sends nothing after the first line. */
export type ProxyMode = 'open' | 'silent' | 'banner-only'

export class TcpProxy implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #targetPort: number
  readonly #sockets = new Set<Socket>()
  #isStalled = false
  mode: ProxyMode = 'open'
  /** Each connection is cut after this many bytes from the server. */
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

  /** Passes nothing in either direction. Connections stay open, and new ones are accepted. */
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
    this.#pass(client, server, Number.POSITIVE_INFINITY)
    this.#pass(server, client, this.cutsAfterBytes)
  }

  #pass(from: Socket, to: Socket, mostBytes: number): void {
    this.#own(from)
    let left = mostBytes
    from.on('data', (bytes) => {
      if (!to.write(bytes.subarray(0, left))) from.pause()
      left -= bytes.length
      if (left <= 0) from.destroy()
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

/** The endpoint at the proxy's port, with its host key looked up under the server's port. */
export function through<T extends { readonly address: string; readonly port: number }>(
  proxy: TcpProxy,
  endpoint: T,
): T {
  return { ...endpoint, port: proxy.port, hostKeyAlias: `[${endpoint.address}]:${endpoint.port}` }
}
