/** The script of a job for sbatch. Pure. */
import { shellQuote } from '../../base/shell-quote.ts'
import type { SlurmSpec } from './section.ts'

/** Of a job for Slurm; of `spec` only what Slurm supports. */
export type SlurmStart = {
  readonly key: string
  readonly environment: Readonly<Record<string, string>>
  /** In the queue; higher ones go first. */
  readonly priority: number
  readonly spec: {
    readonly name: string
    readonly command: string
    readonly directory?: string
    readonly request: SlurmRequest
    readonly bundles: number
    readonly strategy: string
    readonly maxBundlesPerHost?: number
    readonly limitS?: number
    /** Bundles with requests of their own, in the order of ranks. */
    readonly roles?: readonly { readonly name: string; readonly count: number; readonly request: SlurmRequest }[]
    /** Ranks: the job is done when these are. */
    readonly leaders?: readonly number[]
    /** `ownRanks`: the command runs once and starts so many ranks in each bundle. */
    readonly launch?: { readonly ownRanks?: number }
  }
}

type SlurmRequest = {
  readonly cpuMilli: number
  readonly memoryBytes: number
  readonly gpuCount: number
  readonly gpuMilli: number
}

/** A node that does not see the directory of the job, or cannot write there. */
export const UNSHARED_CODE = 94
/** There is no space in the directory of the job. */
export const FULL_CODE = 95
/** Below a rank's own ports, and below those from which clients connect. */
const FIRST_PORT = 20_000
const PORTS = 10_000
const WHOLE_MILLI = 1000
const MIB = 2 ** 20
const MOST_COMMENT = 100
/** Slurm's own limit is 128. */
const MOST_COMPONENTS = 64
/** Of `--nice`, for each step of priority below 0. */
const NICE_STEP = 100
const MOST_NICE = 2_000_000_000

/** Why Slurm cannot be asked for it; undefined: it can. */
export function whyNotSlurm(spec: SlurmStart['spec'], { shardsPerGpu }: SlurmSpec) {
  const { bundles, strategy } = spec
  const components = componentsOf(spec)
  if (components.length > 1 && strategy === 'STRICT_PACK')
    return '--strategy STRICT_PACK: Slurm places bundles that ask for different amounts on different nodes'
  if (components.length > MOST_COMPONENTS)
    return `--role: Slurm takes at most ${MOST_COMPONENTS} roles that ask for different amounts`
  if (components.every(({ request }) => request.gpuCount === 0 || request.gpuMilli === WHOLE_MILLI)) return undefined
  if (shardsPerGpu === undefined)
    return '--gpu: Slurm has no share of a GPU unless hosts.yaml says how many shards a GPU has. Ask for whole GPUs, or set shards_per_gpu in slurm.'
  if (bundles > 1 && strategy !== 'STRICT_SPREAD')
    return '--gpu: several bundles with shares of GPUs need --strategy STRICT_SPREAD in Slurm'
  return undefined
}

/** Bundles that ask for the same; several: a heterogeneous job. */
type Component = { readonly count: number; readonly request: SlurmRequest }

function componentsOf({ roles = [], request, bundles }: SlurmStart['spec']): readonly Component[] {
  const components: Component[] = []
  for (const { count, request } of roles) {
    const last = components.at(-1)
    if (last !== undefined && JSON.stringify(last.request) === JSON.stringify(request))
      components[components.length - 1] = { request, count: last.count + count }
    else components.push({ count, request })
  }
  return components.length > 1 ? components : [{ count: bundles, request: components[0]?.request ?? request }]
}

/** `isPlain`: without what Muster needs to know how it ends, for other uses. */
export function slurmScript(start: SlurmStart, slurm: SlurmSpec, isPlain = false): string {
  const { key, spec } = start
  const { ownRanks } = spec.launch ?? {}
  const body =
    ownRanks !== undefined ? ownBody(start, ownRanks) : spec.bundles === 1 ? singleBody(start) : gangBody(start)
  const path = slurm.bin === undefined ? '' : `export PATH=${slurm.bin}:"$PATH"\n`
  const own = [`--job-name=${key}`, `--comment="${commentOf(spec.name)}"`, '--output=out', '--no-requeue']
  const options = componentsOf(spec).map((component) =>
    [...own, ...optionsOf(start, component, slurm)].map((option) => `#SBATCH ${option}\n`).join(''),
  )
  return `#!/bin/sh
${options.join('#SBATCH hetjob\n')}${path}${isPlain ? '' : CLAIM}${variablesOf(start)}${body}${isPlain ? 'exit $code\n' : NOTE_END}`
}

/** For people who look at squeue. */
const commentOf = (name: string): string => name.replaceAll(/[^\w .,:@%+=/-]/g, '_').slice(0, MOST_COMMENT)

const coresOf = ({ cpuMilli }: SlurmRequest): number => Math.max(1, Math.ceil(cpuMilli / 1000))

