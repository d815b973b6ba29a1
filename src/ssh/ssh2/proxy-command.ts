/** ProxyCommand (ssh_config(5)): a child process whose stdin and stdout are the connection, in a process group that ends with it. */

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Duplex, type Readable, type Writable } from 'node:stream'
import { messageOf } from '../../base/errors.ts'
import { signalGroup } from '../../base/processes.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { abortedError, describeEndpoint, misconfigured, remoteText } from './failures.ts'

const STDERR_LIMIT = 4096
/** SIGTERM first; what ignores it is killed. */
const KILL_AFTER_MS = 1000

export async function startProxyCommand(endpoint: Endpoint, command: string, signal: AbortSignal) {
  if (signal.aborted) throw abortedError(endpoint, 'proxy')
  const child = spawn('/bin/sh', ['-c', `exec ${command}`], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  let stderr = ''
  let ending: string | undefined
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_LIMIT)
  })
  child.stderr.on('error', () => {})
  child.once('exit', (code, killedBy) => {
    ending = killedBy === null ? `it ended with code ${code}` : `it was ended by ${killedBy}`
  })
  /** What the command last wrote to stderr or how it ended, printable; undefined when it said nothing. */
  const complaint = () => {
    const line = stderr
      .split('\n')
      .map((text) => text.trim())
      .findLast((text) => text !== '')
    const words = line === undefined ? ending : remoteText(line)
    return words === undefined ? undefined : `proxy command: ${words}`
  }
  try {
    await once(child, 'spawn')
  } catch (error) {
    throw misconfigured(
      'proxy',
      `cannot start the proxy command of ${describeEndpoint(endpoint)}: ${remoteText(messageOf(error))}`,
      'Check ProxyCommand in ssh_config.',
      error,
    )
  }
  return { stream: streamOf(child), complaint, hasEnded: () => ending !== undefined }
}

/** The child's stdin and stdout as one stream; destroying it ends the process group. */
function streamOf(child: ChildProcessByStdio<Writable, Readable, Readable>): Duplex {
  const { stdin, stdout, stderr } = child
  const stream = new Duplex({
    allowHalfOpen: false,
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
