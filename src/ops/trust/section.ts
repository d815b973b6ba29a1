/** `trust` in hosts.yaml. */
import { defineSection, hostSet } from '../../inventory/hosts-yaml-schema.ts'
import { object } from '../../inventory/yaml-reader.ts'

/** The hosts of the mesh. */
export const section = defineSection(
  'trust',
  {
    schema: object({
      mesh: {
        schema: hostSet,
        about: 'Hosts that log in to each other without a password.',
        example: '"@all"',
      },
    }),
    about: 'Passwordless SSH between hosts.',
  },
  ({ mesh }, { expand }) => mesh && expand(mesh),
)
