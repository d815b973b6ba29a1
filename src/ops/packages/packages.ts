/**
 * Distribution packages in one version on all hosts, and prefixes that are the same on all of them. Muster installs what is missing, and
 * changes a version only of what it has installed itself: `down` could not restore another one.
 */
import { isPackageVersion, type PackageChoice } from '../../base/package-choice.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { type AreaFacts, type ChangeDirection, defineArea } from '../kernel/area.ts'
import { type FactSet, type KnownFacts, knownValue } from '../kernel/fact.ts'
import { type Finding, onHost } from '../kernel/finding.ts'
import { defineLeft, leftOfOperations } from '../kernel/left.ts'
import { blocked, ifKnown, nothing, type Operation, operationOf, steps, type Verdict } from '../kernel/operation.ts'
import {
  askedPackagesFact,
  type InstallPreview,
  installedCheck,
  installPackages,
  installPreviewFact,
  type PackageNames,
  type PackageOffers,
  type Packages,
  packageOffersFact,
  packagesFact,
  removalVerdict,
  removeUndeclared,
  unclearFindings,
} from '../kernel/packages.ts'
import { mostCommon } from './most-common.ts'
import { compareContents, type PrefixContent, planPrefix, prefixFact } from './prefix.ts'
import { type PackagesSpec, section } from './section.ts'

const AREA = 'packages'
const SHOWN_DEPENDENCIES = 12

type Facts = {
  readonly packages: Packages
  readonly offers: PackageOffers
  readonly preview: InstallPreview
  readonly asked: readonly string[]
} & { readonly [prefix: `prefix ${string}`]: PrefixContent }

type Own = KnownFacts<Facts>
type Package = PackagesSpec['packages'][number]

const hostsOf = ({ packages, prefixes }: PackagesSpec): string[] => [
  ...new Set([...packages, ...prefixes].flatMap(({ hosts }) => hosts)),
]

const namesFor = (names: readonly string[]): PackageNames => {
  return { apt: names, dnf: names, zypper: names, pacman: names, apk: names }
}

function factsOf({ packages, prefixes }: PackagesSpec, host: string): FactSet<Facts> {
  const wanted = packages.filter(({ hosts }) => hosts.includes(host))
  const names = wanted.map(({ name }) => name)
  const paths = prefixes.filter(({ hosts }) => hosts.includes(host)).map(({ path }) => path)
  return {
    packages: packagesFact(namesFor(names), AREA),
    asked: askedPackagesFact(AREA),
    ...(names.length === 0 ? {} : { offers: packageOffersFact(names), preview: installPreviewFact(wanted, AREA) }),
    ...Object.fromEntries(paths.map((path) => [`prefix ${path}`, prefixFact(path)])),
  } as FactSet<Facts>
}

function plan(direction: ChangeDirection, spec: PackagesSpec, { facts }: AreaFacts<Facts>): Operation[] {
  const own = new Map([...facts].map(([host, { facts: known }]) => [host, known]))
  const versions = new Map(spec.packages.map((each) => [each, versionsOn(each, own)]))
  return [...own].flatMap(([host, known]) => {
    const wanted = spec.packages.filter(({ hosts }) => hosts.includes(host))
    const prefixes = spec.prefixes.filter(({ hosts }) => hosts.includes(host))
    if (direction === 'down') return [planDown(host, known)]
    return [
      ...(wanted.length === 0 ? [] : [installOperation(host, planInstall(host, known, wanted, versions))]),
      ...undeclaredOperation(host, known, wanted),
      ...prefixes.map(({ path }) => prefixOperation(host, path, own)),
    ]
  })
}

const installOperation = (host: string, verdict: Verdict): Operation =>
  operationOf(AREA, host, 'install', 'distribution packages', verdict)

/** What Muster installed for an older hosts.yaml. */
function undeclaredOperation(host: string, { packages, asked }: Own, wanted: readonly Package[]): Operation[] {
  const there = knownValue(packages)
  const names = (knownValue(asked) ?? []).filter(
    (each) => there?.own.includes(each) && !wanted.some(({ name }) => name === each),
  )
  if (there === undefined || names.length === 0) return []
  const verdict = steps('differs', [
    {
      id: 'remove',
      title: 'remove packages that hosts.yaml no longer lists, and what only they need',
      changes: names.map((name) => `- package ${name}`),
      run: removeUndeclared(there.manager, names, AREA),
    },
  ])
  return [operationOf(AREA, host, 'undeclared', 'undeclared packages', verdict)]
}

