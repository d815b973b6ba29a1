/** `pbs` in hosts.yaml. */
import { defineSection, hostName, hostSet } from '../../../src/inventory/hosts-yaml-schema.ts'
import { object } from '../../../src/inventory/yaml-reader.ts'

export type PbsSpec = { readonly controller: string; readonly nodes: readonly string[] }

export const section = defineSection(
  'pbs',
  {
    schema: object({
      controller: { schema: hostName, about: 'The host that runs pbs_server.', example: 'm10', isRequired: true },
      nodes: { schema: hostSet, about: 'The hosts that run pbs_mom.', example: '"@workers"', fallback: '`@all`' },
    }),
    about: 'A PBS cluster.',
  },
  ({ controller, nodes }, { knownHost, expandOrAll }): PbsSpec | undefined =>
    controller && { controller: knownHost(controller), nodes: expandOrAll(nodes) },
)
