/** ProxyCommand (ssh_config(5)): a child process whose stdin and stdout are the connection, in a process group that ends with it. */

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Duplex, Readable, Writable } from 'node:stream'
import { messageOf } from '../../base/errors.ts'
import { signalGroup } from '../../base/processes.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { processStream } from '../local/spawn-process.ts'
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

/** Destroying it ends the process group. */
function streamOf(child: ChildProcessByStdio<Writable, Readable, Readable>): Duplex {
  const stream = processStream(child, () => {
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
    if (child.exitCode !== null || child.signalCode !== null) return
    signalGroup(child.pid, 'SIGTERM')
    const timer = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), KILL_AFTER_MS)
    child.once('exit', () => clearTimeout(timer))
  })
  stream.allowHalfOpen = false
  for (const pipe of [child.stdin, child.stdout]) pipe.on('error', () => stream.destroy())
  child.stdout.once('end', () => stream.push(null))
  child.once('close', () => stream.push(null))
  return stream
}