function prefixOperation(host: string, path: string, all: ReadonlyMap<string, Own>): Operation {
  const known = [...all].flatMap(([name, facts]) => {
    const value = knownValue(facts[`prefix ${path}`])
    return value === undefined ? [] : [[name, value] as const]
  })
  const fact = all.get(host)?.[`prefix ${path}`] ?? { kind: 'unknown', because: 'it was not asked' }
  const slow = 'With --connect-timeout 60, hosts get more time to read a large or slow directory.'
  const verdict =
    fact.kind === 'known'
      ? planPrefix(host, path, fact.value, new Map(known))
      : blocked(host, 'unknown', `cannot determine the content of ${path}: ${fact.because}`, slow)
  return operationOf(AREA, host, `prefix ${path}`, `prefix ${path}`, verdict)
}

/** A version of a package, which all hosts should have, and where it is or would be. */
type Versions = {
  /** Undefined: no host has or knows the package. */
  readonly wanted: string | undefined
  /** `4.1.4-3 on m[1-2], 4.1.2-2 on m3`; undefined: all that have it have the same. */
  readonly differing: string | undefined
}

function versionsOn({ name, version, hosts }: Package, all: ReadonlyMap<string, Own>): Versions {
  const asked = hosts.flatMap((host) => {
    const own = all.get(host)
    return own === undefined ? [] : [{ host, own }]
  })
  const installed = asked.flatMap(({ host, own }) => {
    const there = knownValue(own.packages)?.installed.get(name)
    return there === undefined ? [] : [{ host, version: there }]
  })
  const candidates = asked.flatMap(({ own }) => knownValue(own.offers)?.versions.get(name)?.slice(0, 1) ?? [])
  const groups = [...Map.groupBy(installed, (each) => each.version)]
  const words = groups.map(([each, on]) => `${each} on ${foldHostSet(on.map(({ host }) => host))}`)
  return {
    wanted:
      version ?? mostCommon(installed.map((each) => each.version).filter(isPackageVersion)) ?? mostCommon(candidates),
    differing: groups.length > 1 ? words.join(', ') : undefined,
  }
}

function planInstall(
  host: string,
  own: Own,
  wanted: readonly Package[],
  versions: ReadonlyMap<Package, Versions>,
): Verdict {
  return ifKnown(host, 'the installed packages', own.packages, (packages) => {
    const { manager, installed } = packages
    if (manager !== 'apt' && manager !== 'dnf') {
      const cause = `${AREA} works with apt and dnf, and this host has ${manager}`
      return { kind: 'blocked', findings: [{ host, gravity: 'blocker', id: 'no-manager', cause }] }
    }
    return ifKnown(host, `which packages ${manager} offers`, own.offers, (offers) => {
      const states = wanted.map((each) => stateOf(host, each, packages, offers, versions.get(each)))
      const findings = states.flatMap((state) => (state.kind === 'finding' ? [state.finding] : []))
      if (findings.length > 0) return { kind: 'blocked', findings }
      const all = states.flatMap((state) => (state.kind === 'install' ? [state] : []))
      if (all.length === 0) {
        return nothing(`${wanted.map(({ name }) => `${name} ${installed.get(name)}`).join(', ')} installed`)
      }
      return ifKnown(host, 'what the installation would change', own.preview, (preview) =>
        installation(host, manager, all, offers, preview),
      )
    })
  })
}

type Install = {
  readonly kind: 'install'
  readonly choice: PackageChoice
  /** The installed version, which Muster installed. */
  readonly from: string | undefined
  /** Whether the preview shows this version. */
  readonly isPreviewed: boolean
}

type State = Install | { readonly kind: 'good' } | { readonly kind: 'finding'; readonly finding: Finding }

/** What has to be done about one package on one host. */
function stateOf(
  host: string,
  { name, version }: Package,
  { manager, installed, own }: Packages,
  { hasLists, versions: offered }: PackageOffers,
  versions: Versions | undefined,
): State {
  const there = installed.get(name)
  const { wanted, differing } = versions ?? {}
  const offers = offered.get(name) ?? []
  const finding = (id: string, cause: string, command: string | undefined, hint?: string): State => ({
    kind: 'finding',
    finding: {
      host,
      gravity: 'blocker',
      id,
      cause,
      ...(command === undefined ? {} : { fix: onHost(`sudo ${command}`) }),
      ...(hint === undefined ? {} : { hint }),
    },
  })
  const refresh = manager === 'apt' ? 'apt-get update' : 'dnf makecache'
  if (there !== undefined && (wanted === undefined || there === wanted)) return { kind: 'good' }
  if (there !== undefined && !own.includes(name)) {
    const declared = version === undefined ? '' : ` (hosts.yaml declares ${version})`
    const cause = `${name}: ${differing ?? `${there} on ${host}`}${declared}`
    const hint = 'Muster did not install it, so it does not change its version.'
    const isOffered = wanted !== undefined && offers.includes(wanted)
    const install = manager === 'apt' ? `apt-get install ${name}=${wanted}` : `dnf install ${name}-${wanted}`
    return finding('other-version', cause, isOffered ? install : refresh, hint)
  }
  if (wanted !== undefined && offers.includes(wanted)) {
    return {
      kind: 'install',
      choice: { name, version: wanted },
      from: there,
      isPreviewed: there === undefined && (version !== undefined || offers[0] === wanted),
    }
  }
  if (!hasLists) {
    const choice = wanted === undefined ? { name } : { name, version: wanted }
    return { kind: 'install', choice, from: there, isPreviewed: false }
  }
  if (offers.length === 0) {
    const hint = `Check the name in hosts.yaml and the repositories of the host, or read its lists again.`
    return finding('unknown-package', `${manager} does not know the package ${name}`, refresh, hint)
  }
  const others = version === undefined ? 'the other hosts have or would get it' : 'hosts.yaml declares it'
  const hint = `Read the lists again, or write a version in hosts.yaml that all hosts offer: ${name}=${offers[0]}`
  return finding(
    'not-offered',
    `${name} ${wanted} is not available here, but ${others}; ${manager} offers ${offers.slice(0, 3).join(', ')}`,
    refresh,
    hint,
  )
}

