/** The Slurm cluster that hosts.yaml declares: its hosts with their roles and resources, and its files. Pure. */
import { isIPv4 } from 'node:net'
import { defined } from '../../base/defined.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Declared } from '../kernel/area.ts'
import { MADE_BY_MUSTER } from '../kernel/files.ts'
import type { Gres } from './queue.ts'
import { type SlurmSpec, section } from './section.ts'

export type SlurmHost = {
  readonly host: string
  /** Where the others reach it; undefined: hosts.yaml does not say. */
  readonly address?: string
  readonly isController: boolean
  readonly isNode: boolean
  /** What jobs may use; undefined: hosts.yaml does not say. */
  readonly cpus?: number
  readonly memoryMib?: number
  readonly gpus: number
}

export type SlurmWanted = {
  readonly spec: SlurmSpec
  /** The controller first; only the login host where the cluster is somebody else's. */
  readonly hosts: readonly SlurmHost[]
}

/** Of the cluster that Muster sets up. */
export const PLACE = '/var/lib/muster-slurm'
export const LOGS = `${PLACE}/log`
export const FILES = {
  slurm: '/etc/slurm/slurm.conf',
  gres: '/etc/slurm/gres.conf',
  cgroup: '/etc/slurm/cgroup.conf',
} as const
export type FileName = keyof typeof FILES
/** On the controller, the slurm.conf with which slurmctld last came up: until it does so again, that is what its jobs need. */
export const STARTED = `${PLACE}/started.conf`

/** The ports of slurmctld and slurmd. */
export const PORTS = { slurmctld: 6817, slurmd: 6818 } as const
export const DEFAULT_PARTITION = 'main'
const MIB = 2 ** 20

export function wantedSlurm({ inventory, endpoints }: Declared): SlurmWanted | undefined {
  const spec = sectionOf(inventory, section)
  if (spec === undefined) return undefined
  const { cluster, login } = spec
  if (cluster === undefined) return { spec, hosts: [{ host: login, isController: false, isNode: false, gpus: 0 }] }
  const { controller, nodes, nodeIps } = cluster
  const names = [...new Set([controller, ...nodes, login])]
  const byName = new Map(inventory.hosts.map((host) => [host.name, host]))
  const addressOf = (host: string): string | undefined => {
    if (nodeIps[host] !== undefined) return nodeIps[host]
    if (names.length === 1) return '127.0.0.1'
    const endpoint = endpoints.get(host)
    if (endpoint === undefined || endpoint.transport === 'local') return undefined
    const { address } = endpoint
    const isName = /^[A-Za-z0-9][A-Za-z0-9.-]*$/.test(address) && address !== 'localhost'
    return (isIPv4(address) ? !address.startsWith('127.') : isName) ? address : undefined
  }
  return {
    spec,
    hosts: names.map((host) => {
      const { cpu = 0, memoryBytes = 0, gpu = 0 } = byName.get(host)?.resources ?? {}
      const isNode = nodes.includes(host)
      return {
        host,
        isController: host === controller,
        isNode,
        gpus: isNode ? gpu : 0,
        ...defined({
          address: addressOf(host),
          cpus: Math.floor(cpu) || undefined,
          memoryMib: Math.floor(memoryBytes / MIB) || undefined,
        }),
      }
    }),
  }
}

export const hostOf = ({ hosts }: SlurmWanted, name: string): SlurmHost | undefined =>
  hosts.find(({ host }) => host === name)

/** As Linux and slurmd take it: what NodeName must be. */
export const isNodeName = (name: string): boolean => /^[A-Za-z0-9][\w-]{0,62}$/.test(name)

export function gresTypes({ spec, hosts }: SlurmWanted): readonly Gres[] {
  if (!hosts.some(({ gpus }) => gpus > 0)) return []
  return spec.shardsPerGpu === undefined ? ['gpu'] : ['gpu', 'shard']
}

/**
 * slurm.conf, the same on all hosts: Slurm compares its text. Jobs without `--mem` get DefMemPerCPU, or each would get the whole
 * memory of its node. Cores and memory are what hosts.yaml declares, whatever the machine has. slurm.conf(5)
 */
