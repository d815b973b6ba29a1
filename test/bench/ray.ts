/**
 * `npm run bench -- ray`: a head and two workers until the head lists all of them as alive, by `muster up ray`, by one `ray start`
 * after the other, and by Ray's own launcher (`ray up`, provider local), in turns on the same hosts of a lab.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Lab, startLab } from '../lab/cluster/lab.ts'
import { RAY_PLACE, RAY_VENV, rayEnvironment } from '../lab/cluster/ray-environment.ts'
import { buildProduct } from './support/build.ts'
import { median } from './support/statistics.ts'

const NAMES = ['m10', 'm8', 'm9'] as const
const [HEAD, ...WORKERS] = ['10.81.0.1', '10.81.0.2', '10.81.0.3'] as const
const OPTIONS = '--object-store-memory=100000000'
const VARIABLES = 'RAY_enable_worker_prestart=0 RAY_prestart_worker_first_driver=0 RAY_DISABLE_DOCKER_CPU_WARNING=1'
const RAY = `${RAY_VENV}/bin/ray`
const HEAD_START = `start --head --port=6333 --node-ip-address=${HEAD} --num-cpus=4 --num-gpus=0 ${OPTIONS} --disable-usage-stats`
const workerStart = (ip: string) =>
  `start --address=${HEAD}:6333 --node-ip-address=${ip} --num-cpus=16 --num-gpus=0 ${OPTIONS}`

/** Until the dashboard lists as many nodes as alive. */
const ALIVE = `${RAY_VENV}/bin/python -c '
import json, time, urllib.request
end = time.time() + 200
while time.time() < end:
    try: nodes = json.load(urllib.request.urlopen("http://127.0.0.1:8265/api/v0/nodes?detail=1", timeout=5))["data"]["result"]["result"]
    except Exception: nodes = []
    if sum(node["state"] == "ALIVE" for node in nodes) >= ${NAMES.length}: raise SystemExit(0)
    time.sleep(0.1)
raise SystemExit(1)'`

const HOSTS = `defaults: { user: root }
hosts:
  m10: { address: ${HEAD}, resources: { cpu: 4, gpu: 0 } }
  m8: { address: ${WORKERS[0]}, resources: { cpu: 16, gpu: 0 } }
  m9: { address: ${WORKERS[1]}, resources: { cpu: 16, gpu: 0 } }
environment: { venv: { path: ${RAY_VENV} } }
ray: { head: m10, workers: "m[8-9]", port: 6333, object_store: 100MB, env: { RAY_enable_worker_prestart: 0, RAY_prestart_worker_first_driver: 0 } }
`

/**
 * What Ray's launcher is told. Its second autoscaler counts the head among the `min_workers`, of which there cannot be more than
 * `worker_ips`: so it is given an address more, at which nobody is, and takes the first two.
 */
const launcherFile = (workers: readonly string[]) => `cluster_name: lab
provider: { type: local, head_ip: ${HEAD}, worker_ips: [${workers.join(', ')}] }
auth: { ssh_user: root, ssh_private_key: /root/.ssh/id_lab }
min_workers: ${workers.length}
max_workers: ${workers.length}
head_start_ray_commands: ["${VARIABLES} ${RAY} ${HEAD_START} --autoscaling-config=~/ray_bootstrap_config.yaml"]
worker_start_ray_commands: ["${VARIABLES} ${RAY} start --address=$RAY_HEAD_IP:6333 --num-cpus=16 --num-gpus=0 ${OPTIONS}"]
`

/** The first as people had to ask for since Ray 2.50, the second as `ray up` does by itself. */
const LAUNCHERS = {
  first: { switch: '0', file: launcherFile(WORKERS) },
  second: { switch: '1', file: launcherFile([...WORKERS, '10.81.0.99']) },
} as const

class Cluster {
  readonly #lab: Lab
  readonly #main: string

  constructor(lab: Lab, main: string) {
    this.#lab = lab
    this.#main = main
    writeFileSync(join(lab.directory, 'ray.yaml'), HOSTS)
  }

