/** Many shells at once, without a screen: the fleet of the console against as many `ssh` processes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { findProgram } from '../../support/requirements.ts'
import { endProcesses, withDescendants } from '../support/processes.ts'
import { PROMPT, type Servers } from './servers.ts'

/** Modules that connect-program.ts loads. */
export const CONNECT_ENTRIES = ['inventory/inventory.ts', 'inventory/resolve-endpoints.ts', 'cli/connect/transports.ts']

export type ConnectResult = {
  /** From the start of the client program to the last prompt. */
  readonly seconds: number
  /** Of the clients, a connection. */
  readonly cpuMs: number
}

/** `seconds` counts from the program's start, so that loading it is not left out. */
export async function connectFleet(servers: Servers, hosts: number, build: string): Promise<ConnectResult> {
  const script = fileURLToPath(new URL('./connect-program.ts', import.meta.url))
  const start = performance.now()
  const client = spawn(process.execPath, [script, build, servers.sshConfig, String(hosts)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
  })
  const [line] = (await once(client.stdout, 'data')) as [Buffer]
  const seconds = (performance.now() - start) / 1000
  const { cpuMs } = JSON.parse(line.toString()) as { cpuMs: number }
  client.stdin.end()
  await once(client, 'exit')
  servers.takeTerminals(servers.names)
  return { seconds, cpuMs: cpuMs / hosts }
}

export async function connectProcesses(
  servers: Servers,
  hosts: number,
  options: readonly string[],
): Promise<ConnectResult> {
  const ssh = `${findProgram('ssh')} -F ${servers.sshConfig} ${options.join(' ')} -tt`
  const names = servers.names.slice(0, hosts).join(' ')
  // One shell starts all, and `times` tells what they used.
  const script = `exec 3<&0; for host in ${names}; do ${ssh} $host <&3 & done; wait; times`
  const start = performance.now()
  const clients = spawn('/bin/sh', ['-c', script], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, HOME: '/nonexistent', TERM: 'xterm-256color' },
  })
  let text = ''
  const seconds = await new Promise<number>((resolve, reject) => {
    clients.once('exit', () => reject(new Error('the ssh processes ended before all prompts stood')))
    clients.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part
      if (text.split(PROMPT).length > hosts) resolve((performance.now() - start) / 1000)
    })
  })
  const ended = once(clients.stdout, 'close')
  await endProcesses(withDescendants(clients.pid ?? 0).slice(1))
  await ended
  servers.takeTerminals(servers.names)
  // The last line: user and system time of the children (sh(1), `times`).
  const [user = 0, system = 0] = [
    ...text
      .trim()
      .split('\n')
      .at(-1)!
      .matchAll(/(\d+)m([\d.]+)s/g),
  ].map(([, minutes, rest]) => Number(minutes) * 60 + Number(rest))
  return { seconds, cpuMs: ((user + system) * 1000) / hosts }
}
