/** `slurm` in hosts.yaml. */
import { defineSection, hostName, hostSet } from '../../../src/inventory/hosts-yaml-schema.ts'
import { object } from '../../../src/inventory/yaml-reader.ts'

export type SlurmSpec = { readonly controller: string; readonly nodes: readonly string[] }

export const section = defineSection(
  'slurm',
  {
    schema: object({
      controller: { schema: hostName, about: 'The host that runs slurmctld.', example: 'm10', isRequired: true },
      nodes: { schema: hostSet, about: 'The hosts that run slurmd.', example: '"@workers"', fallback: '`@all`' },
    }),
    about: 'A Slurm cluster.',
  },
  ({ controller, nodes }, { knownHost, expandOrAll }): SlurmSpec | undefined =>
    controller && { controller: knownHost(controller), nodes: expandOrAll(nodes) },
)
