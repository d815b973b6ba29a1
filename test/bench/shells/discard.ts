/** What this machine's servers and kernel can deliver at most: as many `ssh -tt`, whose output nobody parses or draws. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { findProgram } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { endProcesses } from '../support/processes.ts'
import type { Flood } from './flood.ts'
import { floodRate } from './measures.ts'
import type { Servers } from './servers.ts'

/**
 * MB/s over the terminals of all hosts but the first, as `measureFlood` floods them, and milliseconds from a key to its echo over
 * the first `ssh` meanwhile.
 */
export async function mostDiscarded(
  servers: Servers,
  hosts: number,
  flood: Flood,
): Promise<{ readonly megabytesPerSecond: number; readonly times: readonly number[] }> {
  const names = servers.names.slice(0, hosts)
  const clients: ChildProcess[] = names.map((name, index) =>
    spawn(findProgram('ssh') ?? 'ssh', ['-F', servers.sshConfig, '-tt', name], {
      stdio: ['pipe', index === 0 ? 'pipe' : 'ignore', 'ignore'],
      env: { PATH: process.env.PATH, HOME: '/nonexistent', TERM: 'xterm-256color' },
    }),
  )
  try {
    const terminals: Record<string, string> = {}
    await waitUntil(() => {
      Object.assign(terminals, servers.takeTerminals(names))
      return Object.keys(terminals).length === hosts
    }, 'a terminal on each host')
    await delay(500)
    const flooded = names.slice(1).flatMap((name) => terminals[name] ?? [])
    const typing = new AbortController()
    const keys = timeEchoes(clients[0], typing.signal)
    const megabytesPerSecond = await floodRate(flood, flooded, 4000)
    typing.abort()
    return { megabytesPerSecond, times: await keys }
  } finally {
    await endProcesses(clients.flatMap(({ pid }) => pid ?? []))
  }
}

/** Types one key after the other until the signal, each erased again. */
async function timeEchoes(client: ChildProcess | undefined, signal: AbortSignal): Promise<number[]> {
  const times: number[] = []
  const { stdin, stdout } = client ?? {}
  if (!stdin || !stdout) throw new Error('no ssh was started')
  // What it printed so far.
  stdout.resume()
  while (!signal.aborted) {
    const echo = once(stdout, 'data')
    const start = performance.now()
    stdin.write('Q')
    await echo
    times.push(performance.now() - start)
    const erased = once(stdout, 'data')
    stdin.write('\x15')
    await erased
    await delay(20 + Math.random() * 60)
  }
  return times
}
