/** `npm run bench -- env`: how long `muster env check` takes, until it has ended, on hosts with environments of many packages. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLab } from '../lab/cluster/lab.ts'
import { buildProduct } from './support/build.ts'
import { formatPair, formatTable, median } from './support/statistics.ts'

export type EnvBenchOptions = {
  readonly rounds: number
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

const HOSTS = 9
const PACKAGES = 400
const GOAL_MS = 2_000

/** Where every tenth package has another version on every third host. */
const make = (number: number) => `mkdir -p ~/lab/bin ~/lab/lib/python3.11/site-packages && cd ~/lab && : > pyvenv.cfg
ln -s /usr/bin/python3 bin/python && cd lib/python3.11/site-packages
i=0; while [ $i -lt ${PACKAGES} ]; do
  d=package_$i-1.$((i % 10 == 0 && ${number} % 3 == 0)).0.dist-info
  mkdir $d && echo pip > $d/INSTALLER && : > $d/RECORD; i=$((i + 1))
done`

export async function benchEnv({ rounds, root, interrupted, log }: EnvBenchOptions): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-env-'))
  try {
    const main = join(await buildProduct(directory, root), 'dist', 'main.js')
    await using lab = await startLab({ count: HOSTS })
    const work = async () => {
      const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
      const file = join(lab.directory, 'env.yaml')
      writeFileSync(file, `defaults: { user: root }\nhosts:\n${hosts}environment: { venv: { path: ~/lab } }\n`)
      await Promise.all(lab.hosts.map(async (host, index) => await host.exec(make(index))))
      const times: number[] = []
      for (let round = 0; round < rounds; round += 1) {
        const since = performance.now()
        const { stdout } = await lab.run([process.execPath, main, '--hosts', file, 'env', 'check'])
        times.push(performance.now() - since)
        if (!stdout.includes(`${HOSTS} hosts compared with m1: `)) throw new Error(stdout)
        log(`${times.at(-1)?.toFixed(0)} ms`)
      }
      return formatTable([
        {
          what: `env check, ${HOSTS} hosts with ${PACKAGES} packages each, median / p99 of ${rounds}, ms`,
          ours: formatPair(times),
          peer: '–',
          goal: String(GOAL_MS),
          isReached: median(times) <= GOAL_MS,
        },
      ])
    }
    return await Promise.race([work(), interrupted])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