export function slurmConf({ spec, hosts }: SlurmWanted): string {
  const { coreMemoryBytes, partition = DEFAULT_PARTITION, shardsPerGpu } = spec
  const nodes = hosts.filter(({ isNode }) => isNode)
  const gres = gresTypes({ spec, hosts })
  const controllers = hosts.filter(({ isController }) => isController)
  const lines = [
    MADE_BY_MUSTER,
    'ClusterName=muster',
    ...controllers.map(({ host, address }) => `SlurmctldHost=${host}(${address})`),
    `SlurmctldPort=${PORTS.slurmctld}`,
    `SlurmdPort=${PORTS.slurmd}`,
    'AuthType=auth/munge',
    'SlurmUser=slurm',
    `StateSaveLocation=${PLACE}/state`,
    `SlurmdSpoolDir=${PLACE}/spool`,
    'SlurmctldPidFile=/run/slurmctld.pid',
    'SlurmdPidFile=/run/slurmd.pid',
    `SlurmctldLogFile=${LOGS}/slurmctld.log`,
    `SlurmdLogFile=${LOGS}/slurmd.log`,
    'ProctrackType=proctrack/linuxproc',
    'TaskPlugin=task/none',
    'JobAcctGatherType=jobacct_gather/none',
    'MpiDefault=none',
    'SelectType=select/cons_tres',
    'SelectTypeParameters=CR_Core_Memory',
    'SchedulerType=sched/backfill',
    'ReturnToService=2',
    'SlurmctldTimeout=60',
    'SlurmdTimeout=60',
    'JobCompType=jobcomp/filetxt',
    `JobCompLoc=${LOGS}/jobs.log`,
    'SlurmdParameters=config_overrides',
    ...(coreMemoryBytes < MIB ? [] : [`DefMemPerCPU=${Math.floor(coreMemoryBytes / MIB)}`]),
    ...(gres.length === 0 ? [] : [`GresTypes=${gres.join()}`]),
    ...nodes.map(({ host, address, cpus, memoryMib, gpus }) => {
      const shards = shardsPerGpu === undefined ? '' : `,shard:${gpus * shardsPerGpu}`
      const own = gpus === 0 ? '' : ` Gres=gpu:${gpus}${shards}`
      return `NodeName=${host} NodeAddr=${address} CPUs=${cpus} RealMemory=${memoryMib}${own}`
    }),
    `PartitionName=${partition} Nodes=${nodes.map(({ host }) => host).join()} Default=YES MaxTime=INFINITE State=UP`,
  ]
  return `${lines.join('\n')}\n`
}

/** A command that prints the host of slurmctld that the files after it name. */
export const CONTROLLER_OF = String.raw`sed -n 's/^SlurmctldHost=\([^(]*\).*/\1/p'`

/** Variables of the login must not change the form of answers, nor name another cluster. */
export const UNSET_VARIABLES = String.raw`unset $(env | sed -nE 's/^((SLURM|SINFO|SQUEUE|SCANCEL|SRUN)_[A-Z_]*)=.*/\1/p')`

export const controllerIn = (text: string): string | undefined => /^SlurmctldHost=([^(\n]+)/m.exec(text)?.[1]

export const partitionIn = (text: string): string | undefined => /^PartitionName=(\S+)/m.exec(text)?.[1]

export const nodesIn = (text: string): readonly string[] =>
  [...text.matchAll(/^NodeName=([\w-]{1,63}) /gm)].map(([, name = '']) => name)

/** What in a slurm.conf decides whether the jobs on a host survive when it is replaced. */
export function groundIn(text: string, host: string): string {
  const node = text.split('\n').find((line) => line.startsWith(`NodeName=${host} `)) ?? ''
  const patterns = [/^SlurmctldHost=[^(\n]*/m, /^PartitionName=\S*/m]
  const own = [/ CPUs=\d*/.exec(node)?.[0], / Gres=gpu:\d*/.exec(node)?.[0]]
  return [...patterns.map((pattern) => pattern.exec(text)?.[0]), ...own].join()
}

/** The device file of each GPU, the same on all hosts. gres.conf(5) */
export function gresConf({ spec: { shardsPerGpu }, hosts }: SlurmWanted): string {
  const lines = hosts.flatMap(({ host, gpus }) =>
    gpus === 0
      ? []
      : [
          `NodeName=${host} Name=gpu File=${gpus === 1 ? '/dev/nvidia0' : `/dev/nvidia[0-${gpus - 1}]`}`,
          ...(shardsPerGpu === undefined ? [] : [`NodeName=${host} Name=shard Count=${gpus * shardsPerGpu}`]),
        ],
  )
  return `${[MADE_BY_MUSTER, 'AutoDetect=off', ...lines].join('\n')}\n`
}

/** slurmd loads a plugin for cgroups, whatever it uses them for. Of the host itself; Slurm does not compare it. cgroup.conf(5) */
export function cgroupConf(fileSystem: string, hasSystemd: boolean): string {
  const lines =
    fileSystem !== 'cgroup2fs'
      ? ['CgroupPlugin=cgroup/v1']
      : hasSystemd
        ? ['CgroupPlugin=cgroup/v2']
        : ['CgroupPlugin=cgroup/v2', 'IgnoreSystemd=yes']
  return `${[MADE_BY_MUSTER, ...lines].join('\n')}\n`
}
