/** A connection that the keeper holds, as the program sees it. Closing it gives it back; it stays warm there. */
import { Duplex } from 'node:stream'
import type { Connection } from '../transport.ts'
import type { BorrowedChannel, ChannelHandlers } from './borrowed-channel.ts'
import { FRAME_KINDS } from './frames.ts'
import type { OpenRequest } from './messages.ts'

/** `open` rejects with ConnectError. */
export function borrowedConnection(
  open: (what: OpenRequest, handlers: ChannelHandlers) => Promise<BorrowedChannel>,
  release: () => void,
): Connection {
  return {
    openShell: (options, handlers) =>
      open(
        { kind: 'shell', ...options },
        {
          onBytes: (_kind, bytes) => handlers.onData(bytes),
          onDrain: () => handlers.onDrain(),
          onEnd: (end) => handlers.onEnd(end),
        },
      ),
    exec: (command, handlers, options) =>
      open(
        { kind: 'exec', command, ...(options && { options }) },
        {
          onBytes: (kind, bytes) => (kind === FRAME_KINDS.stderr ? handlers.onStderr(bytes) : handlers.onStdout(bytes)),
          onDrain: () => handlers.onDrain?.(),
          onEnd: (end) => handlers.onEnd(end),
        },
      ),
    async forward(address, port) {
      let written: (() => void) | undefined
      let channel: BorrowedChannel | undefined
      const continueWriting = () => {
        const done = written
        written = undefined
        done?.()
      }
      const stream = new Duplex({
        read: () => channel?.resume(),
        write: (bytes: Buffer, _encoding, done) => {
          // The other side has closed: as with ssh, the bytes are dropped.
          if (channel === undefined || channel.isOver || channel.write(bytes)) done()
          else written = done
        },
        final: (done) => {
          channel?.endInput()
          done()
        },
        destroy: (error, done) => {
          channel?.close()
          done(error)
        },
      })
      channel = await open(
        { kind: 'forward', address, port },
        {
          onBytes: (_kind, bytes) => {
            if (!stream.push(bytes)) channel?.pause()
          },
          onDrain: continueWriting,
          onEnd: (end) => {
            if (end.kind === 'lost') return stream.destroy(new Error(end.reason))
            stream.push(null)
            continueWriting()
          },
        },
      )
      return stream
    },
    close: release,
  }
}
