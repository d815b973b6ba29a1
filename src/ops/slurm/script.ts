/** The script of a job for sbatch. Pure. */
import { shellQuote } from '../../base/shell-quote.ts'
import type { SlurmSpec } from './section.ts'

/** Of a job for Slurm; of `spec` only what Slurm supports. */
export type SlurmStart = {
  readonly key: string
  readonly environment: Readonly<Record<string, string>>
  readonly spec: {
    readonly name: string
    readonly command: string
    readonly directory?: string
    readonly request: {
      readonly cpuMilli: number
      readonly memoryBytes: number
      readonly gpuCount: number
      readonly gpuMilli: number
    }
    readonly bundles: number
    readonly strategy: string
    readonly maxBundlesPerHost?: number
    readonly limitS?: number
  }
}

/** A node that does not see the directory of the job, or cannot write there. */
export const UNSHARED_CODE = 94
/** Below a rank's own ports, and below those from which clients connect. */
const FIRST_PORT = 20_000
const PORTS = 10_000
const WHOLE_MILLI = 1000
const MIB = 2 ** 20
const MOST_COMMENT = 100

/** Why Slurm cannot be asked for it; undefined: it can. */
export function whyNotSlurm({ request, bundles, strategy }: SlurmStart['spec'], { shardsPerGpu }: SlurmSpec) {
  if (request.gpuCount === 0 || request.gpuMilli === WHOLE_MILLI) return undefined
  if (shardsPerGpu === undefined)
    return '--gpu: Slurm has no share of a GPU unless hosts.yaml says how many shards a GPU has. Ask for whole GPUs, or set shards_per_gpu in slurm.'
  if (bundles > 1 && strategy !== 'STRICT_SPREAD')
    return '--gpu: several bundles with shares of GPUs need --strategy STRICT_SPREAD in Slurm'
  return undefined
}

/** `isPlain`: without what Muster needs to know how it ends, for other uses. */
export function slurmScript(start: SlurmStart, slurm: SlurmSpec, isPlain = false): string {
  const { key, spec } = start
  const body = spec.bundles === 1 ? singleBody(start) : gangBody(start)
  const path = slurm.bin === undefined ? '' : `export PATH=${slurm.bin}:"$PATH"\n`
  return `#!/bin/sh
${[
  `--job-name=${key}`,
  `--comment="${commentOf(spec.name)}"`,
  '--output=out',
  '--no-requeue',
  ...optionsOf(spec, slurm),
]
  .map((option) => `#SBATCH ${option}\n`)
  .join('')}${path}${isPlain ? '' : CLAIM}${variablesOf(start)}${body}${isPlain ? 'exit $code\n' : NOTE_END}`
}

/** For people who look at squeue. */
const commentOf = (name: string): string => name.replaceAll(/[^\w .,:@%+=/-]/g, '_').slice(0, MOST_COMMENT)

/** As sbatch(1) describes them. */
export function optionsOf(
  { request, bundles, strategy, maxBundlesPerHost, limitS }: SlurmStart['spec'],
  { partition, account, qos, coreMemoryBytes, shardsPerGpu = 1, options }: SlurmSpec,
): readonly string[] {
  const { memoryBytes, gpuCount, gpuMilli } = request
  const cores = Math.max(1, Math.ceil(request.cpuMilli / 1000))
  const isOnePerNode = bundles === 1 || strategy === 'STRICT_SPREAD'
  const mib = (bytes: number) => `${Math.ceil(bytes / MIB)}M`
  const memory =
    memoryBytes === 0
      ? coreMemoryBytes === 0
        ? []
        : [`--mem-per-cpu=${mib(coreMemoryBytes)}`]
      : [isOnePerNode ? `--mem=${mib(memoryBytes)}` : `--mem-per-cpu=${mib(memoryBytes / cores)}`]
  const shards = Math.ceil((gpuMilli * shardsPerGpu) / WHOLE_MILLI)
  const gpus =
    gpuCount === 0
      ? []
      : gpuMilli < WHOLE_MILLI
        ? [`--gres=shard:${shards}`]
        : [bundles === 1 ? `--gres=gpu:${gpuCount}` : `--gpus-per-task=${gpuCount}`]
  const nodes = isOnePerNode ? bundles : strategy === 'STRICT_PACK' ? 1 : undefined
  const perNode = isOnePerNode ? 1 : maxBundlesPerHost
  const given = { partition, account, qos }
  return [
    ...Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(nodes === undefined ? [] : [`--nodes=${nodes}`]),
    `--ntasks=${bundles}`,
    ...(perNode === undefined || bundles === 1 ? [] : [`--ntasks-per-node=${perNode}`]),
    ...(strategy === 'SPREAD' && bundles > 1 ? ['--spread-job', '--distribution=cyclic'] : []),
    `--cpus-per-task=${cores}`,
    ...memory,
    ...gpus,
    // Slurm counts minutes.
    ...(limitS === undefined ? [] : [`--time=${Math.ceil(limitS / 60)}`]),
    ...options,
  ]
}

/**
 * The first of two submissions under the same name claims the job, and the other one ends without having done anything. A job that
 * Slurm starts again keeps its claim. `trap`: Slurm sends TERM to the command.
 */
const CLAIM = `if ! { [ -f script ] && echo "$SLURM_JOB_ID" > "claim.$SLURM_JOB_ID"; }; then
  echo "muster: $(hostname) cannot use the directory of the job: it must be the same one on the login host and on all nodes" >&2
  exit ${UNSHARED_CODE}
