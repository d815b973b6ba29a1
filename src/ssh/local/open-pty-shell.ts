/** A program in a pseudo-terminal of this machine behind the port of remote shells. */
import type { Pty, PtyOptions, PtySpawner } from '../../base/pty.ts'
import type { ChannelEnd, Shell, ShellHandlers } from '../transport.ts'

/** `onExit` in place of `handlers.onEnd`: the caller may know more than the exit status tells. Nothing is called after `close`. */
export function openPtyShell(
  spawnPty: PtySpawner,
  options: PtyOptions,
  handlers: Pick<ShellHandlers, 'onData' | 'onDrain'>,
  onExit: (end: ChannelEnd) => void,
): Shell {
  let isOver = false
  const pty: Pty = spawnPty(options, {
    onData: (bytes) => {
      if (!isOver) handlers.onData(bytes)
    },
    onDrain: () => {
      if (!isOver) handlers.onDrain()
    },
    onExit: (end) => {
      if (isOver) return
      isOver = true
      onExit('code' in end ? { kind: 'exit', code: end.code } : { kind: 'signal', signal: end.signal })
    },
  })
  return {
    write: (bytes) => isOver || pty.write(bytes),
    resize: ({ columns, rows }) => {
      if (!isOver) pty.resize(columns, rows)
    },
    pause: () => {
      if (!isOver) pty.pause()
    },
    resume: () => {
      if (!isOver) pty.resume()
    },
    close: () => {
      if (isOver) return
      isOver = true
      pty.close()
    },
  }
}
