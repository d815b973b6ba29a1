import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { onAbort } from './abort.ts'

/** A stream to a Unix socket of this machine. */
export const connectUnixSocket = (path: string, signal?: AbortSignal): Promise<Socket> => connected({ path }, signal)

/** A TCP connection from this machine; each side may end alone. */
export const connectTcp = (
  to: { readonly host: string; readonly port: number },
  signal?: AbortSignal,
): Promise<Socket> => connected({ ...to, allowHalfOpen: true, noDelay: true }, signal)

function connected(options: NetConnectOpts, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(options)
    const abort = onAbort(signal, () => socket.destroy(new Error('stopped')))
    socket.once('error', reject)
    socket.once('connect', () => {
      abort[Symbol.dispose]()
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
