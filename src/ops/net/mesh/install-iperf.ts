/**
 * Installs iperf3 on hosts without it: an area that a verb asks for, not hosts.yaml. Each host notes what Muster installed, and only
 * that is removed.
 */
import { type Area, areaOf } from '../../kernel/area.ts'
import { type Fact, type KnownFacts, knownValue } from '../../kernel/fact.ts'
import { defineLeft, leftOfOperations } from '../../kernel/left.ts'
import { blocked, ifKnown, nothing, operationOf, type Verdict } from '../../kernel/operation.ts'
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
        names.flatMap((host) => {
          const own = facts.get(host)?.facts
          if (own === undefined) return []
          const remove = (there: Packages) => removalVerdict(AREA, there, 'Muster has not installed iperf here')
          const verdict =
            direction === 'up' ? planUp(host, tool, own) : ifKnown(host, 'the packages', own.packages, remove)
          return [operationOf(AREA, host, 'packages', PROGRAMS[tool], verdict)]
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
    const [first] = knownValue(processes) ?? []
    const used = first === undefined ? undefined : `process ${first} is an iperf that is running`
    return leftOfOperations([operationOf(AREA, host, 'packages', 'iperf', removalVerdict(AREA, own))], undefined, used)
  },
})

const serversFact: Fact<readonly string[]> = {
  script: `grep -l -E -x -a '(iperf|iperf3)' /proc/[0-9]*/comm; echo end`,
  parse: (text) => [...text.matchAll(/^\/proc\/(\d+)\/comm$/gm)].map(([, pid = '']) => pid),
}

function planUp(host: string, tool: IperfTool, { hasProgram, packages }: KnownFacts<IperfFacts>): Verdict {
  const program = PROGRAMS[tool]
  if (knownValue(hasProgram) === true) return nothing(`${program} is installed`)
  return ifKnown(host, 'the packages', packages, (there) => {
    const missing = missingPackages(NAMES[tool], there)
    if (missing.length > 0)
      return installVerdict(AREA, there.manager, missing, { script: FIND(tool), lack: `there is no ${program}` })
    const cause = `${program} is missing, and ${there.manager} has no package for it or says it is installed`
    return blocked(host, 'no-package', cause)
  })
}