/** As sbatch(1) describes them. */
function optionsOf(
  { priority, spec: { strategy, maxBundlesPerHost, limitS, bundles } }: SlurmStart,
  { count, request }: Component,
  { partition, account, qos, coreMemoryBytes, shardsPerGpu = 1, options }: SlurmSpec,
): readonly string[] {
  const { memoryBytes, gpuCount, gpuMilli } = request
  const cores = coresOf(request)
  const isOnePerNode = count === 1 || strategy === 'STRICT_SPREAD'
  const mib = (bytes: number) => `${Math.ceil(bytes / MIB)}M`
  const memory =
    memoryBytes === 0
      ? coreMemoryBytes === 0
        ? []
        : [`--mem-per-cpu=${mib(coreMemoryBytes)}`]
      : // Components of one job must all name it in the same way.
        [isOnePerNode && count === bundles ? `--mem=${mib(memoryBytes)}` : `--mem-per-cpu=${mib(memoryBytes / cores)}`]
  const shards = Math.ceil((gpuMilli * shardsPerGpu) / WHOLE_MILLI)
  const gpus =
    gpuCount === 0
      ? []
      : gpuMilli < WHOLE_MILLI
        ? [`--gres=shard:${shards}`]
        : [count === 1 ? `--gres=gpu:${gpuCount}` : `--gpus-per-task=${gpuCount}`]
  const nodes = isOnePerNode ? count : strategy === 'STRICT_PACK' ? 1 : undefined
  const perNode = isOnePerNode ? 1 : maxBundlesPerHost
  const given = { partition, account, qos }
  return [
    ...Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(nodes === undefined ? [] : [`--nodes=${nodes}`]),
    `--ntasks=${count}`,
    ...(perNode === undefined || count === 1 ? [] : [`--ntasks-per-node=${perNode}`]),
    ...(strategy === 'SPREAD' && count > 1 ? ['--spread-job', '--distribution=cyclic'] : []),
    `--cpus-per-task=${cores}`,
    ...memory,
    ...gpus,
    // Slurm counts minutes.
    ...(limitS === undefined ? [] : [`--time=${Math.ceil(limitS / 60)}`]),
    // Only administrators may raise a priority.
    ...(priority < 0 ? [`--nice=${Math.min(MOST_NICE, Math.ceil(-priority * NICE_STEP))}`] : []),
    ...options,
  ]
}

/** What NOTE_END writes is shorter. */
const NOTE_BYTES = 500

/**
 * The first of two submissions under the same name claims the job, and the other one ends without having done anything. A job that
 * Slurm starts again keeps its claim. It begins only if there is space to note its end. `trap`: Slurm sends TERM to the command.
 */
const CLAIM = `if ! { [ -f script ] && true > "end.$SLURM_JOB_ID"; }; then
  echo "muster: $(hostname) cannot use the directory of the job: it must be the same one on the login host and on all nodes" >&2
  exit ${UNSHARED_CODE}
fi
if ! { printf '%${NOTE_BYTES}s\\n' '' > "end.$SLURM_JOB_ID" && echo "$SLURM_JOB_ID" > "claim.$SLURM_JOB_ID"; }; then
  rm -f "end.$SLURM_JOB_ID" "claim.$SLURM_JOB_ID"
  echo "muster: $(hostname) has no space in the directory of the job" >&2
  exit ${FULL_CODE}
fi
ln "claim.$SLURM_JOB_ID" claim 2>/dev/null
rm -f "claim.$SLURM_JOB_ID"
read -r owner < claim || exit ${UNSHARED_CODE}
[ "$owner" = "$SLURM_JOB_ID" ] || { rm -f "end.$SLURM_JOB_ID"; exit 0; }
rm -f end why
printf '%s %s' "$(date +%s)" "$(cut -d ' ' -f 1 /proc/uptime 2> /dev/null)" > times
export MUSTER_WHY="$PWD/why"
trap : TERM
`

/**
 * Slurm forgets a job minutes after its end, so the script notes it, with the state in which a command failed; over what CLAIM wrote,
 * as the job may have filled the disk. Its run time comes from the node's uptime, which setting a clock does not change.
 */
const NOTE_END = `printf ' %s\\n' "$(cut -d ' ' -f 1 /proc/uptime 2> /dev/null)" >> times
state=
[ "$code" -eq 0 ] || state=$(squeue -h -j "$SLURM_JOB_ID" -O 'State:.24,Reason:.120' 2>/dev/null)
echo "exit $code" $state 1<> "end.$SLURM_JOB_ID" && mv "end.$SLURM_JOB_ID" end
exit $code
`

function variablesOf({ environment, spec }: SlurmStart): string {
  return exportsOf({ ...(spec.request.gpuCount === 0 ? NO_DEVICES : {}), ...environment })
}

const NO_DEVICES = { CUDA_VISIBLE_DEVICES: '', ROCR_VISIBLE_DEVICES: '' }

const exportsOf = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
    .join('')

const PORT = `export MASTER_PORT=$((${FIRST_PORT} + SLURM_JOB_ID % ${PORTS}))\n`
/** What Slurm names after NVIDIA, for AMD. */
const SAME_DEVICES = `export ROCR_VISIBLE_DEVICES="\${ROCR_VISIBLE_DEVICES-\${CUDA_VISIBLE_DEVICES-}}"\n`