function installation(
  host: string,
  manager: 'apt' | 'dnf',
  all: readonly Install[],
  { hasLists }: PackageOffers,
  { added, changed }: InstallPreview,
): Verdict {
  const choices = all.map(({ choice }) => choice)
  const names = choices.map(({ name }) => name)
  const isSeen = all.every(({ isPreviewed }) => isPreviewed)
  if (isSeen && changed.length > 0) {
    const what = changed.slice(0, 5).join(', ')
    const cause = `installing ${names.join(' and ')} would change packages that are there`
    const hint = 'Muster does not change what it cannot restore. Upgrade the host first, or install these by hand.'
    const detail = changed.length > 5 ? `${what} and ${changed.length - 5} more` : what
    return { kind: 'blocked', findings: [{ host, gravity: 'blocker', id: 'changes-others', cause, detail, hint }] }
  }
  const dependencies = isSeen ? [...added].filter(([name]) => !names.includes(name)) : []
  const shown = dependencies.slice(0, SHOWN_DEPENDENCIES).map(([name, version]) => `+ package ${name} ${version}`)
  const rest = dependencies.length - shown.length
  const isRefreshed = !hasLists
  const changes = [
    ...all.map(({ choice: { name, version = '' }, from }) =>
      from === undefined ? `+ package ${name} ${version}`.trim() : `~ package ${name} ${from} → ${version}`,
    ),
    ...shown,
    ...(rest > 0 ? [`+ ${rest} more packages that these need`] : []),
  ]
  return steps(all.some(({ from }) => from !== undefined) ? 'differs' : 'missing', [
    {
      id: 'install',
      title: `${isRefreshed ? 'read the lists of packages, and ' : ''}install ${names.join(' and ')} with ${manager}`,
      changes,
      run: installPackages(manager, choices, AREA, { isStrict: true, isRefreshed }),
      check: installedCheck(manager, choices),
    },
  ])
}

function planDown(host: string, own: Own): Operation {
  const verdict = ifKnown(host, 'the installed packages', own.packages, (packages) =>
    removalVerdict(AREA, packages, 'Muster installed no packages for hosts.yaml here'),
  )
  return installOperation(host, verdict)
}

export const left = defineLeft<Pick<Facts, 'packages'>>({
  name: AREA,
  factsOf: () => ({ packages: packagesFact(namesFor([]), AREA) }),
  itemsOf({ packages }, { inventory }, host) {
    const spec = sectionOf(inventory, section)
    const own = knownValue(packages)
    // Without a package manager Muster has installed nothing.
    if (own === undefined) return []
    const isDeclared = spec !== undefined && hostsOf(spec).includes(host)
    return leftOfOperations([installOperation(host, removalVerdict(AREA, own))], isDeclared ? AREA : undefined)
  },
})

export const area = defineArea<PackagesSpec, Facts>({
  name: AREA,
  wantedOf: ({ inventory }) => sectionOf(inventory, section),
  hostsOf,
  factsOf,
  isUsedByJobs: true,
  plan,
  async verify({ prefixes }, { facts }, hostExec, depth) {
    const unclear = [...facts].flatMap(([host, { facts: own }]) => {
      const there = knownValue(own.packages)
      return there === undefined ? [] : unclearFindings(AREA, host, there)
    })
    if (depth === 'status') return unclear
    const compared = prefixes.map(({ path, hosts }) =>
      compareContents(
        path,
        hosts.filter((host) => facts.has(host)),
        hostExec,
      ),
    )
    return [...unclear, ...(await Promise.all(compared)).flat()]
  },
})
