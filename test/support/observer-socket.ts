/** The other end of the console's observer: what the program says of itself each time it comes to rest. */
import { createServer, type Server, type Socket } from 'node:net'

export type ObservedPane = {
  readonly host: string
  /** All hosts that this pane stands for, when equal panes are folded. */
  readonly hosts?: readonly string[]
  readonly column: number
  readonly row: number
  readonly width: number
  readonly height: number
}

export type ObservedState = {
  readonly idle: boolean
  readonly inputBytes: number
  /** Bytes that the program has given to its terminal. */
  readonly outputBytes: number
  /** Bytes that all hosts together have printed. */
  readonly hostBytes: number
  readonly frames: number
  readonly mode: string
  /** A letter that is typed now may be the rest of a word, so it answers no question. */
  readonly isInWord: boolean
  /** A letter that is typed now is held back. */
  readonly isTextHeld: boolean
  readonly page: number
  readonly pages: number
  readonly focus?: string
  readonly receivers: readonly string[]
  readonly panes: readonly ObservedPane[]
  readonly hosts: readonly { readonly host: string; readonly session: string; readonly shell: string }[]
}

export class ObserverSocket {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #state: ObservedState | undefined
  #count = 0
  #onState: () => void = () => {}

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(path: string): Promise<ObserverSocket> {
    const server = createServer()
    const observer = new ObserverSocket(server)
    server.on('connection', (socket) => observer.#read(socket))
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
    return observer
  }

  /** The newest state. */
  get state(): ObservedState | undefined {
    return this.#state
  }

  /** How many states have come. */
  get count(): number {
    return this.#count
  }

  set onState(listener: () => void) {
    this.#onState = listener
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #read(socket: Socket): void {
    this.#sockets.add(socket)
    let rest = ''
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#sockets.delete(socket))
    socket.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#take(line)
    })
  }

  #take(line: string): void {
    const message = JSON.parse(line) as ObservedState & { type: string }
    if (message.type !== 'state') return
    this.#state = message
    this.#count += 1
    this.#onState()
  }
}
