/**
 * What stays on the hosts when a run is cut short: nothing of Muster's, and of pdsh, clush and pssh the command itself. Each
 * peer runs beside Muster and is ended in the same way; when Muster's command is gone the other's still runs.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { pidNamespaceOf, processesIn, signalProcess } from '../cluster/processes.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'nsenter', 'pdsh', 'clush', 'parallel-ssh')

const SSH_OPTIONS = '-oBatchMode=yes'
/** By program: the arguments before the command, with a limit in seconds. */
const PEERS: Readonly<Record<string, (limitS: number) => readonly string[]>> = {
  pdsh: (limitS) => ['-R', 'ssh', '-w', 'm1,m2', '-u', String(limitS)],
  clush: (limitS) => ['-w', 'm1,m2', '-o', SSH_OPTIONS, '-u', String(limitS)],
  'parallel-ssh': (limitS) => ['-H', 'm1 m2', '-x', SSH_OPTIONS, '-t', String(limitS)],
}
const LONG_S = 1000
const ENDS = ['its own time limit', 'Ctrl-C', 'kill -9'] as const

describe.skipIf(!canRun)('a run that is cut short', () => {
  let lab: Lab

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
  })
  afterAll(async () => {
    await lab?.stop()
  })

  /** In the lab's own process namespace: whatever a peer leaves on this side ends with the lab. */
  const start = (argv: readonly string[]) => {
    const enter = ['--target', String(lab.pid), '--net', '--mount', '--pid', `--wd=${process.cwd()}`]
    const child = spawn('nsenter', [...enter, ...argv], { env: lab.environment, stdio: 'ignore' })
    return once(child, 'exit')
  }
  const pidOf = (program: string): number | undefined =>
    processesIn(pidNamespaceOf(lab.pid) ?? '').find(({ command }) => command.includes(program))?.pid
  const sleepers = (seconds: number) =>
    lab.hosts.flatMap((host) => host.processes().filter(({ command }) => command === `sleep ${seconds}`))
  const bothRun = (seconds: number) => sleepers(seconds).length === 2
  const kill = (seconds: number) => {
    for (const { pid } of sleepers(seconds)) signalProcess(pid, 'SIGKILL')
  }
  const startPeer = (peer: string, limitS: number) => start([peer, ...(PEERS[peer]?.(limitS) ?? []), 'sleep 4321'])
  const startMuster = (limitS: number) =>
    start([...PROGRAM, '--hosts', lab.hostsFile, 'run', 'm[1-2]', '--timeout', String(limitS), '--', 'sleep 4322'])

  const endBySignal = async (peer: string, signal: NodeJS.Signals) => {
    const runs = [startPeer(peer, LONG_S), startMuster(LONG_S)]
    await waitUntil(() => bothRun(4321) && bothRun(4322), 'both commands', 60_000)
    const program = pidOf(PROGRAM.at(-1) ?? '')
    if (program !== undefined) signalProcess(program, signal)
    // pdsh wants a second Ctrl-C within a second of the first.
    await waitUntil(() => {
      const pid = pidOf(peer)
      return pid === undefined || !signalProcess(pid, signal)
    }, `the end of ${peer}`)
    await Promise.all(runs)
  }
  /** A peer's limit counts from before the connection: where this machine is too busy for it, a longer one. */
  const endByLimit = async (peer: string) => {
    const ours = startMuster(2)
    for (let limitS = 2; !bothRun(4321); limitS *= 2) {
      kill(4321)
      await startPeer(peer, limitS)
    }
    await ours
  }

  it.each(
    Object.keys(PEERS).flatMap((peer) => ENDS.map((end) => ({ peer, end }))),
  )('by $end leaves nothing of Muster, and the command of $peer', async ({ peer, end }) => {
    if (end === 'its own time limit') await endByLimit(peer)
    else await endBySignal(peer, end === 'Ctrl-C' ? 'SIGINT' : 'SIGKILL')
    await waitUntil(() => sleepers(4322).length === 0, 'the end of what Muster ran', 60_000)
    expect(bothRun(4321)).toBe(true)
    kill(4321)
    await waitUntil(() => sleepers(4321).length === 0, 'the end of what the peer ran')
  })
})
