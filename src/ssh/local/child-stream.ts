import type { ChildProcessByStdio } from 'node:child_process'
import { Duplex, type Readable, type Writable } from 'node:stream'
import { signalGroup } from '../../base/processes.ts'

/** SIGTERM first; what ignores it is killed. */
const KILL_AFTER_MS = 1000

/** The child's stdin and stdout as one stream; destroying it ends the process group. `allowHalfOpen`: each may end alone. */
export function streamOf(
  child: ChildProcessByStdio<Writable, Readable, Readable>,
  { allowHalfOpen }: { readonly allowHalfOpen: boolean },
): Duplex {
  const { stdin, stdout, stderr } = child
  const stream = new Duplex({
    allowHalfOpen,
    read: () => void stdout.resume(),
    write: (bytes, _encoding, done) => void stdin.write(bytes, done),
    final: (done) => void stdin.end(() => done()),
    destroy(error, done) {
      for (const pipe of [stdin, stdout, stderr]) pipe.destroy()
      if (child.exitCode === null && child.signalCode === null) {
        signalGroup(child.pid, 'SIGTERM')
        const timer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), KILL_AFTER_MS)
        child.once('exit', () => clearTimeout(timer))
      }
      done(error)
    },
  })
  stdout.on('data', (bytes: Buffer) => {
    if (!stream.push(bytes)) stdout.pause()
  })
  for (const pipe of [stdin, stdout]) pipe.on('error', () => stream.destroy())
  stdout.once('end', () => stream.push(null))
  child.once('close', () => stream.push(null))
  return stream
}
