/**
 * Tells a driver of end-to-end tests when the console is idle and where things are: one JSON line on a Unix socket each
 * time that it comes to rest (docs/architecture.md, 'The observer'). Only where MUSTER_OBSERVER names a socket.
 */
import { connect, type Socket } from 'node:net'

export type ObservedState = {
  readonly inputBytes: number
  /** Given to the terminal so far: a driver waits for all of it, since this socket may be ahead of the terminal. */
  readonly outputBytes: number
  /** Printed by all hosts together so far. */
  readonly hostBytes: number
  readonly frames: number
  readonly mode: string
  readonly page: number
  readonly pages: number
  readonly focus: string | undefined
  readonly receivers: readonly string[]
  readonly panes: readonly {
    readonly host: string
    readonly hosts: readonly string[]
    readonly column: number
    readonly row: number
    readonly width: number
    readonly height: number
  }[]
  readonly hosts: readonly { readonly host: string; readonly session: string; readonly shell: string }[]
}

export type ObserverPort = { readonly isIdle: () => boolean; readonly observe: () => ObservedState }

/** How often rest is looked for; only while something observes. */
const LOOK_EVERY_MS = 5

export function createObserver(socketPath: string, port: ObserverPort): Disposable {
  const socket: Socket = connect(socketPath)
  let last = ''
  socket.on('error', () => socket.destroy())
  const timer = setInterval(() => {
    if (socket.destroyed || socket.connecting || socket.writableNeedDrain || !port.isIdle()) return
    const line = `${JSON.stringify({ type: 'state', idle: true, ...port.observe() })}\n`
    if (line === last) return
    last = line
    socket.write(line)
  }, LOOK_EVERY_MS)
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      socket.destroy()
    },
  }
}
