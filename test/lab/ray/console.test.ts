/** A Ray cluster as the console and the queue of jobs use it: jobs typed into the palette, one gang by both engines, a head that is killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { type LabProcess, signalProcess } from '../cluster/processes.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../cluster/ray-environment.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ssh',
  'ip',
  'nsenter',
  'flock',
  'setsid',
  'python environments',
)

/** A process a processor, started for the first job, would be thirty-six here. */
const VARIABLES = 'RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0'
const RUNNING = { whileBusy: true, timeoutMs: 120_000 }
/** Of each bundle its number, on which hosts the gang is, and its own; until the file is there. */
const gang = (engine: string) =>
  `echo "rank $MUSTER_RANK of $MUSTER_WORLD_SIZE among $MUSTER_HOSTS on $(hostname)"
exec sh -c 'until test -e /root/go-${engine}; do sleep 0.2; done' rank-${engine}-$MUSTER_RANK`
/** Placement groups by Ray's own interface: name, then the addresses of the bundles in order. */
const GROUPS = `import json, ray
from ray.util import placement_group_table
ray.init(address="10.81.0.1:6333", log_to_driver=False, logging_level="ERROR")
ips = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
table = [one for one in placement_group_table().values() if one["state"] != "REMOVED"]
print("groups " + json.dumps([[one["name"], one["strategy"], one["state"], [ips[node] for _, node in sorted(one["bundles_to_node_id"].items())]] for one in table]))`

type PackLine = {
  readonly type: string
  readonly name: string
  readonly jobs?: readonly number[]
  readonly job?: number
  readonly state?: string
  readonly cpuUsedMilli?: number
  readonly bundles?: readonly { readonly host: string }[]
}

