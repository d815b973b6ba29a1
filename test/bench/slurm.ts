/**
 * `npm run bench -- slurm`: CPU time of one poll of Slurm with many jobs in its queue, on the login host and here, beside squeue and
 * scontrol alone, in turns on the same cluster.
 */
import type { OpsHosts } from '../../src/ops/kernel/host-port.ts'
import { openSlurm } from '../../src/ops/slurm/job-engine.ts'
import type { LabHost } from '../lab/cluster/host.ts'
import { PLAIN_ENVIRONMENT, run } from '../lab/cluster/run.ts'
import { slurmLab } from '../lab/cluster/slurm-lab.ts'
import { formatNumber, formatTable, median, percentile } from './support/statistics.ts'

export type SlurmBenchOptions = {
  readonly jobs: number
  readonly rounds: number
  readonly interrupted: Promise<never>
  log(line: string): void
}

const GOAL_MS = 300
/** So many are handed over at a time. */
const SUBMITTED_AT_ONCE = 50

export async function benchSlurm({ jobs, rounds, interrupted, log }: SlurmBenchOptions): Promise<string> {
  const { lab, slurm } = await slurmLab()
  const work = async () => {
    const engine = openSlurm({ login: slurm.controller.name, partition: 'main', coreMemoryBytes: 2 ** 20, options: [] })
    const login = new Login(slurm.controller)
    const { signal } = new AbortController()
    const keys = Array.from({ length: jobs }, (_, index) => `bench-${index + 1}-1-0`)
    while (keys.length > login.submitted) {
      const some = keys.slice(login.submitted, login.submitted + SUBMITTED_AT_ONCE)
      const { trouble, reports } = await engine.round(some.map(startOf), login.hosts, signal)
      if (trouble !== undefined || reports.size < some.length)
        throw new Error(`${trouble ?? `${reports.size} of ${some.length} jobs are known`}`)
      login.submitted += some.length
      log(`${login.submitted} jobs submitted`)
    }
    const checks = keys.map((key) => ({ kind: 'check' as const, key }))
    const round = await login.compare(rounds, 'squeue -a -t all -u 0', async (hosts) => {
      const { trouble, reports } = await engine.round(checks, hosts, signal)
      if (trouble !== undefined || reports.size < jobs) throw new Error(trouble ?? `${reports.size} reports`)
    })
    const usage = await login.compare(rounds, 'scontrol -d show node; scontrol -d show job', async (hosts) => {
      const picture = await engine.usage(hosts, signal)
      if (typeof picture === 'string' || picture.jobs.length < jobs) throw new Error(String(picture))
    })
    return formatTable(
      [
        { name: 'of the queue', peer: 'squeue', ...round },
        { name: 'of Packing', peer: 'scontrol -d', ...usage },
      ].map(({ name, peer, whole, there, here, alone }) => ({
        what: `one poll ${name}, ${jobs} jobs in Slurm: ms of CPU, p50 / p99 of ${rounds} (on the login host; here)`,
        ours: `${pair(whole)} (${pair(there)}; ${pair(here)})`,
        peer: `${peer}: ${pair(alone)}`,
        goal: `< ${GOAL_MS}`,
        isReached: median(whole) < GOAL_MS,
      })),
    )
  }
  try {
    return await Promise.race([work(), interrupted])
  } finally {
    await lab.stop()
  }
}

const pair = (values: readonly number[]): string =>
  `${formatNumber(median(values))} / ${formatNumber(percentile(values, 0.99))}`

const startOf = (key: string, index: number) => ({
  kind: 'start' as const,
  key,
  environment: { MUSTER_JOB: String(index) },
  priority: 0,
  spec: {
    name: `job ${index}`,
    command: 'sleep 3000',
    request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
    bundles: 1,
    strategy: 'PACK',
  },
})

/** The login host, which measures what a program of Muster costs there. */
class Login {
  submitted = 0
  readonly #host: LabHost
  #cpuMs = 0
  /** Of the programs of the last poll, in their order. */
  #answers: string[] = []

  constructor(host: LabHost) {
    this.#host = host
  }

  /** Runs programs there. */
  readonly hosts = hostsThat(async (program) => {
    const { cpuMs, stdout } = await this.#timed('sh -s', program)
    this.#cpuMs += cpuMs
    this.#answers.push(stdout)
    return stdout
  })

  /** CPU time of each round, in ms. */
  async compare(rounds: number, peer: string, poll: (hosts: OpsHosts) => Promise<void>) {
    const again = hostsThat(async () => this.#answers.shift() ?? '')
    const [there, here, alone]: [number[], number[], number[]] = [[], [], []]
    for (let round = 0; round < rounds; round += 1) {
      this.#cpuMs = 0
      this.#answers = []
      await poll(this.hosts)
      there.push(this.#cpuMs)
      // The program is composed and the answer is read here, without what it takes to get it.
      const before = process.cpuUsage()
      await poll(again)
      const { user, system } = process.cpuUsage(before)
      here.push((user + system) / 1e3)
      alone.push((await this.#timed(peer)).cpuMs)
    }
    return { whole: there.map((cpuMs, index) => cpuMs + (here[index] ?? 0)), there, here, alone }
  }

  async #timed(command: string, stdin = ''): Promise<{ readonly cpuMs: number; readonly stdout: string }> {
    const enter = ['nsenter', '--target', String(this.#host.pid), '--net', '--mount', '--uts', '--pid']
    const { code, stdout, stderr } = await run(
      [...enter, 'bash', '-c', `cd; TIMEFORMAT='cpu %U %S'; time { ${command}; }`],
      { environment: { ...PLAIN_ENVIRONMENT, HOME: '/root' }, directory: '/', stdin },
    )
    const [, user, system] = /^cpu ([\d.]+) ([\d.]+)$/m.exec(stderr) ?? []
    if (code !== 0 || user === undefined) throw new Error(`${command}: exit ${code}\n${stdout}${stderr}`)
    return { cpuMs: 1000 * (Number(user) + Number(system)), stdout }
  }
}

function hostsThat(answer: (program: string) => Promise<string>): OpsHosts {
  const exec: OpsHosts['exec'] = async (_host, _command, { stdin = '' }) => {
    const stdout = Buffer.from(await answer(String(stdin)))
    return { outcome: { kind: 'exit', code: 0 }, stdout, stderr: new Uint8Array(), durationMs: 0 }
  }
  return { exec } as OpsHosts
}