fi
ln "claim.$SLURM_JOB_ID" claim 2>/dev/null
rm -f "claim.$SLURM_JOB_ID"
read -r owner < claim || exit ${UNSHARED_CODE}
[ "$owner" = "$SLURM_JOB_ID" ] || exit 0
rm -f end
trap : TERM
`

/** Slurm forgets a job minutes after its end, so the script notes it, with the state in which a command failed. */
const NOTE_END = `state=
[ "$code" -eq 0 ] || state=$(squeue -h -j "$SLURM_JOB_ID" -O 'State:.24,Reason:.64' 2>/dev/null)
echo "exit $code" $state > end.new && mv end.new end
exit $code
`

function variablesOf({ environment, spec }: SlurmStart): string {
  const devices = spec.request.gpuCount === 0 ? { CUDA_VISIBLE_DEVICES: '', ROCR_VISIBLE_DEVICES: '' } : {}
  return Object.entries({ ...devices, ...environment })
    .map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
    .join('')
}

const PORT = `export MASTER_PORT=$((${FIRST_PORT} + SLURM_JOB_ID % ${PORTS}))\n`
/** What Slurm names after NVIDIA, for AMD. */
const SAME_DEVICES = `export ROCR_VISIBLE_DEVICES="\${ROCR_VISIBLE_DEVICES-\${CUDA_VISIBLE_DEVICES-}}"\n`

const goTo = (directory: string | undefined): string => (directory === undefined ? 'cd' : `cd ${shellQuote(directory)}`)

const singleBody = ({
  spec: { command, directory },
}: SlurmStart): string => `${PORT}${SAME_DEVICES}node=$SLURMD_NODENAME
export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_HOSTS="$node" MASTER_ADDR="$node"
( ${goTo(directory)} && exec /bin/sh -c ${shellQuote(command)} )
code=$?
`

/** The first rank that fails ends the others, and its exit code is that of the job. */
function gangBody({ spec: { command, directory } }: SlurmStart): string {
  const rank = `${SAME_DEVICES}export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
export MUSTER_RANK=$RANK MUSTER_WORLD_SIZE=$WORLD_SIZE
( ${goTo(directory)} && exec /bin/sh -c ${shellQuote(command)} )
code=$?
[ $code -eq 0 ] || ln -s $code first 2>/dev/null
exit $code`
  return `${PORT}export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
MUSTER_HOSTS=$(srun /bin/sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"' | sort -n | sed 's/.* //' | paste -s -d , -)
rm -f first
export MUSTER_HOSTS MASTER_ADDR="\${MUSTER_HOSTS%%,*}"
srun --kill-on-bad-exit=1 --output=out.%t /bin/sh -c ${shellQuote(rank)}
code=$?
[ ! -L first ] || code=$(readlink first)
`
}
