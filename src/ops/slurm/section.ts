/** `slurm` in hosts.yaml. */
import { defined } from '../../base/defined.ts'
import { defineSection, hostName, hostSet, ipAddress, memory } from '../../inventory/hosts-yaml-schema.ts'
import { located, mapOf, object, oneOrMore, text, textOffsetOf, wholeNumber } from '../../inventory/yaml-reader.ts'

/** A cluster that Muster sets up itself. */
export type SlurmCluster = {
  readonly controller: string
  readonly nodes: readonly string[]
  /** Addresses at which hosts reach each other, where SSH uses other ones. */
  readonly nodeIps: Readonly<Record<string, string>>
}

export type SlurmSpec = {
  /** Undefined: the cluster is somebody else's, and is never changed. */
  readonly cluster?: SlurmCluster
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
  text(type, [/^[A-Za-z0-9_][\w.,:@+-]*$/, 'may contain letters, digits and _ . , : @ + - only'])
const absolutePath = text('absolute path', [
  /^\/[\w./+@-]*$/,
  'must begin with /, and may contain letters, digits and _ . / + @ - only',
])
/** Those that Muster sets itself, or that make sbatch do something else than submit one job. */
const NOT_RESERVED =
  /^(?!--(array|job-name|output|error|input|open-mode|wrap|wait|test-only|parsable|requeue|no-requeue|chdir|ntasks|nodes|quiet|help|usage|version)(=|$))/
const sbatchOption = text(
  'sbatch option',
  [/^--[a-z][a-z-]*(=[\w.,:@%+&|()[\]*/=-]+)?$/, 'is not a long option of sbatch such as --constraint=a100'],
  [NOT_RESERVED, 'is set by Muster itself'],
)

export const section = defineSection(
  'slurm',
  {
    schema: located(
      object({
        login: {
          schema: hostName,
          about:
            'The host on which Muster runs `sbatch` and `squeue`, as its own user. Alone, without `controller`, it names a cluster that Muster uses and never changes.',
          example: 'm10',
          fallback: 'the controller',
        },
        controller: {
          schema: hostName,
          about: 'The host that runs `slurmctld`; `muster up slurm` then sets up the cluster.',
          example: 'm10',
          fallback: 'Muster sets up no cluster',
        },
        nodes: {
          schema: hostSet,
          about: 'The hosts that run `slurmd`, with their `resources`. The controller may be one of them.',
          example: '"m[8-9]"',
        },
        node_ips: {
          schema: mapOf(ipAddress, 'host'),
          about: 'The addresses at which the hosts of the cluster reach each other, if SSH uses other ones.',
          example: '{ m8: 10.0.0.8 }',
          fallback: 'the address that SSH uses',
        },
        partition: {
          schema: located(word('partition')),
          about: 'The partition of jobs, and the name of the one that `muster up slurm` makes.',
          example: 'main',
          fallback: "Slurm's default; `main` in a cluster that Muster sets up",
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
          schema: wholeNumber('a whole number from 1 to 1000', { minimum: 1, maximum: 1000 }),
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
    ),
    about:
      'A Slurm cluster, which Muster hands jobs to with `--engine slurm`. With `controller` and `nodes`, `muster up slurm` sets it up.',
    example: '{ controller: m10, nodes: "m[8-9]" }',
  },
  ({ value: raw, offset }, context): SlurmSpec | undefined => {
    const {
      login,
      controller,
      nodes,
      node_ips,
      partition,
      memory_per_core,
      shards_per_gpu,
      options = [],
      ...rest
    } = raw
    if (controller === undefined && login === undefined)
      context.fail(offset, 'slurm has neither controller nor login; write { controller: m10, nodes: "m[8-9]" }')
    if (controller !== undefined && nodes === undefined)
      context.fail(controller.offset, 'slurm has a controller and no nodes; write nodes: "m[8-9]"')
    if (nodes !== undefined && controller === undefined)
      context.fail(nodes.offset, 'slurm has nodes and no controller; write controller: m10')
    if (controller !== undefined && partition !== undefined && !/^\w[\w.-]*$/.test(partition.value))
      context.fail(partition.offset, 'muster up slurm makes one partition, and its name has letters, digits, _ . and -')
    const nodeIps = (node_ips ?? []).map(({ key, value, keyNode }) => [
      context.knownHost({ value: key, offset: textOffsetOf(keyNode) }),
      value,
    ])
    const cluster = controller &&
      nodes && {
        controller: context.knownHost(controller),
        nodes: context.expand(nodes),
        nodeIps: Object.fromEntries(nodeIps),
      }
    const loginHost = login === undefined ? cluster?.controller : context.knownHost(login)
    if (loginHost === undefined) return undefined
    return {
      ...rest,
      login: loginHost,
      coreMemoryBytes: memory_per_core ?? DEFAULT_CORE_MEMORY_BYTES,
      options,
      ...defined({ cluster, partition: partition?.value, shardsPerGpu: shards_per_gpu }),
    }
  },
)
