/** `muster net watch` on real hosts: one of them dies and comes back, the others go on, and nothing is left running. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

type Line = {
  readonly type: string
  readonly host: string
  readonly receivedBytes?: number
  readonly cards?: readonly { readonly name: string }[]
}

describe.skipIf(!canRun)('muster net watch', () => {
  let lab: Lab

  beforeAll(async () => {
    lab = await startLab({ count: 3, sshConfig: ['Host *', '  ServerAliveInterval 1', '  ServerAliveCountMax 15'] })
  })
  afterAll(async () => await lab?.stop())

  /** What the script runs between two samples, and itself. */
  const scripts = (): string[] =>
    lab.hosts.flatMap((host) =>
      host
        .processes()
        .filter(({ state, command }) => state !== 'Z' && /^sleep 1$|\/proc\/uptime/.test(command))
        .map(({ command }) => `${host.name}: ${command}`),
    )

  it('continues when a host dies, shows it again when it is back, and leaves nothing on the hosts', async () => {
    const [file = '', ...args] = lab.command([...PROGRAM, '--hosts', lab.hostsFile, 'net', 'watch', '--json'])
    const child = spawn(file, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'inherit'] })
    const closed = once(child, 'close')
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    const lines = (): Line[] =>
      stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line)
    const samplesSince = (from: number, host: string) =>
      lines()
        .slice(from)
        .filter((line) => line.type === 'sample' && line.host === host)
    const seenSince = (from: number, ...hosts: readonly string[]) =>
      hosts.every((host) => samplesSince(from, host).length > 0)

    await waitUntil(() => seenSince(0, 'm1', 'm2', 'm3'), 'a sample of each host')
    // The counters are those of the host's own network, and its own login is traffic.
    expect(samplesSince(0, 'm1')[0]?.cards?.map(({ name }) => name)).toContain('eth0')

    await waitUntil(() => scripts().length > 0, 'what runs on the hosts')

    await lab.host('m2').crash()
    await waitUntil(() => lines().some(({ type, host }) => type === 'trouble' && host === 'm2'), 'trouble with m2')
    const died = lines().length
    await waitUntil(() => seenSince(died, 'm1', 'm3'), 'samples of the others')

    await lab.host('m2').boot()
    await waitUntil(() => seenSince(died, 'm2'), 'a sample of m2 after it came back', 90_000)

    child.kill('SIGINT')
    const [code] = await closed
    expect(code).toBe(130)
    await waitUntil(() => scripts().length === 0, 'what ran on the hosts to end')
  }, 180_000)
})
