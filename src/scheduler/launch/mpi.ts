/**
 * MPI without keys between the hosts: what mpirun would start on the other hosts by ssh is started by their bundles, so all ranks are
 * in the bundles' cgroups and end with them (open-mpi.ts, mpich.ts).
 */

import { MusterError } from '../../base/errors.ts'
import { pythonWords } from '../../base/python-words.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type ResourceRequest, WHOLE_MILLI } from '../model/resources.ts'
import { askPorts, differsIn, formatQuestion, nextQuestion } from './asking.ts'
import { FAIL } from './in-gang.ts'
import {
  type GangOnEngine,
  type HandLine,
  HOST_ROLE,
  type LaunchedGang,
  type Launcher,
  type LaunchOption,
  type LaunchShape,
  type LaunchSpec,
  type LaunchStep,
  ORDER,
} from './launcher.ts'
import { mpichByHand, mpichStep } from './mpich.ts'
import { askInet, innerGang, NETWORK_OPTIONS } from './networks.ts'
import { type MpiRun, openMpiByHand, openMpiStep } from './open-mpi.ts'
import { beginOf } from './torchrun.ts'

const KINDS = ['openmpi', 'mpich', 'intel']
const HAS_MPI4PY = `python3 ${pythonWords('import mpi4py')} 2>/dev/null`

/** Of both launchers that start ranks by MPI. */
export const MPI_OPTIONS: readonly LaunchOption[] = [
  {
    flags: 'slots <n>',
    summary: 'start N ranks in each bundle (default: its GPUs, else its cores)',
    values: /^[1-9]\d{0,3}$/,
  },
  {
    flags: 'ranks <n>',
    summary: 'start N ranks, each with --cpu, --gpu and --memory, in the bundles, or --per-host of them on each host',
    values: /^[1-9]\d{0,4}$/,
  },
  {
    flags: 'mpi <name>',
    summary: `use ${KINDS.join(', ')} (default: that of mpirun)`,
    values: /^(openmpi|mpich|intel)$/,
  },
  { flags: 'transport <name>', summary: 'tcp (default) or rdma', values: /^(tcp|rdma)$/ },
  ...NETWORK_OPTIONS,
  {
    flags: 'bind <name>',
    summary: 'bind each rank to a core or numa node (default: none)',
    values: /^(none|core|numa)$/,
  },
  {
    flags: 'export <name>',
    summary: "give all ranks this variable of the first host's environment",
    values: /^[A-Za-z_][A-Za-z0-9_]{0,100}$/,
    isRepeatable: true,
  },
]

export const mpi: Launcher = {
  name: 'mpi',
  summary: 'start MPI ranks with mpirun, without keys between the hosts',
  options: [
    ...MPI_OPTIONS,
    { flags: 'as-is', summary: 'do not add -m mpi4py, which ends all ranks when one raises' },
    ORDER,
  ],
  shape: mpiShape,
  // Of coll_base_allreduce.c.
  ringDirection: () => 'next',
  next: (gang, bundle) => {
    const inner = innerGang(gang)
    if (typeof inner === 'string') return { kind: 'refuse', reason: inner }
    const question = (index: number) => formatQuestion(...askMpi(gang, index))
    return nextQuestion(inner.gang, bundle, question) ?? mpiStep(gang, bundle)
  },
  inGang: mpiInGang,
  startsOthers: true,
  refusesInGang: ['network', 'interface', 'export', 'order'],
  byHand: mpiByHand,
}

/** @throws MusterError 'usage' */
export function mpiShape(
  options: LaunchSpec['options'],
  bundles: number,
  request: ResourceRequest,
  perHost?: number,
): LaunchShape {
  const base = { leaders: [0], isOnePerHost: true }
  const { ranks, slots } = options
  if (ranks === undefined) {
    const own =
      slots === undefined ? request.gpuCount || Math.max(1, Math.floor(request.cpuMilli / 1000)) : Number(slots)
    return { ...base, roles: [{ name: HOST_ROLE, count: bundles, request }], ranks: own }
  }
  const fail = (message: string, hint?: string) => new MusterError('usage', message, hint === undefined ? {} : { hint })
  if (slots !== undefined) throw fail('--ranks and --slots cannot be used together')
  if (request.gpuCount > 0 && request.gpuMilli < WHOLE_MILLI)
    throw fail('--ranks needs whole GPUs', 'Use --slots for ranks that share the GPUs of their bundle.')
  if (perHost !== undefined && bundles > 1)
    throw fail('--ranks with --per-host decides the number of bundles', 'Leave out --bundles.')
  const total = Number(ranks)
  if (total < bundles) throw fail(`--ranks ${ranks} is fewer than the ${bundles} bundles`)
  const sizes =
    perHost === undefined
      ? Array.from({ length: bundles }, (_, index) => Math.floor((total + bundles - 1 - index) / bundles))
      : Array.from({ length: Math.ceil(total / perHost) }, (_, index) => Math.min(perHost, total - index * perHost))
  const roles = [...Map.groupBy(sizes, (size) => size)].map(([size, alike]) => ({
    name: HOST_ROLE,
    count: alike.length,
    request: {
      ...request,
      cpuMilli: request.cpuMilli * size,
      memoryBytes: request.memoryBytes * size,
      gpuCount: request.gpuCount * size,
    },
    ranks: size,
  }))
  return { ...base, roles, ranks: Math.max(...sizes) }
}

