/** `packages` in hosts.yaml. */
import { type PackageChoice, packageChoiceOf } from '../../base/package-choice.ts'
import { printable } from '../../base/printable.ts'
import { defineSection, hostSet } from '../../inventory/hosts-yaml-schema.ts'
import { list, located, object, oneOrMore, text } from '../../inventory/yaml-reader.ts'

/** A package or a prefix is declared at most once for each host. */
export type PackagesSpec = {
  readonly packages: readonly (PackageChoice & { readonly hosts: readonly string[] })[]
  /** Absolute paths. */
  readonly prefixes: readonly { readonly path: string; readonly hosts: readonly string[] }[]
}

const packageWord = located(
  text('package', (value) =>
    packageChoiceOf(value) === undefined ? 'is not a package; write NAME or NAME=VERSION' : undefined,
  ),
)

const prefix = located(
  text(
    'absolute path',
    [/^\/[^/]/, 'must begin with / and name a directory below it'],
    [/^(?!(.*\/)?\.\.(\/|$))/, 'may not contain ..'],
    [/^[^"\\]*$/, 'may not contain quotes or backslashes'],
  ),
)

export const section = defineSection(
  'packages',
  {
    schema: oneOrMore(
      located(
        object({
          install: {
            schema: list(packageWord),
            about:
              'Distribution packages, installed with apt or dnf: `NAME`, or `NAME=VERSION` for exactly this version. Without a version, the hosts get the version that most of them have, or else the one that most of them would install.',
            example: '[openmpi-bin, python3-mpi4py=3.1.4-2]',
          },
          prefixes: {
            schema: list(prefix),
            about:
              'Directories of software that is installed in another way. They must exist with the same content on all of the hosts; Muster compares them and never writes them.',
            example: '[/opt/openmpi]',
          },
          hosts: { schema: hostSet, about: 'The hosts that need them.', example: '"@gpus"', fallback: '`@all`' },
        }),
      ),
    ),
    about:
      'Packages that have the same version on a host set. A list has an entry for each host set; all hosts of one entry use the same package manager.',
    example: '\n  install: [openmpi-bin, python3-mpi4py]\n  prefixes: [/opt/nccl]',
  },
  (entries, { expandOrAll, fail }): PackagesSpec | undefined => {
    const taken = new Set<string>()
    const takenBy = (offset: number, what: string, hosts: readonly string[]) => {
      const twice = hosts.find((host) => taken.has(`${host} ${what}`))
      if (twice !== undefined) fail(offset, `${printable(what)} is declared twice for ${printable(twice)}`)
      for (const host of hosts) taken.add(`${host} ${what}`)
    }
    const specs = entries.map(({ value: { install = [], prefixes = [], hosts: set }, offset }): PackagesSpec => {
      if (install.length + prefixes.length === 0) fail(offset, 'packages has neither install nor prefixes')
      const hosts = expandOrAll(set)
      return {
        packages: install.flatMap(({ value, offset: place }) => {
          const choice = packageChoiceOf(value)
          if (choice === undefined) return []
          takenBy(place, choice.name, hosts)
          return [{ ...choice, hosts }]
        }),
        prefixes: prefixes.map(({ value, offset: place }) => {
          const path = value.replace(/\/+$/, '')
          takenBy(place, path, hosts)
          return { path, hosts }
        }),
      }
    })
    return specs.length === 0
      ? undefined
      : { packages: specs.flatMap((each) => each.packages), prefixes: specs.flatMap((each) => each.prefixes) }
  },
)
