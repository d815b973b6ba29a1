/**
 * `npm run lab -- up [--count N] [--kernel N] [--slurm N] [--kubernetes]` starts a cluster that runs until `npm run lab -- down`; `npm run lab -- AREA` runs the
 * tests of one area on real hosts and ends with `N passed, N failed`.
 */
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '../../src/base/errors.ts'
import { vitest } from '../support/vitest-run.ts'
import { cgroupOf, removeCgroup } from './cluster/cgroups.ts'
import { killOwners, labsDirectory, livingOwners, sweepLabs } from './cluster/directories.ts'
import { kernelImage } from './cluster/kernel-image.ts'
import { KUBERNETES_SECTION, KubernetesLab, kubernetesLabOptions } from './cluster/kubernetes-lab.ts'
import { kubernetesPrograms } from './cluster/kubernetes-programs.ts'
import { startLab } from './cluster/lab.ts'
import { HEAVY_ENVIRONMENTS, pythonEnvironment } from './cluster/python-environment.ts'
import { rayEnvironment } from './cluster/ray-environment.ts'
import { homesOfSlurm, nodesOf, SLURM_SECTION, SlurmLab, slurmNames } from './cluster/slurm-lab.ts'

/** What `image` builds. */
const IMAGES: Readonly<Record<string, () => Promise<string>>> = {
  kernel: kernelImage,
  ray: rayEnvironment,
  optuna: () => pythonEnvironment('optuna'),
  kubernetes: kubernetesPrograms,
}

const USAGE = `usage: npm run lab -- up [--count N] [--kernel N [--systemd]] [--slurm N] [--kubernetes [--real N]]
       npm run lab -- down
       npm run lab -- image [NAME…]
                                  build what tests need, if missing: ${Object.keys(IMAGES).join(', ')}
       npm run lab -- parts [NAME…]
                                  install what heavy tests need, if missing: ${HEAVY_ENVIRONMENTS.join(', ')}
       npm run lab -- AREA        run the tests of one area: ${areas().join(', ')}
`

type Order = {
  readonly count: number
  readonly kernelCount: number
  readonly hasSystemd: boolean
  readonly slurmCount: number
  readonly hasKubernetes: boolean
  /** Nodes of Kubernetes on which pods really run. */
  readonly realCount: number
}

const [verb = '', ...rest] = process.argv.slice(2)
process.exitCode = await main(verb, rest)

async function main(verb: string, rest: readonly string[]): Promise<number> {
  if (verb === '--help' || (verb !== '' && !areas().includes(verb) && rest.includes('--help'))) {
    process.stdout.write(USAGE)
    return 0
  }
  if (verb === 'up') {
    const order = orderOf(rest)
    if (typeof order !== 'string') return await up(order)
    process.stderr.write(`${order}\n${USAGE}`)
    return 2
  }
  if (verb === 'down') return await down()
  if (verb === 'image') return await buildAll(rest, IMAGES)
  if (verb === 'parts') {
    const builds = HEAVY_ENVIRONMENTS.map((name) => [name, () => pythonEnvironment(name)] as const)
    return await buildAll(rest, Object.fromEntries(builds))
  }
  if (!areas().includes(verb)) {
    process.stderr.write(USAGE)
    return 2
  }
  return await vitest(['--project', 'lab', join('test', 'lab', verb), ...rest], { MUSTER_LAB: 'required' })
}

/** Returns a string if the arguments are wrong: the message. */
function orderOf(args: readonly string[]): Order | string {
  let values: {
    count?: string
    kernel?: string
    systemd?: boolean
    slurm?: string
    kubernetes?: boolean
    real?: string
  }
  try {
    const text = { type: 'string' } as const
    const flag = { type: 'boolean' } as const
    const options = { count: text, kernel: text, systemd: flag, slurm: text, kubernetes: flag, real: text } as const
    values = parseArgs({ args: [...args], options }).values
  } catch (error) {
    return messageOf(error)
  }
  const kernelCount = Number(values.kernel ?? 0)
  const slurmCount = Number(values.slurm ?? 0)
  const realCount = Number(values.real ?? 0)
  const hasKubernetes = values.kubernetes ?? realCount > 0
  const count = Number(values.count ?? (kernelCount + slurmCount > 0 || hasKubernetes ? 0 : 3))
  if (
    !isCount(count, 1000) ||
    !isCount(kernelCount, 20) ||
    !isCount(slurmCount, 50) ||
    !isCount(realCount, 20) ||
    (count + kernelCount + slurmCount === 0 && !hasKubernetes)
  )
    return '--count must be a number up to 1000, --kernel and --real one up to 20 and --slurm one up to 50, and they cannot all be 0'
  return { count, kernelCount, hasSystemd: values.systemd ?? false, slurmCount, hasKubernetes, realCount }
}

