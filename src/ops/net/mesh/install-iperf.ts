/**
 * Installs iperf3 on hosts without it: an area that a verb asks for, not hosts.yaml. Each host notes what Muster installed, and only
 * that is removed.
 */
import { type Area, areaOf } from '../../kernel/area.ts'
import { type Fact, type HostFacts, type Known, knownValue } from '../../kernel/fact.ts'
import { defineLeft, leftOfOperations } from '../../kernel/left.ts'
import { blockedBy, type Operation, operationId, type Verdict } from '../../kernel/operation.ts'
import {
  installVerdict,
  missingPackages,
  type PackageNames,
  type Packages,
  packagesFact,
  removalVerdict,
} from '../../kernel/packages.ts'
import type { NetTool } from './link.ts'

const AREA = 'iperf'

export type IperfTool = Exclude<NetTool, 'ssh'>

const PROGRAMS: Readonly<Record<IperfTool, string>> = { iperf3: 'iperf3', iperf2: 'iperf' }
/** On openSUSE the package of iperf3 is called iperf, and iperf 2 is not there. */
const NAMES: Readonly<Record<IperfTool, PackageNames>> = {
  iperf3: { apt: ['iperf3'], dnf: ['iperf3'], zypper: ['iperf'], pacman: ['iperf3'], apk: ['iperf3'] },
  iperf2: { apt: ['iperf'], dnf: ['iperf'], zypper: [], pacman: ['iperf'], apk: ['iperf'] },
}

type IperfFacts = { readonly hasProgram: boolean; readonly packages: Packages }

const FIND = (tool: IperfTool) =>
  `PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin"; command -v ${PROGRAMS[tool]} > /dev/null`

const programFact = (tool: IperfTool): Fact<boolean> => ({
  script: `if ( ${FIND(tool)} ); then echo yes; else echo no; fi`,
  parse: (text) => (text === 'yes' ? true : text === 'no' ? false : undefined),
})

/** Makes sure that these hosts have it (`up`), or takes away what was installed for it (`down`). */
export function iperfArea(hosts: readonly string[], tool: IperfTool): Area {
  return areaOf<readonly string[], IperfFacts>(
    {
      name: AREA,
      hostsOf: (names) => names,
      factsOf: () => ({ hasProgram: programFact(tool), packages: packagesFact(NAMES[tool], AREA) }),
      plan: (direction, names, { facts }) =>
        names.flatMap((host): Operation[] => {
          const known = facts.get(host)
          if (known === undefined) return []
          const verdict = direction === 'up' ? planUp(host, tool, known) : planDown(host, known)
          const id = operationId(AREA, 'packages', host)
          return [{ id, area: AREA, host, title: PROGRAMS[tool], after: [], verdict }]
        }),
    },
    hosts,
  )
}

/** What is still installed: `muster net uninstall` removes the same. */
export const iperfLeft = defineLeft<{ packages: Packages; processes: readonly string[] }>({
  name: AREA,
  factsOf: () => ({ packages: packagesFact(NAMES.iperf3, AREA), processes: serversFact }),
  itemsOf({ packages, processes }, _, host) {
    const own = knownValue(packages)
    // Without a package manager Muster has installed nothing.
    if (own === undefined) return []
    const id = operationId(AREA, 'packages', host)
    const verdict = removalVerdict(host, AREA, own, '')
    const [first] = knownValue(processes) ?? []
    const used = first === undefined ? undefined : `process ${first} is an iperf that is running`
    return leftOfOperations([{ id, area: AREA, host, title: 'iperf', after: [], verdict }], undefined, used)
  },
})

const serversFact: Fact<readonly string[]> = {
  script: `grep -l -E -x -a '(iperf|iperf3)' /proc/[0-9]*/comm; echo end`,
  parse: (text) => [...text.matchAll(/^\/proc\/(\d+)\/comm$/gm)].map(([, pid = '']) => pid),
}

function planUp(host: string, tool: IperfTool, { facts: { hasProgram, packages } }: HostFacts<IperfFacts>): Verdict {
  const program = PROGRAMS[tool]
  if (hasProgram.kind === 'known' && hasProgram.value) return { kind: 'nothing', because: `${program} is there` }
  if (packages.kind === 'unknown') return unknown(host, packages)
  const { manager } = packages.value
  const missing = missingPackages(NAMES[tool], packages.value)
  if (missing.length === 0) {
    const cause = `${program} is missing, and ${manager} has no package for it or says it is installed`
    return blockedBy({ host, gravity: 'blocker', id: 'no-package', cause })
  }
  return installVerdict(host, AREA, manager, missing, { script: FIND(tool) })
}

function planDown(host: string, { facts: { packages } }: HostFacts<IperfFacts>): Verdict {
  if (packages.kind === 'unknown') return unknown(host, packages)
  return removalVerdict(host, AREA, packages.value, 'Muster has not installed iperf here')
}

function unknown(host: string, { because }: Extract<Known<Packages>, { kind: 'unknown' }>): Verdict {
  const cause = `cannot list the packages: ${because}`
  return blockedBy({ host, gravity: 'blocker', id: 'unknown', cause })
}