/** What each host is asked: parts of a question. */
export function askMpi(
  { spec, bundles, id }: Pick<LaunchedGang, 'spec' | 'bundles' | 'id'>,
  index: number,
): readonly string[] {
  const { mpi: kind, transport } = spec.options
  return [
    // What it is called differs where several are installed.
    `m=$(mpirun --version 2>&1 | head -n 3 | tr '\\n' ' ' | head -c 300) p=mpirun k=${kind ?? ''}`,
    `case $m in *'Open MPI'*) o=openmpi;; *HYDRA*) o=mpich;; *'Intel(R) MPI'*) o=intel;; *) o=; command -v mpirun >/dev/null || ! command -v mpiexec.hydra >/dev/null || o=mpich;; esac`,
    '[ -n "$k" ] || k=$o; [ -n "$k" ] || { command -v mpirun >/dev/null && refuse "mpirun is neither Open MPI nor MPICH" || refuse "mpirun is not in PATH"; }',
    'need() { for n; do command -v "$n" >/dev/null || refuse "$n is not in PATH"; done; }',
    `case $k in
openmpi) [ "$o" = openmpi ] || p=mpirun.openmpi; need $p orted ompi_info; v=$(ompi_info --version 2>&1 | head -n 1 | head -c 200);;
mpich) need mpiexec.hydra hydra_pmi_proxy; v="MPICH $(mpiexec.hydra --version 2>&1 | sed -n 's/^ *Version: *//p' | head -n 1 | head -c 100)";;
intel) need mpirun; v=$(mpirun --version 2>&1 | head -n 1 | head -c 200);;
esac`,
    'tell mpi "$k"; tell mpirun "$p"; tell version "$v"',
    `if ${HAS_MPI4PY}; then tell mpi4py yes; else tell mpi4py no; fi`,
    askInet(spec.options, bundles[index]?.address ?? ''),
    ...(transport === 'rdma' ? [ASK_RDMA] : []),
    askPorts(1, spec.ports, beginOf({ id })),
  ]
}

const ASK_RDMA = `grep -qs ACTIVE /sys/class/infiniband/*/ports/*/state || refuse ${shellQuote('no active InfiniBand or RoCE port in /sys/class/infiniband; use --transport tcp')}
l=$(ulimit -l); [ "$l" = unlimited ] || refuse "RDMA needs locked memory without a limit, which is $l KiB; set memlock to unlimited in /etc/security/limits.conf"`

/** What a bundle of a gang that has answered does. */
export function mpiStep(gang: LaunchedGang, bundle: number): LaunchStep {
  const inner = innerGang(gang)
  const ipv6 = gang.bundles.find(({ address }) => address.includes(':'))
  if (typeof inner === 'string') return { kind: 'refuse', reason: inner }
  if (ipv6 !== undefined && inner.gang === gang)
    return {
      kind: 'refuse',
      reason: `MPI needs IPv4 between the hosts, and ${ipv6.host} has the address ${ipv6.address}; use --network`,
    }
  const difference = differsIn(gang, 'version', 'the version of MPI')
  if (difference !== undefined) return { kind: 'refuse', reason: difference }
  const kind = kindOf(gang)
  const run = runOf(inner.gang, inner.network)
  const step = kind === 'openmpi' ? openMpiStep(run, bundle) : kind === 'mpich' ? mpichStep(run, bundle) : undefined
  if (step === undefined)
    return {
      kind: 'refuse',
      reason: `${gang.bundles[0]?.host} has Intel MPI, which Muster cannot start; use Open MPI or MPICH (--mpi)`,
    }
  return step.kind === 'start' ? { ...step, environment: { ...rdmaVariables(gang), ...step.environment } } : step
}