async function up({ count, kernelCount, hasSystemd, slurmCount, hasKubernetes, realCount }: Order): Promise<number> {
  const guests = Array.from({ length: kernelCount }, (_, index) => `k${index + 1}`)
  const init = hasSystemd ? 'systemd' : 'service'
  const standing = standingLab()
  if (standing !== undefined) {
    process.stderr.write(`a lab is already running in ${standing}. Stop it first: npm run lab -- down\n`)
    return 1
  }
  const hosts = Array.from({ length: count }, (_, index) => `m${index + 1}`)
  const realNodes = Array.from({ length: realCount }, (_, index) => `real${index + 1}`)
  const kubernetes = hasKubernetes ? await kubernetesLabOptions(realNodes) : { names: [], mounts: {} }
  const lab = await startLab({
    names: [...hosts, ...(slurmCount === 0 ? [] : slurmNames(slurmCount)), ...kubernetes.names],
    mounts: kubernetes.mounts,
    ...(slurmCount === 0 ? {} : { perHost: homesOfSlurm(slurmNames(slurmCount)) }),
    kernelHosts: Object.fromEntries(guests.map((name) => [name, init])),
    isStanding: true,
  })
  writeFileSync(standingFile(), lab.directory)
  if (slurmCount > 0) {
    await new SlurmLab(lab, { nodes: nodesOf(slurmCount) }).start()
    appendFileSync(lab.hostsFile, SLURM_SECTION)
  }
  if (hasKubernetes) {
    await new KubernetesLab(lab).start(realNodes)
    appendFileSync(lab.hostsFile, KUBERNETES_SECTION)
  }
  const inside = lab.command(['env', '-u', 'XDG_CONFIG_HOME', '-u', 'XDG_STATE_HOME', `HOME=${lab.environment.HOME}`])
  process.stdout.write(`${readFileSync(lab.hostsFile, 'utf8')}
# ${lab.hosts.length + lab.kernelHosts.length} hosts run until: npm run lab -- down
# Open the console on them:
${inside.join(' ')} ${process.execPath} --import tsx src/main.ts --hosts ${lab.hostsFile}
# Open a shell that can reach them (then: ssh ${lab.names[0] ?? guests[0]}):
${inside.join(' ')} bash
`)
  lab.detach()
  return 0
}

/** Builds those that are wanted; all of them if none is named. */
async function buildAll(
  wanted: readonly string[],
  builds: Readonly<Record<string, () => Promise<string>>>,
): Promise<number> {
  const unknown = wanted.find((name) => !Object.hasOwn(builds, name))
  if (unknown !== undefined) {
    process.stderr.write(`unknown part: ${unknown}\n${USAGE}`)
    return 2
  }
  for (const [name, build] of Object.entries(builds))
    if (wanted.length === 0 || wanted.includes(name)) process.stdout.write(`${await build()}\n`)
  return 0
}

function isCount(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= most
}

async function down(): Promise<number> {
  const directory = standingLab()
  if (directory === undefined) {
    process.stderr.write('no lab is running\n')
    return 1
  }
  killOwners(directory)
  rmSync(directory, { recursive: true, force: true })
  rmSync(standingFile(), { force: true })
  // Their processes are killed, but may not be gone yet.
  await removeCgroup(cgroupOf(directory))
  return 0
}

/** The directory of the running lab, after removing what dead ones left. */
function standingLab(): string | undefined {
  sweepLabs()
  try {
    const directory = readFileSync(standingFile(), 'utf8')
    return livingOwners(directory).length > 0 ? directory : undefined
  } catch {
    return undefined
  }
}

function standingFile(): string {
  return join(labsDirectory(), 'standing')
}

/** The folders of tests. */
function areas(): string[] {
  const entries = readdirSync(import.meta.dirname, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory() && entry.name !== 'cluster').map(({ name }) => name)
}
