/** What this machine's servers and kernel can deliver at most: as many `ssh -tt`, whose output nobody parses or draws. */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { findProgram } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { endProcesses } from '../support/processes.ts'
import type { Flood } from './flood.ts'
import { floodRate } from './measures.ts'
import type { Servers } from './servers.ts'

/** MB/s over the terminals of all hosts but the first, as `measureFlood` floods them. */
export async function mostDiscarded(servers: Servers, hosts: number, flood: Flood): Promise<number> {
  const names = servers.names.slice(0, hosts)
  const clients: ChildProcess[] = names.map((name) =>
    spawn(findProgram('ssh') ?? 'ssh', ['-F', servers.sshConfig, '-tt', name], {
      stdio: ['pipe', 'ignore', 'ignore'],
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
    return await floodRate(flood, flooded, 4000)
  } finally {
    await endProcesses(clients.flatMap(({ pid }) => pid ?? []))
  }
}