const goTo = (directory: string | undefined): string => (directory === undefined ? 'cd' : `cd ${shellQuote(directory)}`)

const singleBody = ({
  spec: { command, directory },
}: SlurmStart): string => `${PORT}${SAME_DEVICES}MUSTER_HOSTS=$SLURMD_NODENAME
${ADDRESSES}export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MUSTER_RANK=0 MUSTER_WORLD_SIZE=1
( ${goTo(directory)} && exec /bin/sh -c ${shellQuote(command)} )
code=$?
`

/** From MUSTER_HOSTS: what the nodes reach each other at, which is not always their name. */
const ADDRESSES = `MUSTER_ADDRESSES=$(scontrol -o show node "$(echo "$MUSTER_HOSTS" | tr , '\\n' | sort -u | paste -s -d , -)" 2>/dev/null | awk -v hosts="$MUSTER_HOSTS" '
  { name = ""; for (i = 1; i <= NF; i++) { if ($i ~ /^NodeName=/) name = substr($i, 10); if ($i ~ /^NodeAddr=/) at[name] = substr($i, 10) } }
  END { n = split(hosts, own, ","); for (i = 1; i <= n; i++) printf "%s%s", (i == 1 ? "" : ","), (at[own[i]] == "" ? own[i] : at[own[i]]) }')
: "\${MUSTER_ADDRESSES:=$MUSTER_HOSTS}"
export MUSTER_HOSTS MUSTER_ADDRESSES MASTER_ADDR="\${MUSTER_ADDRESSES%%,*}"
`

/** The command starts the ranks of all bundles itself, by srun; what MPI reads of Slurm says how many on each node. */
function ownBody({ spec: { command, directory, bundles } }: SlurmStart, ranks: number): string {
  // The ranks have a file each, as those of a gang have.
  const output = bundles * ranks === 1 ? '' : ' > out.0 2>&1'
  return `${PORT}${SAME_DEVICES}MUSTER_HOSTS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -s -d , -)
${ADDRESSES}export SLURM_TASKS_PER_NODE='${ranks}(x${bundles})' RANK=0 WORLD_SIZE=${bundles} LOCAL_RANK=0 MUSTER_RANK=0 MUSTER_WORLD_SIZE=${bundles} MUSTER_OUTPUT="$PWD/out"
( ${goTo(directory)} && exec /bin/sh -c ${shellQuote(command)} )${output}
code=$?
`
}

/** The first rank that fails ends the others, and its exit code is that of the job. */
function gangBody({ spec, environment }: SlurmStart): string {
  const { command, directory, leaders } = spec
  const components = componentsOf(spec)
  const isUnlike = components.length > 1
  const isLed = leaders !== undefined && leaders.length < spec.bundles
  /** `program`: a word of sh, for each bundle. */
  const srun = (options: string, program: (request: SlurmRequest) => string) =>
    `srun ${options}${components
      .map(({ request }, index) => {
        const group = isUnlike ? `--het-group=${index} ` : ''
        return `${group}--cpus-per-task=${coresOf(request)} /bin/sh -c ${program(request)}`
      })
      .join(' : ')}`
  // In a job of several components, srun numbers these files in another way.
  const rank = `${isUnlike ? 'exec > "out.$SLURM_PROCID" 2>&1\n' : ''}${SAME_DEVICES}export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
export MUSTER_RANK=$RANK MUSTER_WORLD_SIZE=$WORLD_SIZE
( ${goTo(directory)} && exec /bin/sh -c ${shellQuote(command)} )
code=$?
[ $code -eq 0 ] || ln -s $code first 2>/dev/null
${isLed ? '[ $code -ne 0 ] || : > "done.$RANK"\n' : ''}exit $code`
  const start = srun(`--kill-on-bad-exit=1 ${isUnlike ? '' : '--output=out.%t '}`, ({ gpuCount }) =>
    gpuCount === 0 ? '"$bare$rank"' : '"$rank"',
  )
  // In a step without GPUs, Slurm unsets what would hide them.
  const own = Object.entries(NO_DEVICES).map(([name, none]) => [name, environment[name] ?? none])
  const bare = exportsOf(Object.fromEntries(own))
  return `${PORT}MUSTER_HOSTS=$(${srun('', () => `'echo "$SLURM_PROCID $SLURMD_NODENAME"'`)} | sort -n | sed 's/.* //' | paste -s -d , -)
${ADDRESSES}rm -f first done.*
bare=${shellQuote(bare)}
rank=${shellQuote(rank)}
${isLed ? ledBy(leaders, start) : `${start}\ncode=$?\n`}[ ! -L first ] || code=$(readlink first)
`
}

/** Ends the others when all leaders are done. */
const ledBy = (leaders: readonly number[], start: string): string => `${start} &
step=$! code=
while [ -z "$code" ] && kill -0 $step 2>/dev/null; do
  sleep 1
  code=0
  for rank in ${leaders.join(' ')}; do [ -f "done.$rank" ] || code=; done
done
if [ "$code" = 0 ]; then
  kill $step 2>/dev/null
  wait $step
  rm -f first
else
  wait $step
  code=$?
fi
`
