/** `launch` in hosts.yaml: what launchers use on these hosts. */
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { defineSection } from '../../inventory/hosts-yaml-schema.ts'
import { choice, mapOf, object, text } from '../../inventory/yaml-reader.ts'

export type LaunchDefaults = {
  /** TCP ports that launchers may use: the first and the last one. */
  readonly ports: readonly [number, number]
  /** In CIDR form. */
  readonly network?: string
  /** The name of a network card. */
  readonly interface?: string
  /** Options of launchers that start ranks by MPI: `mpi` and `transport`. */
  readonly mpi: Readonly<Record<string, string>>
  /** Where MPI is installed, if not in PATH. */
  readonly mpiPrefix?: string
  readonly environment: Readonly<Record<string, string>>
}

export const DEFAULT_PORTS = [46_000, 46_999] as const

const FEWEST_PORTS = 10

const ports = text('range of ports', (value) => {
  const [, first = 0, last = 0] = /^(\d{1,5})-(\d{1,5})$/.exec(value)?.map(Number) ?? []
  if (first < 1024 || last > 65_535) return 'is not a range of ports from 1024 to 65535, such as 46000-46999'
  return last - first + 1 < FEWEST_PORTS ? `has fewer than ${FEWEST_PORTS} ports` : undefined
})
const network = text('network', [/^(\d{1,3}\.){3}\d{1,3}\/\d{1,2}$/, 'is not a network such as 10.0.0.0/24'])
const card = text('network card', [/^[\w.:-]{1,15}$/, 'is not the name of a network card such as ib0'])
const prefix = text('path', [/^\/[\w./+-]{1,200}$/, 'is not an absolute path of letters, digits and ._+-'])
const value = text('value')

export const section = defineSection(
  'launch',
  {
    schema: object({
      ports: {
        schema: ports,
        about: 'TCP ports that launchers use between hosts; a firewall has to let them through.',
        example: '46000-46999',
        fallback: '`46000-46999`',
      },
      network: {
        schema: network,
        about: 'The network between the hosts.',
        example: '10.81.0.0/16',
        fallback: 'that of the address by which SSH reaches a host',
      },
      interface: {
        schema: card,
        about: 'The network card whose network launchers use; it has the same name on all hosts.',
        example: 'ib0',
      },
      mpi: {
        schema: object({
          implementation: {
            schema: choice(['openmpi', 'mpich', 'intel'] as const),
            about: 'Which MPI starts ranks.',
            fallback: 'that of `mpirun`',
          },
          prefix: {
            schema: prefix,
            about: 'Where MPI is installed: its `bin` and `lib` come first in PATH and LD_LIBRARY_PATH of jobs.',
            example: '/opt/openmpi',
          },
          transport: {
            schema: choice(['tcp', 'rdma'] as const),
            about: '`rdma`: InfiniBand or RoCE, which has to be active on all hosts.',
            fallback: '`tcp`',
          },
        }),
        about: 'What `--launch mpi` and `--launch horovod` use.',
        example: '{ prefix: /opt/openmpi }',
      },
      env: {
        schema: mapOf(value),
        about: 'Variables of all launched jobs; `--env` of a job comes first.',
        example: '{ NCCL_DEBUG: WARN }',
      },
    }),
    about: 'What launchers (`muster launch`) use on these hosts.',
  },
  (raw, context): LaunchDefaults => {
    const entries = raw.env ?? []
    for (const { key, keyNode } of entries)
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key))
        context.fail(keyNode.range?.[0] ?? 0, `${printable(key)} is not the name of a variable`)
    const environment = Object.fromEntries(entries.map(({ key, value: own }) => [key, own]))
    const [first = 0, last = 0] = raw.ports?.split('-').map(Number) ?? DEFAULT_PORTS
    return {
      ports: [first, last],
      ...defined({ network: raw.network, interface: raw.interface, mpiPrefix: raw.mpi?.prefix }),
      mpi: defined({ mpi: raw.mpi?.implementation, transport: raw.mpi?.transport }),
      environment,
    }
  },
)
