/**
 * A host with a kernel and a disk of its own: a User-Mode Linux guest on the lab's bridge. What it changes on its disk stays over
 * a crash and a reboot. Commands go in over SSH, so they need its network and its sshd.
 */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../../support/wait-until.ts'
import type { HostPlan } from './files.ts'
import { hardwareAddress } from './host.ts'
import { kernelPreload } from './kernel-image.ts'
import { pidNamespaceOf, processesIn, sessionOf, signalProcess, startTimeOf } from './processes.ts'
import { PLAIN_ENVIRONMENT, type RunOptions, type RunResult, readReadyLine, run, runOrThrow } from './run.ts'

const SCRIPTS = join(import.meta.dirname, 'scripts')
const BOOT_MS = 150_000
const EXEC_MS = 150_000
const SSH = ['ssh', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=20']
const READY = 'lab: ready'

/** `service`: scripts in /etc/init.d, no systemd running. */
export type GuestInit = 'service' | 'systemd'

const FIRST_PROGRAM: Readonly<Record<GuestInit, string>> = {
  service: '/sbin/lab-init',
  systemd: '/lib/systemd/systemd',
}

export class KernelHost {
  readonly name: string
  readonly address: string
  readonly #directory: string
  readonly #labPid: number
  readonly #image: string
  readonly #init: GuestInit
  readonly #client: NodeJS.ProcessEnv
  #pid: number | undefined

  constructor(
    plan: HostPlan,
    directory: string,
    labPid: number,
    image: string,
    init: GuestInit,
    client: NodeJS.ProcessEnv,
  ) {
    this.name = plan.name
    this.address = plan.address
    this.#directory = join(directory, 'hosts', plan.name)
    this.#labPid = labPid
    this.#image = image
    this.#init = init
    this.#client = client
  }

  /** The machine's id of the guest's first process; an error while it is down. */
  get pid(): number {
    if (this.#pid === undefined) throw new Error(`${this.name} is down`)
    return this.#pid
  }

  get isUp(): boolean {
    return this.#pid !== undefined
  }

  /** Starts the host (again): same name, address, keys and disk. Resolves when its sshd listens. */
  async boot(): Promise<void> {
    if (this.isUp) throw new Error(`${this.name} is up already`)
    const boots = this.#boots()
    const script = ['sh', join(SCRIPTS, 'kernel-host.sh'), this.#directory, this.#image, this.name]
    const place = [
      `${this.address}/16`,
      hardwareAddress(this.address),
      FIRST_PROGRAM[this.#init],
      await kernelPreload(),
    ]
    const child = spawn('nsenter', [...this.#enter('--net', '--mount', '--pid'), ...script, ...place], {
      env: PLAIN_ENVIRONMENT,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const pid = await readReadyLine(child, this.name)
    child.unref()
    child.stdout.destroy()
    child.stderr.destroy()
    this.#pid = pid
    await this.#waitForBoot(boots)
  }

  /** Pulls the plug: what the guest had not written to its disk is lost, and nobody is told. */
  async crash(): Promise<void> {
    const namespace = pidNamespaceOf(this.#labPid) ?? ''
    const session = sessionOf(this.pid)
    signalProcess(this.pid, 'SIGKILL')
    const left = () => processesIn(namespace).filter(({ pid, state }) => state !== 'Z' && sessionOf(pid) === session)
    await waitUntil(() => {
      const found = left()
      for (const { pid } of found) signalProcess(pid, 'SIGKILL')
      return found.length === 0
    }, `the end of ${this.name}`)
    this.#pid = undefined
  }

  /** Shuts down from inside, as its user would, and boots. A reboot within one process cannot open the cable again. */
  async reboot(): Promise<void> {
    const command = this.#init === 'systemd' ? 'systemctl poweroff' : 'sync; poweroff -f'
    const process = this.pid
    await this.exec(`nohup sh -c '${command}' > /dev/null 2>&1 < /dev/null &`)
    await waitUntil(() => startTimeOf(process) === undefined, `${this.name} to shut down`, BOOT_MS)
    this.#pid = undefined
    await this.boot()
  }

  /** Cuts the cable: packets vanish in both directions, nobody is told. (The guest gives up a tap that is down for good.) */
  async linkDown(): Promise<void> {
    await runOrThrow(['nsenter', ...this.#enter('--net'), 'ip', 'link', 'set', this.name, 'nomaster'])
  }

  async linkUp(): Promise<void> {
    await runOrThrow(['nsenter', ...this.#enter('--net'), 'ip', 'link', 'set', this.name, 'master', 'muster0'])
  }

  /** Runs a shell command as root, over SSH. */
  async exec(command: string, options: RunOptions = {}): Promise<RunResult> {
    const environment = this.#client
    return await run(['nsenter', ...this.#enter('--net', '--mount'), '--wd=/', ...SSH, this.name, command], {
      environment,
      timeoutMs: EXEC_MS,
      ...options,
    })
  }

  /** Like `exec`; anything but success is an error that shows what was said. Returns its stdout. */
  async mustExec(command: string): Promise<string> {
    const { code, stdout, stderr } = await this.exec(command)
    if (code !== 0) throw new Error(`${command} on ${this.name}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }

  /** What the kernel and the first process wrote, over all boots. */
  console(): string {
    const path = join(this.#directory, 'console.log')
    return existsSync(path) ? readFileSync(path, 'latin1') : ''
  }

  /** What its sshd wrote. */
  log(): string {
    return readFileSync(join(this.#directory, 'sshd.log'), 'utf8')
  }

  #boots(): number {
    return this.console().split(READY).length
  }

  async #waitForBoot(boots: number): Promise<void> {
    await waitUntil(
      () => {
        if (startTimeOf(this.pid) === undefined)
          throw new Error(`${this.name} ended while it booted\n${this.console()}`)
        return this.#boots() > boots
      },
      `${this.name} to boot`,
      BOOT_MS,
    )
  }

  #enter(...namespaces: readonly string[]): string[] {
    return ['--target', String(this.#labPid), ...namespaces]
  }
}