describe.skipIf(!canRun)('Ray from the console and the queue', { timeout: 400_000 }, () => {
  let lab: Lab
  let console: ConsoleDriver
  let worker: ChildProcess | undefined

  const argv = (...args: readonly string[]) => [
    ...PROGRAM,
    ...['--hosts', join(lab.directory, 'ray.yaml'), '--connect-timeout', '40'],
    ...args,
  ]
  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run(argv(...args), { timeoutMs: 300_000 })
  const command = async (line: string): Promise<void> => {
    await console.leader(':')
    await console.type(line)
    await console.key('Enter')
  }
  const found = (host: string, isIt: (process: LabProcess) => boolean): readonly LabProcess[] =>
    lab
      .host(host)
      .processes()
      .filter((process) => process.state !== 'Z' && isIt(process))
  const packed = async (): Promise<readonly PackLine[]> => {
    const { stdout, code, stderr } = await muster('pack', '--json')
    expect([code, stderr]).toEqual([0, ''])
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as PackLine)
  }
  const hostOf = (address: string): string => lab.hosts.find((host) => host.address === address)?.name ?? address
  /** Hosts by the ranks whose processes they have. */
  const ranksOf = (engine: string): readonly string[] => {
    const ranks: string[] = []
    for (const host of lab.names)
      for (const { command: line } of found(host, () => true)) {
        const [, rank] = new RegExp(`rank-${engine}-(\\d)\\s*$`).exec(line) ?? []
        if (rank !== undefined) ranks[Number(rank)] = host
      }
    return ranks
  }

  beforeAll(async () => {
    lab = await startLab({ names: ['m10', 'm8', 'm9'], mounts: { [RAY_PLACE]: await rayEnvironment() } })
    const [m10, m8, m9] = lab.hosts.map(({ address }) => address)
    const yaml = `cluster: lab
defaults: { user: root }
hosts:
  m10: { address: ${m10}, resources: { cpu: 4, memory: 1GiB } }
  m8: { address: ${m8}, resources: { cpu: 16, memory: 1GiB } }
  m9: { address: ${m9}, resources: { cpu: 16, memory: 1GiB } }
environment: { venv: { path: ${RAY_VENV} } }
ray: { head: m10, workers: "m[8-9]", port: 6333, object_store: 100MB, env: { ${VARIABLES} } }
`
    writeFileSync(join(lab.directory, 'ray.yaml'), yaml)
    const up = await muster('ray', 'up', '--yes')
    expect(up.code, up.stdout + up.stderr).toBe(0)
    console = await openConsole({ in: lab, args: argv().slice(PROGRAM.length), size: [140, 44] })
    await console.expectAllOpen()
    await console.expectHeader(/ ray 3\/3 /, RUNNING)
  }, 1_500_000)
  afterAll(async () => {
    worker?.kill('SIGKILL')
    await console?.close()
    await lab?.stop()
  })

  it('runs a job that needs more than the head has on a worker, and shows its log as it is written', async () => {
    await command(
      'ray submit --cpus 10 --id big echo at $(hostname -I); until test -e go; do sleep 0.1; done; echo went on',
    )
    await console.expectScreen(/at 10\.81\.0\.[23]\b/, RUNNING)
    const [, address = ''] = /at (10\.81\.0\.[23])\b/.exec(console.screen().join('\n')) ?? []
    const isJob = ({ command: line }: LabProcess) => /^\S*sh -c echo at /.test(line)
    expect(lab.names.filter((host) => found(host, isJob).length > 0)).toEqual([hostOf(address)])
    expect(console.screen().join('\n')).not.toMatch(/^\W*went on/m)
    for (const { innerPid } of found(hostOf(address), isJob))
      await lab.host(hostOf(address)).exec(`touch /proc/${innerPid}/cwd/go`)
    await console.expectScreen(/[^;] went on/, RUNNING)
    await console.expectScreen(/1 host: 1 ok/, RUNNING)
  })

  it('lists jobs, and stops one that runs in the background', async () => {
    const sleepers = () => lab.names.flatMap((host) => found(host, ({ command: line }) => line === 'sleep 4567'))
    await command('ray submit --no-wait --id long sleep 4567')
    await console.expectScreen(/1 host: 1 ok/, RUNNING)
    await waitUntil(() => sleepers().length === 1, 'the job', 120_000)
    await command('ray jobs')
    await console.expectScreen(/big +SUCCEEDED [^\n]*\n[^\n]*long +RUNNING /, RUNNING)
    await command('ray stop long')
    await console.expectScreen(/long: stopped/, RUNNING)
    await waitUntil(() => sleepers().length === 0, 'the end of the job', 60_000)
    await waitUntil(async () => /^long\tSTOPPED\t/m.test((await muster('ray', 'jobs')).stdout), 'it to be listed so')
    await command('ray jobs')
    await console.expectScreen(/long +STOPPED /, RUNNING)
    await console.key('x')
  })

  it('places a gang on the same hosts with the same ranks with both engines, and shows both', async () => {
    const said = new Map<string, readonly string[]>()
    const [file = '', ...args] = lab.command(argv('job', 'work'))
    worker = spawn(file, args, { env: lab.environment, stdio: 'ignore' })
    for (const engine of ['embedded', 'ray']) {
      const options = ['--engine', engine, '--bundles', '3', '--strategy', 'STRICT_SPREAD', '--cpu', '2']
      const id = Number((await muster('job', 'submit', ...options, '--', gang(engine))).stdout)
      await waitUntil(() => Object.keys(ranksOf(engine)).length === 3, `three ranks by ${engine}`, 200_000)
      const hosts = ranksOf(engine)
      expect(hosts.toSorted()).toEqual(['m10', 'm8', 'm9'])

      const lines = await packed()
      const isOurs = ({ type, jobs, job }: PackLine) => (type === 'host' ? jobs?.includes(id) : job === id)
      if (engine === 'embedded') {
        expect(lines.filter(isOurs).map(({ name, cpuUsedMilli }) => [name, cpuUsedMilli])).toEqual(
          ['m10', 'm8', 'm9'].map((name) => [name, 2000]),
        )
      } else {
        const [group] = lines.filter(isOurs)
        expect(group?.bundles?.map(({ host }) => host)).toEqual(hosts)
        expect(lines.filter(({ type }) => type === 'node').map(({ cpuUsedMilli }) => cpuUsedMilli)).toEqual([
          2000, 2000, 2000,
        ])
        const told = await lab.host('m10').exec(`${RAY_VENV}/bin/python -c '${GROUPS}'`)
        const [, table = ''] = /^groups (.*)$/m.exec(told.stdout) ?? []
        const groups = JSON.parse(table) as [string, string, string, string[]][]
        expect(groups.map(([name, strategy, state, ips]) => [name, strategy, state, ips.map(hostOf)])).toEqual([
          [group?.name, 'STRICT_SPREAD', 'CREATED', hosts],
        ])
      }
      await console.leader('4')
      // From all clusters to the own hosts, and later to Ray.
      await console.expectScreen(/y: .*own hosts.*Ray/)
      await console.key('y')
      await console.expectScreen(engine === 'ray' ? / 1 placement group/ : / 1 running, 0 waiting/, RUNNING)
      await console.expectScreen(/ 2\/4\b[\s\S]* 2\/16\b[\s\S]* 2\/16\b/, RUNNING)
      await console.leader('1')

      for (const host of lab.hosts) await host.exec(`touch go-${engine}`)
      expect((await muster('job', 'wait', String(id))).code).toBe(0)
      const outputs = await Promise.all(
        hosts.map(async (_, rank) => (await muster('job', 'logs', String(id), '--rank', String(rank))).stdout),
      )
      said.set(engine, outputs)
      expect(outputs).toEqual(hosts.map((host, rank) => `rank ${rank} of 3 among ${hosts.join()} on ${host}\n`))
    }
    const ranks = (engine: string) => said.get(engine)?.map((line) => line.slice(0, 'rank 0 of 3'.length))
    expect(ranks('ray')).toEqual(ranks('embedded'))
    const exit = once(worker, 'exit')
    worker.kill('SIGINT')
    await exit
  })

  /** Kills those processes of the head, and gives what who watches with a long interval is told then. */
  const toldAfterKilling = async (isIt: (process: LabProcess) => boolean, atLeast: number): Promise<string> => {
    const [file = '', ...args] = lab.command(argv('ray', 'watch', '--interval', '60'))
    const watch = spawn(file, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'pipe'] })
    let [output, messages] = ['', '']
    watch.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    watch.stderr.setEncoding('utf8').on('data', (text: string) => {
      messages += text
    })
    await waitUntil(() => output.includes('m10 (head)'), 'the nodes', 60_000)
    const killed = found('m10', isIt)
    expect(killed.length).toBeGreaterThanOrEqual(atLeast)
    for (const { pid } of killed) signalProcess(pid, 'SIGKILL')
    await console.expectHeader(/ ray down /, RUNNING)
    await console.expectScreen(
      /Ray: the head on m10 does not answer: its GCS does not answer at 10\.81\.0\.1:6333/,
      RUNNING,
    )
    await waitUntil(() => messages.includes('\n'), 'a line', 60_000)
    const exit = once(watch, 'exit')
    watch.kill('SIGINT')
    await exit
    return messages
  }
  const LINE = /^muster: Ray: the head on m10 does not answer: its GCS does not answer at 10\.81\.0\.1:6333: .*\n$/

  it('reports a killed GCS in the header and in a line, and up recovers it', async () => {
    expect(await toldAfterKilling(({ name }) => name === 'gcs_server', 1)).toMatch(LINE)
    const { code, stdout } = await muster('ray', 'up', '--yes')
    expect(stdout).toContain('ray · m10: 3 nodes are alive')
    expect(code).toBe(0)
    await console.expectHeader(/ ray 3\/3 /, RUNNING)
  })

  it('reports a killed head in the header and in a line, in the console and in muster ray watch', async () => {
    const isHead = ({ name, command: line }: LabProcess) =>
      /^(gcs_server|raylet)$/.test(name) || /dashboard\.py|ray-dashboard/.test(line)
    expect(await toldAfterKilling(isHead, 3)).toMatch(LINE)
  })
})
