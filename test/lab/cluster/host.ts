/** One host of a lab, and what can be done to it. Signals go to exact process ids found in the host's PID namespace. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../../support/wait-until.ts'
import type { HostPlan } from './files.ts'
import { type LabProcess, pidNamespaceOf, processesIn, signalProcess } from './processes.ts'
import { PLAIN_ENVIRONMENT, type RunResult, readReadyLine, run, runOrThrow } from './run.ts'

const SCRIPTS = join(import.meta.dirname, 'scripts')
const HOST_ENVIRONMENT = { ...PLAIN_ENVIRONMENT, HOME: '/root', USER: 'root', TERM: 'dumb' }

/** Bits a second, in both directions; `burstBytes` at once, and what waits longer than `latencyMs` is dropped (tc-tbf(8)). */
export type Shape = { readonly bitsPerSecond: number; readonly burstBytes?: number; readonly latencyMs?: number }

export class LabHost {
  readonly name: string
  readonly address: string
  readonly #directory: string
  readonly #labPid: number
  #pid: number | undefined
  #namespace: string | undefined

  constructor(plan: HostPlan, directory: string, labPid: number) {
    this.name = plan.name
    this.address = plan.address
    this.#directory = join(directory, 'hosts', plan.name)
    this.#labPid = labPid
  }

  /** The machine's id of the host's first process; an error while it is down. */
  get pid(): number {
    if (this.#pid === undefined) throw new Error(`${this.name} is down`)
    return this.#pid
  }

  get isUp(): boolean {
    return this.#pid !== undefined
  }

  /** Starts the host (again): same name, address and keys, new processes. Resolves when its sshd listens. */
  async boot(): Promise<void> {
    if (this.isUp) throw new Error(`${this.name} is up already`)
    const lab = String(this.#labPid)
    const script = ['sh', join(SCRIPTS, 'host.sh'), SCRIPTS, this.#directory, this.name]
    const place = [`${this.address}/16`, lab, hardwareAddress(this.address)]
    const argv = ['--target', lab, '--net', '--mount', '--pid', 'unshare', '--net', '--uts', ...script, ...place]
    const child = spawn('nsenter', argv, { env: PLAIN_ENVIRONMENT, stdio: ['ignore', 'pipe', 'pipe'] })
    const pid = await readReadyLine(child, this.name)
    // The host's processes hold these pipes for as long as it is up.
    child.stdout.destroy()
    child.stderr.destroy()
    this.#pid = pid
    this.#namespace = pidNamespaceOf(pid)
  }

  /** Kills the first process, and the kernel kills the rest: the peers see their connections closed. Cut the link first for a loss of power. */
  async crash(): Promise<void> {
    const namespace = this.#namespace ?? ''
    signalProcess(this.pid, 'SIGKILL')
    await waitUntil(() => processesIn(namespace).length === 0, `the end of ${this.name}`)
    this.#pid = undefined
    // The kernel takes the cable with the namespace, but in its own time.
    await runOrThrow([
      'nsenter',
      '--target',
      String(this.#labPid),
      '--net',
      'sh',
      '-c',
      `ip link del ${this.name} || :`,
    ])
  }

  /** Kills the listener and every session's process: connections close and new ones are refused. */
  async killSshd(): Promise<void> {
    const daemons = () => this.processes().filter(({ name, state }) => name === 'sshd' && state !== 'Z')
    await waitUntil(() => {
      const found = daemons()
      for (const { pid } of found) signalProcess(pid, 'SIGKILL')
      return found.length === 0
    }, `the end of sshd on ${this.name}`)
  }

  async startSshd(): Promise<void> {
    await this.#mustExec('/usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log')
  }

  /** Cuts the cable: packets vanish in both directions, nobody is told. */
  async linkDown(): Promise<void> {
    await this.#inBridge('ip', 'link', 'set', this.name, 'down')
  }

  async linkUp(): Promise<void> {
    await this.#inBridge('ip', 'link', 'set', this.name, 'up')
  }

  async shape({ bitsPerSecond, burstBytes = 65_536, latencyMs = 50 }: Shape): Promise<void> {
    const bucket = ['tbf', 'rate', `${bitsPerSecond}bit`, 'burst', `${burstBytes}b`, 'latency', `${latencyMs}ms`]
    await this.#inBridge('tc', 'qdisc', 'replace', 'dev', this.name, 'root', ...bucket)
    await this.#mustExec(`tc qdisc replace dev eth0 root ${bucket.join(' ')}`)
  }

  async unshape(): Promise<void> {
    await this.#inBridge('tc', 'qdisc', 'del', 'dev', this.name, 'root')
    await this.#mustExec('tc qdisc del dev eth0 root')
  }

  /** Stops every process of the host; its kernel still acknowledges what arrives, until its buffers are full. */
  async freeze(): Promise<void> {
    await waitUntil(() => {
      const running = this.processes().filter(({ state }) => state !== 'T' && state !== 'Z')
      for (const { pid } of running) signalProcess(pid, 'SIGSTOP')
      return running.length === 0
    }, `${this.name} to stand still`)
  }

  async thaw(): Promise<void> {
    for (const { pid } of this.processes()) signalProcess(pid, 'SIGCONT')
  }

  /** Runs a shell command on the host without SSH, to look or to prepare. */
  async exec(command: string): Promise<RunResult> {
    const enter = ['nsenter', '--target', String(this.pid), '--net', '--mount', '--uts', '--pid']
    return await run([...enter, 'sh', '-c', `cd /root && ${command}`], {
      environment: HOST_ENVIRONMENT,
      directory: '/',
    })
  }

  processes(): LabProcess[] {
    return this.#namespace === undefined ? [] : processesIn(this.#namespace)
  }

  /** What its sshd wrote. */
  log(): string {
    return readFileSync(join(this.#directory, 'sshd.log'), 'utf8')
  }

  async #mustExec(command: string): Promise<void> {
    const { code, stderr } = await this.exec(command)
    if (code !== 0) throw new Error(`${command} on ${this.name}: exit ${code}\n${stderr}`)
  }

  async #inBridge(...argv: readonly string[]): Promise<void> {
    await runOrThrow(['nsenter', '--target', String(this.#labPid), '--net', ...argv])
  }
}

/** Locally administered, out of the IPv4 address. */
export function hardwareAddress(address: string): string {
  const bytes = address.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))
  return ['02', '00', ...bytes].join(':')
}