export function mpiByHand(gang: LaunchedGang): readonly HandLine[] {
  const inner = innerGang(gang)
  const { gang: own, network = gang.spec.options.network } = typeof inner === 'string' ? { gang } : inner
  const run = runOf({ ...own, environment: { ...rdmaVariables(gang), ...own.environment } }, network)
  return [
    {
      host: gang.bundles[0]?.host ?? '',
      command: kindOf(gang) === 'mpich' ? mpichByHand(run) : openMpiByHand(run),
    },
  ]
}

const kindOf = ({ bundles, spec }: LaunchedGang): string => spec.options.mpi ?? bundles[0]?.said.mpi ?? 'openmpi'

/** Horovod's threads and those of RDMA do not go together. */
const rdmaVariables = ({ spec }: LaunchedGang): Readonly<Record<string, string>> =>
  spec.options.transport === 'rdma' ? { HOROVOD_MPI_THREADS_DISABLE: '1' } : {}

function runOf(gang: LaunchedGang, network: string | undefined): MpiRun {
  const { bundles, command, spec } = gang
  const isAborting = spec.options['as-is'] === undefined && bundles.every(({ said }) => said.mpi4py === 'yes')
  return {
    gang,
    ...(network === undefined ? {} : { network }),
    program: isAborting ? withAbort(command) : command,
    names: spec.options.export?.split(' ') ?? [],
  }
}

/** A rank that raises would leave the others waiting for ever (mpi4py.run). */
function withAbort(command: string): string {
  return command.replace(/^((?:\S*\/)?python3?(?:\.\d+)?)\s+(?!-m mpi4py\b)/, '$1 -m mpi4py ')
}

const MPI_RANK = `r=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-\${PMIX_RANK:-0}}}
export RANK="$r" WORLD_SIZE="\${OMPI_COMM_WORLD_SIZE:-\${PMI_SIZE:-$MUSTER_MPI_SIZE}}" LOCAL_RANK="\${OMPI_COMM_WORLD_LOCAL_RANK:-\${MPI_LOCALRANKID:-0}}"
export MUSTER_RANK="$RANK" MUSTER_WORLD_SIZE="$WORLD_SIZE" PYTHONUNBUFFERED="\${PYTHONUNBUFFERED-1}"
[ "$r" = 0 ] || [ -z "\${MUSTER_OUTPUT-}" ] || exec > "$MUSTER_OUTPUT.$r" 2>&1
`

/** For MPICH, whose UCX may choose a card that does not lead to the other nodes. */
const SET_UCX = `for address in $(echo "$MUSTER_ADDRESSES" | tr , ' '); do
  card=$(ip -o route get "$address" 2>/dev/null | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')
  [ "$card" = lo ] || break
done
case $card in
'' | lo) ;;
*) export UCX_NET_DEVICES="\${UCX_NET_DEVICES-$card}" FI_TCP_IFACE="\${FI_TCP_IFACE-$card}";;
esac
`

/** It runs once: mpirun knows the nodes from the engine, and starts its daemons there by the engine's own means. */
function mpiInGang({ command, spec, roles }: GangOnEngine): string {
  const { bind = 'none', transport, mpi, 'as-is': asIs } = spec.options
  const size = roles.reduce((sum, { count }) => sum + count, 0) * (spec.ownRanks ?? 1)
  const tcp = transport === 'tcp' ? ' --mca pml ob1 --mca btl ^openib' : ''
  const aborting = withAbort(command)
  const cards = transport === 'rdma' ? '' : SET_UCX
  const rank = (line: string) => shellQuote(`${MPI_RANK}${cards}${line}`)
  return `${FAIL}m=\${MUSTER_MPIRUN:-mpirun}
${mpi === 'openmpi' || mpi === undefined ? '' : 'command -v mpiexec.hydra > /dev/null && m=mpiexec.hydra\n'}command -v "$m" > /dev/null || { command -v mpiexec.hydra > /dev/null && m=mpiexec.hydra; } || fail "\${MUSTER_HOSTS%%,*} has no mpirun in PATH"
export MUSTER_MPI_SIZE=${size} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
line=${rank(command)}
${aborting === command || asIs !== undefined ? '' : `! ${HAS_MPI4PY} || line=${rank(aborting)}\n`}case $("$m" --version 2>&1 | head -n 3) in
*'Open MPI'* | *OpenRTE* | *PRRTE*) exec "$m" -np ${size} --map-by slot --bind-to ${bind}${tcp} sh -c "$line";;
*) exec "$m" -np ${size} -bind-to ${bind} sh -c "$line";;
esac`
}
