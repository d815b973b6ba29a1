/**
 * `muster up`, again, and `status` on OpenSSH hosts in namespaces (trust and a conda prefix) and on User-Mode Linux guests (NFS
 * between real kernels), and `status` while the server of the mounts is gone (root).
 */
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Lab, startLab } from '../../lab/cluster/lab.ts'
import { buildProduct } from '../support/build.ts'
import { formatNumber, formatTable, median, type Row } from '../support/statistics.ts'

export type BringUpBenchOptions = {
  readonly hosts: number
  readonly rounds: number
  readonly root: string
  readonly interrupted: Promise<never>
  log(line: string): void
}

const LIMIT_MS = 600_000
const GUESTS = { k1: 'service', k2: 'service', k3: 'service' } as const
const PREFIX = '~/miniforge3/envs/lab'
const DECLARED = (hosts: number) => `trust: { mesh: "m[1-${hosts}]" }
environment: { conda: { name: lab, from: m1, hosts: "m[1-${hosts}]" } }
nfs:
  - { server: k1, path: /srv/share, options: "rw,sync,no_root_squash,no_subtree_check", clients: "k[2-3]", mount: /mnt/share }
`
/** What conda leaves of an environment with so many packages. */
const MAKE = `mkdir -p ${PREFIX}/conda-meta ${PREFIX}/bin && cd ${PREFIX} && : > conda-meta/history
echo '{}' > conda-meta/python-3.11.7-h955ad1f_0.json; ln -s "$(command -v python3)" bin/python
for n in $(seq 200); do echo '{}' > conda-meta/package$n-1.$n.0-py311h64a7726_0.json; done`

export async function benchBringUp(options: BringUpBenchOptions): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-bring-up-'))
  try {
    const main = join(await buildProduct(directory, options.root), 'dist', 'main.js')
    const lab = await startLab({ count: options.hosts, kernelHosts: GUESTS })
    try {
      return await Promise.race([measure(lab, main, options), options.interrupted])
    } finally {
      await lab.stop()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function measure(lab: Lab, main: string, options: BringUpBenchOptions): Promise<string> {
  const { hosts, rounds, log } = options
  appendFileSync(lab.hostsFile, DECLARED(hosts))
  await lab.host('m1').exec(MAKE)
  const once = async (codes: readonly number[], ...args: readonly string[]): Promise<number> => {
    const sinceMs = performance.now()
    const argv = [process.execPath, main, '--hosts', lab.hostsFile, ...args]
    const { code, stdout, stderr } = await lab.run(argv, { timeoutMs: LIMIT_MS })
    const seconds = (performance.now() - sinceMs) / 1000
    if (!codes.includes(code)) throw new Error(`${args.join(' ')}: exit ${code}\n${stdout}${stderr}`)
    log(`${args.join(' ')}: ${formatNumber(seconds)} s`)
    return seconds
  }
  const several = async (codes: readonly number[], ...args: readonly string[]): Promise<number> => {
    const times: number[] = []
    for (let round = 0; round < rounds; round += 1) times.push(await once(codes, ...args))
    return median(times)
  }
  /** Bare logins side by side, of which nobody needs fewer. */
  const logins = async (...names: readonly string[]): Promise<number> => {
    const sinceMs = performance.now()
    const ended = await Promise.all(names.map((name) => lab.run(['ssh', name, 'true'], { timeoutMs: LIMIT_MS })))
    if (ended.some(({ code }) => code !== 0)) throw new Error(`ssh: ${ended.map(({ stderr }) => stderr).join('')}`)
    return (performance.now() - sinceMs) / 1000
  }
  const rows: Row[] = []
  const add = (what: string, seconds: number, limit?: number, peer?: number): void => {
    const goal = limit === undefined ? {} : { goal: `≤ ${limit}`, isReached: seconds <= limit }
    rows.push({ what, ours: formatNumber(seconds), peer: peer === undefined ? '' : formatNumber(peer), ...goal })
  }
  const namespaces = `${hosts} hosts, trust and a conda prefix of 200 packages`
  add(`${namespaces}: up on untouched hosts, s`, await once([0], 'up', 'trust', 'env', '--yes'))
  add(
    `${namespaces}: a plan with nothing to do, s`,
    await several([0], 'up', 'trust', 'env', '--dry-run'),
    3,
    await logins(...lab.names),
  )
  add(`${namespaces}: status, with a login between every pair, s`, await several([0], 'status', 'trust', 'env'))
  const guestNames = lab.kernelHosts.map(({ name }) => name)
  const guests = '3 User-Mode Linux guests, NFS'
  add(`${guests}: up on untouched hosts, s`, await once([0], 'up', 'nfs', '--yes'))
  add(
    `${guests}: a plan with nothing to do, s`,
    await several([0], 'up', 'nfs', '--dry-run'),
    3,
    await logins(...guestNames),
  )
  add(`${guests}: status, s`, await several([0], 'status', 'nfs'))
  add(
    `all ${hosts + 3} hosts: a plan with nothing to do, s`,
    await several([0], 'up', 'trust', 'env', 'nfs', '--dry-run'),
    3,
    await logins(...lab.names, ...guestNames),
  )
  await lab.kernelHost('k1').exec('sync')
  await lab.kernelHost('k1').crash()
  add(`${guests}: status while the server is down, s`, await several([1], 'status', 'nfs', '--on', 'k[2-3]'), 5)
  return formatTable(rows)
}