  async muster(...args: readonly string[]): Promise<void> {
    const hosts = join(this.#lab.directory, 'ray.yaml')
    const argv = [process.execPath, this.#main, '--hosts', hosts, '--connect-timeout', '40', ...args]
    const { code, stdout, stderr } = await this.#lab.run(argv, { timeoutMs: 400_000 })
    if (code !== 0) throw new Error(`muster ${args.join(' ')}: exit ${code}\n${stdout}${stderr}`)
  }

  async on(name: string, command: string): Promise<void> {
    const { code, stdout, stderr } = await this.#lab.host(name).exec(command)
    if (code !== 0) throw new Error(`${command} on ${name}: exit ${code}\n${stdout}${stderr}`)
  }

  async end(): Promise<void> {
    await this.muster('down', 'ray', '--yes')
    for (const name of NAMES) await this.on(name, 'rm -rf /tmp/ray; ! pgrep -x "raylet|gcs_server"')
  }

  /** Each alone, on hosts that do nothing else: seconds of the head's and of the workers'. */
  async byHand(): Promise<readonly [number, number]> {
    const start = async (name: string, words: string) =>
      await seconds(async () => await this.on(name, `${VARIABLES} ${RAY} ${words}`))
    const head = await start('m10', HEAD_START)
    const workers = [await start('m8', workerStart(WORKERS[0])), await start('m9', workerStart(WORKERS[1]))]
    await this.on('m10', ALIVE)
    return [head, Math.max(...workers)]
  }

  /** What Ray's own launcher started: its monitor on the head would start nodes again, so that the head ends first. */
  async endLaunched(): Promise<void> {
    for (const name of NAMES) await this.on(name, `${RAY} stop --force > /dev/null 2>&1; rm -rf /tmp/ray`)
  }

  async launcher({ switch: second, file }: (typeof LAUNCHERS)[keyof typeof LAUNCHERS]): Promise<number> {
    const key = readFileSync(join(this.#lab.directory, 'home', '.ssh', 'id_ed25519'), 'utf8')
    await this.on(
      'm10',
      `umask 077; cat > /root/.ssh/id_lab << 'KEY'\n${key}KEY\ncat > /root/up.yaml << 'YAML'\n${file}YAML`,
    )
    return await seconds(async () => {
      await this.on(
        'm10',
        `PATH=${RAY_VENV}/bin:$PATH RAY_UP_enable_autoscaler_v2=${second} ${RAY} up --yes --no-config-cache --disable-usage-stats /root/up.yaml < /dev/null`,
      )
      await this.on('m10', ALIVE)
    })
  }
}

async function seconds(what: () => Promise<void>): Promise<number> {
  const beginMs = performance.now()
  await what()
  return (performance.now() - beginMs) / 1000
}

type RayOptions = {
  readonly rounds: number
  /** `muster`, `launcher` */
  readonly parts: readonly string[]
  readonly root: string
}

export async function benchRay({ rounds, parts, root }: RayOptions): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-ray-'))
  try {
    const main = join(await buildProduct(directory, root), 'dist', 'main.js')
    await using lab = await startLab({ names: [...NAMES], mounts: { [RAY_PLACE]: await rayEnvironment() } })
    return format(rounds, await measure(new Cluster(lab, main), rounds, parts))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

type Row = { readonly head: number; readonly worker: number } & Partial<
  Record<'muster' | keyof typeof LAUNCHERS, number>
>

async function measure(cluster: Cluster, rounds: number, parts: readonly string[]): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (let round = 0; round < rounds; round += 1) {
    const [head, worker] = await cluster.byHand()
    await cluster.end()
    const row: Record<string, number> = {}
    if (parts.includes('muster')) {
      row.muster = await seconds(async () => await cluster.muster('up', 'ray', '--yes'))
      await cluster.end()
    }
    for (const [name, launcher] of parts.includes('launcher') ? Object.entries(LAUNCHERS) : []) {
      row[name] = await cluster.launcher(launcher)
      await cluster.endLaunched()
    }
    rows.push({ head, worker, ...row })
  }
  return rows
}

function format(rounds: number, rows: readonly Row[]): string {
  const lines = [
    ['`ray start --head` alone', 'head'],
    ['the slowest `ray start` of a worker alone', 'worker'],
    ['`muster up ray --yes`, all nodes seen as alive', 'muster'],
    ["`ray up`, Ray's first autoscaler, all nodes alive", 'first'],
    ["`ray up`, Ray's second autoscaler, all nodes alive", 'second'],
  ] as const
  const measured = lines.flatMap(([what, key]): string[] => {
    const values = rows.flatMap((row) => row[key] ?? [])
    return values.length === 0 ? [] : [`| ${what} | ${median(values).toFixed(1)} |`]
  })
  const ratios = rows.flatMap(({ head, worker, muster }) => (muster === undefined ? [] : muster / (head + worker)))
  return [
    `A head and two workers, medians of ${rounds} rounds in turns.`,
    '',
    '| what | s |',
    '| --- | --- |',
    ...measured,
    ...(ratios.length === 0
      ? []
      : [
          `| \`muster up ray\` ÷ (head + slowest worker) | ${median(ratios).toFixed(2)} (${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}) |`,
        ]),
  ].join('\n')
}
