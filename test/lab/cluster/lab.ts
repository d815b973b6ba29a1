/**
 * A lab: hosts behind real OpenSSH, each in network, mount, UTS and PID namespaces of its own, on a bridge in a further network
 * namespace. Nothing of it has a name on the machine: namespaces, cables and mounts live as long as the lab's first process,
 * which ends (and removes the lab's directory) when its owner closes it or dies.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createLabDirectory, sweepLabs, writeOwners } from './directories.ts'
import { type ClientPlan, type HostPlan, writeLabFiles } from './files.ts'
import { LabHost, type Shape } from './host.ts'
import { type GuestInit, KernelHost } from './kernel-host.ts'
import { kernelImage } from './kernel-image.ts'
import { signalProcess } from './processes.ts'
import { PLAIN_ENVIRONMENT, type RunOptions, type RunResult, readReadyLine, run, runOrThrow } from './run.ts'

/** Exists inside the lab's namespaces only. */
const BRIDGE = '10.81.255.254/16'
const HOSTS_A_NET = 250
const BOOTS_AT_ONCE = 8
const STOP_MS = 5_000

export type LabOptions = Partial<ClientPlan> & {
  readonly count?: number
  /** Instead of m1 … mN. */
  readonly names?: readonly string[]
  /** sshd_config(5) keywords over Debian's defaults. */
  readonly sshdOptions?: Readonly<Record<string, string>>
  /** Hosts with a kernel of their own besides (User-Mode Linux), and how they manage services. */
  readonly kernelHosts?: Readonly<Record<string, GuestInit>>
  /** Directories of this machine that every namespace host sees read-only, by where they are there. */
  readonly mounts?: Readonly<Record<string, string>>
  /** `homeOf`: an earlier host whose home directory it has, too, as over NFS. */
  readonly perHost?: (name: string) => {
    sshdOptions?: Readonly<Record<string, string>>
    bashrc?: string
    homeOf?: string | undefined
  }
  /** The lab outlives this process, until somebody kills its first process. */
  readonly isStanding?: boolean
}

export class Lab implements AsyncDisposable {
  readonly directory: string
  readonly hostsFile: string
  /** The machine's id of the lab's first process. */
  readonly pid: number
  readonly hosts: readonly LabHost[]
  readonly kernelHosts: readonly KernelHost[]
  readonly #process: ChildProcess
  readonly #cleanups: (() => Promise<void>)[] = []

  constructor(
    directory: string,
    hostsFile: string,
    pid: number,
    hosts: readonly LabHost[],
    kernelHosts: readonly KernelHost[],
    process: ChildProcess,
  ) {
    this.directory = directory
    this.hostsFile = hostsFile
    this.pid = pid
    this.hosts = hosts
    this.kernelHosts = kernelHosts
    this.#process = process
  }

  get names(): string[] {
    return this.hosts.map(({ name }) => name)
  }

  host(name: string): LabHost {
    const host = this.hosts.find((candidate) => candidate.name === name)
    if (host === undefined) throw new Error(`the lab has no host ${name}`)
    return host
  }

  kernelHost(name: string): KernelHost {
    const host = this.kernelHosts.find((candidate) => candidate.name === name)
    if (host === undefined) throw new Error(`the lab has no kernel host ${name}`)
    return host
  }

  /** What a program needs to run as the lab's user: a home with the key, ssh's config and known_hosts, and nothing else. */
  get environment(): NodeJS.ProcessEnv {
    return clientEnvironment(this.directory)
  }

  /** The command line that runs `argv` where the hosts can be reached. */
  command(argv: readonly string[]): string[] {
    return ['nsenter', '--target', String(this.pid), '--net', '--mount', `--wd=${process.cwd()}`, ...argv]
  }

  /** The speed at which this machine sends to all hosts together. */
  async shapeUplink({ bitsPerSecond, burstBytes = 65_536, latencyMs = 50 }: Shape): Promise<void> {
    const bucket = ['tbf', 'rate', `${bitsPerSecond}bit`, 'burst', `${burstBytes}b`, 'latency', `${latencyMs}ms`]
    await runOrThrow(this.command(['tc', 'qdisc', 'replace', 'dev', 'muster0', 'root', ...bucket]))
  }

