/**
 * Slurm on hosts of a lab: munged on all of them, slurmctld on the controller, which people log in to, and slurmd on the nodes. All
 * see one home directory. Files are in each host's own /run, so they end with it.
 */
import { waitUntil } from '../../support/wait-until.ts'
import type { LabHost } from './host.ts'
import { type Lab, type LabOptions, startLab } from './lab.ts'
import { signalProcess } from './processes.ts'

/** For `requirement`. */
export const SLURM_PROGRAMS = ['slurmctld', 'slurmd', 'sbatch', 'munged', 'flock'] as const

/** `name`: undefined: n1, n2 … */
export type SlurmNode = {
  readonly cpus: number
  readonly memoryMb: number
  readonly gpus: number
  readonly name?: string
}

export type SlurmOptions = {
  /** Of n1, n2 …; by default two with 2 GPUs, and one with more cores and none. */
  readonly nodes?: readonly SlurmNode[]
  /** How long the controller remembers jobs that ended; in seconds. */
  readonly minJobAgeS?: number
  /** Further lines of slurm.conf. */
  readonly lines?: readonly string[]
}

const SMALL: SlurmNode = { cpus: 4, memoryMb: 8000, gpus: 2 }
const LARGE: SlurmNode = { cpus: 8, memoryMb: 16_000, gpus: 0 }
const PLACE = '/run/slurm'
const CONTROLLER = 'c1'
const PATIENCE_MS = 60_000

export class SlurmLab {
  readonly controller: LabHost
  readonly nodes: readonly LabHost[]
  readonly #configuration: string
  readonly #gpus: readonly number[]

  constructor(lab: Lab, { nodes = nodesOf(3), minJobAgeS = 300, lines = [] }: SlurmOptions = {}) {
    this.controller = lab.host(CONTROLLER)
    this.nodes = nodes.map((node, index) => lab.host(nodeName(node, index)))
    this.#gpus = nodes.map(({ gpus }) => gpus)
    this.#configuration = configurationOf(this.controller, this.nodes, nodes, minJobAgeS, lines)
  }

  /** Resolves when all nodes are idle. */
  async start(): Promise<void> {
    const { controller, nodes } = this
    await Promise.all([controller, ...nodes].map((host, index) => this.#prepare(host, this.#gpus[index - 1] ?? 0)))
    await mustExec(controller, 'slurmctld')
    await Promise.all(nodes.map((node) => this.startNode(node)))
    await this.#allIdle()
  }

  async startNode(node: LabHost): Promise<void> {
    await mustExec(node, 'slurmd')
  }

  /** It saves its state. */
  async stopController(): Promise<void> {
    const running = () => this.controller.processes().filter(({ name }) => name === 'slurmctld')
    for (const { pid } of running()) signalProcess(pid, 'SIGTERM')
    await waitUntil(() => running().length === 0, 'the end of slurmctld')
  }

  /** What it prints; an error where it fails. */
  async run(command: string): Promise<string> {
    return await mustExec(this.controller, command)
  }

  async #allIdle(): Promise<void> {
    const { controller, nodes } = this
    await waitUntil(
      async () => {
        const { stdout } = await controller.exec("sinfo -h -N -O 'NodeHost:.64,StateLong:.24'")
        return stdout.split('\n').filter((line) => / idle$/.test(line)).length === nodes.length
      },
      'all nodes of Slurm to be idle',
      PATIENCE_MS,
    )
  }

  async #prepare(host: LabHost, gpus: number): Promise<void> {
    const devices = Array.from({ length: gpus }, (_, index) => `${PLACE}/gpu${index}`)
    // The key only has to be long and the same everywhere.
    await mustExec(
      host,
      `umask 077
mkdir -p ${PLACE}/state ${PLACE}/spool /run/munge && chmod 755 ${PLACE} /run/munge
cat > ${PLACE}/slurm.conf << 'CONFIGURATION'
${this.#configuration}CONFIGURATION
cat > ${PLACE}/gres.conf << 'CONFIGURATION'
AutoDetect=off
${devices.map((file) => `Name=gpu Type=a100 File=${file}\n`).join('')}CONFIGURATION
echo CgroupPlugin=cgroup/v1 > ${PLACE}/cgroup.conf
chmod 644 ${PLACE}/*.conf
${devices.map((file) => `mknod -m 666 ${file} c 1 3\n`).join('')}mount --bind ${PLACE} /etc/slurm
printf '%064d' 7 > /run/munge/key
munged --key-file=/run/munge/key --pid-file=/run/munge/munged.pid --log-file=/run/munge/munged.log --seed-file=/run/munge/seed`,
    )
  }
}

export const nodesOf = (count: number): readonly SlurmNode[] =>
  Array.from({ length: count }, (_, index) => (index === count - 1 ? LARGE : SMALL))

export const slurmNames = (count: number): readonly string[] => [CONTROLLER, ...nodesOf(count).map(nodeName)]

/** For `startLab`: nodes have the home directory of the controller; other hosts of the lab have their own. */
export const homesOfSlurm = (nodes: readonly string[]) => (name: string) =>
  name !== CONTROLLER && nodes.includes(name) ? { homeOf: CONTROLLER } : {}

/** For hosts.yaml. */
export const SLURM_SECTION = `slurm: { login: ${CONTROLLER}, partition: main }\n`

export async function slurmLab(
  options: SlurmOptions = {},
  labOptions: LabOptions = {},
): Promise<{ readonly lab: Lab; readonly slurm: SlurmLab }> {
  const names = (options.nodes ?? nodesOf(3)).map(nodeName)
  const lab = await startLab({ names: [CONTROLLER, ...names], perHost: homesOfSlurm(names), ...labOptions })
  try {
    const slurm = new SlurmLab(lab, options)
    await slurm.start()
    return { lab, slurm }
  } catch (error) {
    await lab.stop()
    throw error
  }
}

const nodeName = ({ name }: SlurmNode, index: number): string => name ?? `n${index + 1}`

function configurationOf(
  controller: LabHost,
  hosts: readonly LabHost[],
  nodes: readonly SlurmNode[],
  minJobAgeS: number,
  lines: readonly string[],
): string {
  const declared = hosts.map(({ name, address }, index) => {
    const { cpus, memoryMb, gpus } = nodes[index] as SlurmNode
    const gres = gpus === 0 ? '' : ` Gres=gpu:a100:${gpus}`
    return `NodeName=${name} NodeAddr=${address} CPUs=${cpus} RealMemory=${memoryMb}${gres}`
  })
  return `ClusterName=lab
SlurmctldHost=${controller.name}(${controller.address})
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=${PLACE}/state
SlurmdSpoolDir=${PLACE}/spool
SlurmctldPidFile=${PLACE}/slurmctld.pid
SlurmdPidFile=${PLACE}/slurmd.pid
SlurmctldLogFile=${PLACE}/slurmctld.log
SlurmdLogFile=${PLACE}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=100000
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=20
InactiveLimit=0
KillWait=2
MinJobAge=${minJobAgeS}
SlurmdParameters=config_overrides
GresTypes=gpu
${lines.map((line) => `${line}\n`).join('')}${declared.join('\n')}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`
}

async function mustExec(host: LabHost, command: string): Promise<string> {
  const { code, stdout, stderr } = await host.exec(command)
  if (code !== 0) throw new Error(`${command} on ${host.name}: exit ${code}\n${stdout}${stderr}`)
  return stdout
}
