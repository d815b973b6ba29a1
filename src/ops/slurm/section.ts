/** `slurm` in hosts.yaml. */
import { defined } from '../../base/defined.ts'
import { defineSection, hostName, memory } from '../../inventory/hosts-yaml-schema.ts'
import { number, object, oneOrMore, text } from '../../inventory/yaml-reader.ts'

export type SlurmSpec = {
  /** The host on which sbatch and squeue run. */
  readonly login: string
  readonly partition?: string
  readonly account?: string
  readonly qos?: string
  /** For each core of a job that asks for no memory; 0: Slurm decides. */
  readonly coreMemoryBytes: number
  /** Undefined: GPUs cannot be shared. */
  readonly shardsPerGpu?: number
  /** Absolute; undefined: where jobs of hosts are. */
  readonly directory?: string
  /** Where Slurm's programs are; undefined: in the PATH of the login. */
  readonly bin?: string
  /** Further options of sbatch. */
  readonly options: readonly string[]
}

const DEFAULT_CORE_MEMORY_BYTES = 2 ** 30

/** It goes into a line `#SBATCH` and into command lines. */
const word = (type: string) =>
  text(type, (value) =>
    /^[A-Za-z0-9_][\w.,:@+-]*$/.test(value) ? undefined : 'may contain letters, digits and _ . , : @ + - only',
  )
const absolutePath = text('absolute path', (value) =>
  /^\/[\w./+@-]*$/.test(value) ? undefined : 'must begin with /, and may contain letters, digits and _ . / + @ - only',
)
/** Those that Muster sets itself, or that make sbatch do something else than submit one job. */
const RESERVED =
  /^--(array|job-name|output|error|input|open-mode|wrap|wait|test-only|parsable|requeue|no-requeue|chdir|ntasks|nodes|quiet|help|usage|version)(=|$)/
const sbatchOption = text('option of sbatch', (value) => {
  if (!/^--[a-z][a-z-]*(=[\w.,:@%+&|()[\]*/=-]+)?$/.test(value))
    return 'is not a long option of sbatch such as --constraint=a100'
  return RESERVED.test(value) ? 'is set by Muster itself' : undefined
})

export const section = defineSection(
  'slurm',
  {
    schema: object({
      login: {
        schema: hostName,
        about: 'The host on which Muster runs `sbatch` and `squeue`, as its own user.',
        example: 'm10',
        isRequired: true,
      },
      partition: {
        schema: word('partition'),
        about: 'The partition of jobs.',
        example: 'main',
        fallback: "Slurm's default",
      },
      account: {
        schema: word('account'),
        about: 'The account that jobs are charged to.',
        example: 'lab',
        fallback: "Slurm's default",
      },
      qos: {
        schema: word('QOS'),
        about: 'The quality of service of jobs.',
        example: 'normal',
        fallback: "Slurm's default",
      },
      memory_per_core: {
        schema: memory,
        about:
          'The memory for each core of a job without `--memory`. Without a number, Slurm may give it the whole memory of a node, and nothing else runs there. `0` leaves it to Slurm.',
        example: '4GiB',
        fallback: '1GiB',
      },
      shards_per_gpu: {
        schema: number(
          'a whole number from 1 to 1000',
          (value) => Number.isInteger(value) && value >= 1 && value <= 1000,
        ),
        about:
          'How many shards (`gres/shard`) each GPU has, for jobs that ask for a share of one, such as `--gpu 0.5`.',
        example: '4',
        fallback: 'jobs cannot share a GPU',
      },
      directory: {
        schema: absolutePath,
        about: 'The directory for scripts and output of jobs. The login host and all nodes must see the same one.',
        example: '/shared/muster',
        fallback: '`~/.local/state/muster/jobs`',
      },
      bin: {
        schema: absolutePath,
        about: "Where Slurm's programs are on the login host and on the nodes.",
        example: '/opt/slurm/bin',
        fallback: 'in the PATH',
      },
      options: {
        schema: oneOrMore(sbatchOption),
        about: 'Further options of sbatch for all jobs.',
        example: '[--constraint=a100, --exclude=gpu07]',
        fallback: 'none',
      },
    }),
    about: 'A Slurm cluster, which Muster hands jobs to with `--engine slurm` and never changes.',
  },
  (raw, context): SlurmSpec | undefined => {
    const { login, memory_per_core, shards_per_gpu, options = [], ...rest } = raw
    if (!login) return undefined
    return {
      ...rest,
      login: context.knownHost(login),
      coreMemoryBytes: memory_per_core ?? DEFAULT_CORE_MEMORY_BYTES,
      ...defined({ shardsPerGpu: shards_per_gpu }),
      options,
    }
  },
)