  async run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    return await run(this.command(argv), { environment: this.environment, ...options })
  }

  /** Lets this process end while the lab stands. */
  detach(): void {
    this.#process.unref()
    this.#process.stdout?.destroy()
    this.#process.stderr?.destroy()
  }

  /** For what does not end with the lab's processes. */
  afterStop(cleanup: () => Promise<void>): void {
    this.#cleanups.push(cleanup)
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, 'exit')
      const overdue = setTimeout(() => signalProcess(this.pid, 'SIGKILL'), STOP_MS)
      if (this.#process.stdin === null) signalProcess(this.pid, 'SIGKILL')
      else this.#process.stdin.end()
      await ended
      clearTimeout(overdue)
    }
    for (const cleanup of this.#cleanups.splice(0)) await cleanup()
    rmSync(this.directory, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

export async function startLab(options: LabOptions = {}): Promise<Lab> {
  sweepLabs()
  const { knownHosts = 'all', sshConfig = [], isStanding = false, kernelHosts = {} } = options
  const image = Object.keys(kernelHosts).length > 0 ? await kernelImage() : ''
  const directory = createLabDirectory()
  writeOwners(directory, [process.pid])
  const plans = planHosts(options)
  const hostsFile = writeLabFiles(directory, plans, { knownHosts, sshConfig })

  const first = spawnFirst(directory, isStanding)
  const pid = await readReadyLine(first, 'the lab')
  writeOwners(directory, isStanding ? [pid] : [process.pid, pid])
  const hosts: LabHost[] = []
  const guests: KernelHost[] = []
  for (const plan of plans) {
    const init = kernelHosts[plan.name]
    if (init === undefined) hosts.push(new LabHost(plan, directory, pid))
    else guests.push(new KernelHost(plan, directory, pid, image, init, clientEnvironment(directory)))
  }
  const lab = new Lab(directory, hostsFile, pid, hosts, guests, first)
  try {
    await bootAll([...hosts, ...guests])
  } catch (error) {
    await lab.stop()
    throw error
  }
  return lab
}

function planHosts({
  count = 3,
  names,
  sshdOptions = {},
  kernelHosts = {},
  mounts = {},
  perHost,
}: LabOptions): HostPlan[] {
  const shared = names ?? Array.from({ length: count }, (_, index) => `m${index + 1}`)
  return [...shared, ...Object.keys(kernelHosts)].map((name, index) => {
    const own = perHost?.(name) ?? {}
    return {
      name,
      address: `10.81.${Math.floor(index / HOSTS_A_NET)}.${(index % HOSTS_A_NET) + 1}`,
      sshdOptions: { ...sshdOptions, ...own.sshdOptions },
      bashrc: own.bashrc ?? '',
      mounts,
      homeOf: own.homeOf,
    }
  })
}

function spawnFirst(directory: string, isStanding: boolean): ChildProcess {
  const until = isStanding ? 'killed' : 'end-of-file'
  const script = ['sh', join(import.meta.dirname, 'scripts', 'lab.sh'), directory, BRIDGE, until]
  const namespaces = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child=KILL']
  return spawn('unshare', [...namespaces, ...script], {
    env: PLAIN_ENVIRONMENT,
    detached: isStanding,
    stdio: [isStanding ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
}

function clientEnvironment(directory: string): NodeJS.ProcessEnv {
  const home = join(directory, 'home')
  return { ...PLAIN_ENVIRONMENT, HOME: home, MUSTER_RUNTIME_DIR: home, USER: 'root', SHELL: '/bin/bash' }
}

async function bootAll(hosts: readonly (LabHost | KernelHost)[]): Promise<void> {
  const waiting = [...hosts]
  const workers = Array.from({ length: BOOTS_AT_ONCE }, async () => {
    for (let host = waiting.shift(); host; host = waiting.shift()) await host.boot()
  })
  await Promise.all(workers)
}
