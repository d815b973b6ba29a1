import { connect, type Socket } from 'node:net'
import { onAbort } from './abort.ts'

/** A stream to a Unix socket of this machine. */
export function connectUnixSocket(path: string, signal?: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    const abort = onAbort(signal, () => socket.destroy(new Error('stopped')))
    socket.once('error', reject)
    socket.once('connect', () => {
      abort[Symbol.dispose]()
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
