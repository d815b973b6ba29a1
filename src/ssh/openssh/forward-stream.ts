/** `ssh -W` as a byte stream: the client's stdin and stdout, and its complaint as the stream's error. */
import { spawn } from 'node:child_process'
import { Duplex } from 'node:stream'
import { printable } from '../../base/printable.ts'

const LONGEST_COMPLAINT = 1000

/** ssh does not say when the other side has connected: a refused target shows as an error of the stream. */
export function forwardStream(file: string, args: readonly string[], environment: Record<string, string>): Duplex {
  const child = spawn(file, args, { env: environment, stdio: 'pipe' })
  let complaint = ''
  const stream = new Duplex({
    read: () => void child.stdout.resume(),
    write: (bytes, _encoding, done) => void child.stdin.write(bytes, done),
    final: (done) => void child.stdin.end(done),
    destroy(error, done) {
      child.kill()
      done(error)
    },
  })
  child.stdin.on('error', (error) => stream.destroy(error))
  child.stdout.on('data', (bytes: Buffer) => {
    if (!stream.push(bytes)) child.stdout.pause()
  })
  child.stderr.on('data', (bytes: Buffer) => {
    complaint = (complaint + bytes.toString()).slice(-LONGEST_COMPLAINT)
  })
  child.on('error', (error) => stream.destroy(error))
  child.on('close', (code) => {
    if (code === 0 || stream.destroyed) stream.push(null)
    else stream.destroy(new Error(printable(complaint.trim().split('\n').at(-1) || 'the forward was closed')))
  })
  return stream
}
