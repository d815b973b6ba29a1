/** `nfs` in hosts.yaml. */

import { defined } from '../../base/defined.ts'
import { defineSection, hostName, hostSet } from '../../inventory/hosts-yaml-schema.ts'
import { list, object, oneOrMore, text } from '../../inventory/yaml-reader.ts'

export type NfsSpec = {
  readonly server: string
  readonly path: string
  readonly options: string
  /** Octal; undefined: it is left as it is. */
  readonly mode?: string
  readonly clients: readonly string[]
  /** Clients as exports(5) writes them; undefined: the addresses of `clients`. */
  readonly exportTo?: readonly string[]
  readonly mount: string
  readonly mountOptions: string
}

const absolutePath = text(
  'absolute path',
  [/^\//, 'must begin with /'],
  [/^[^"]*$/, 'may not contain quotes or control characters'],
)
const options = text('options', [/^[\w.,:=@%/+-]+$/, 'is not a list such as rw,sync without spaces'])
const exportClients = oneOrMore(
  text('clients', [/^[\w.:*?@/[\]-]+$/, 'is not a name, an address, a network such as 10.0.0.0/24, or *']),
)
const octalMode = text('mode in quotes', [/^[0-7]{3,4}$/, 'is not an octal mode such as "1777"'])

export const section = defineSection(
  'nfs',
  {
    schema: list(
      object({
        server: { schema: hostName, about: 'The host that exports the directory.', example: 'm10', isRequired: true },
        path: { schema: absolutePath, about: 'The exported directory.', example: '/nfsroot', isRequired: true },
        options: {
          schema: options,
          about: 'Options of the export, as in exports(5).',
          example: '"rw,sync,no_root_squash,no_subtree_check"',
          fallback: '`rw,sync,no_subtree_check`',
        },
        mode: {
          schema: octalMode,
          about: 'Mode of the exported directory, in octal.',
          example: '"1777"',
          fallback: 'unchanged; 0755 if Muster creates it',
        },
        clients: { schema: hostSet, about: 'The hosts that mount it.', example: '"@workers"', isRequired: true },
        export_to: {
          schema: exportClients,
          about: 'Clients of the export, as in exports(5).',
          example: '"10.0.0.0/24"',
          fallback: 'the addresses of `clients`',
        },
        mount: {
          schema: absolutePath,
          about: 'The mount point on the clients.',
          example: '/nfsroot',
          fallback: 'the exported path',
        },
        mount_options: {
          schema: options,
          about: 'Options of the mount, as in nfs(5).',
          example: 'nolock',
          fallback: '`defaults`',
        },
      }),
    ),
    about: 'NFS exports, and the hosts that mount them.',
    example: '\n  - { server: m10, path: /nfsroot, clients: "@workers", mount: /nfsroot }',
  },
  (entries, { knownHost, expand }) => {
    const specs = entries.flatMap((entry): NfsSpec[] => {
      const { server, clients, path = '' } = entry
      if (!server || !clients) return []
      return [
        {
          server: knownHost(server),
          path,
          options: entry.options ?? 'rw,sync,no_subtree_check',
          clients: expand(clients),
          mount: entry.mount ?? path,
          mountOptions: entry.mount_options ?? 'defaults',
          ...defined({ mode: entry.mode, exportTo: entry.export_to }),
        },
      ]
    })
    return specs.length === 0 ? undefined : specs
  },
)
