/** The plan for a virtual environment on each host. Pure. */
import { printable } from '../../base/printable.ts'
import { type Known, knownValue } from '../kernel/fact.ts'
import { pathWord } from '../kernel/files.ts'
import { ifKnown, type Operation, operationId, type Step, type Verdict } from '../kernel/operation.ts'
import { normalName, type PrefixFacts, parcelCheck, removeParcel } from './facts.ts'
import {
  blocked,
  type EnvAreaFacts,
  keptBy,
  keptElsewhere,
  nothing,
  type OwnFacts,
  oneStep,
  operation,
  step,
  steps,
} from './plan.ts'
import { type Gathering, gatherWheels, installLock, isTomlLock, makeVenv, removeVenv } from './venv-scripts.ts'
import { AREA, contentOf, type EnvWanted, parcelOf } from './wanted.ts'

type Wanted = EnvWanted<'venv'>
type Venv = Extract<PrefixFacts, { kind: 'venv' | 'conda' }>
/** Names to versions. */
type Lock = ReadonlyMap<string, string>

const TITLE = 'virtual environment'
/** They install packages, and extra ones do no harm. */
const TOOLS = ['pip', 'setuptools', 'wheel']
const SHOWN_CHANGES = 40

export function planVenvUp(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { facts } = areaFacts
  const { spec, file } = wanted
  const elsewhere = keptElsewhere('up', wanted, areaFacts)
  const parcelElsewhere = keptElsewhere('up', wanted, areaFacts, 'parcel')
  const source = facts.get(spec.from)?.facts
  const lock = source === undefined ? undefined : lockOf(wanted, source)
  const gathering = source === undefined ? [] : [gather(wanted, source, lock)]
  return [
    ...gathering,
    ...[...facts].map(([host, { facts: own }]) => {
      const kept = elsewhere.get(host)
      if (kept !== undefined) return operation('venv', host, TITLE, keptBy(kept))
      if (host === spec.from && file === undefined) {
        return operation('venv', host, TITLE, nothing(`the other hosts follow it: ${spec.path}`))
      }
      const known = lock ?? (source === undefined ? lockOf(wanted, own) : undefined)
      const verdict = ifKnown(host, TITLE, own.content as Known<PrefixFacts>, (content) =>
        source === undefined && known === undefined
          ? blocked(host, 'not-reached', `${spec.from}, which gathers the wheels, cannot be reached`)
          : venvVerdict(wanted, host, content, known, source !== undefined && host !== spec.from),
      )
      // A shared home receives the parcel once; the next host finds it there.
      const bringer = parcelElsewhere.get(host)?.keeper
      const after = [
        ...(source === undefined ? [] : [operationId(AREA, 'wheels', spec.from)]),
        ...(bringer === undefined ? [] : [operationId(AREA, 'venv', bringer)]),
      ]
      return operation('venv', host, TITLE, verdict, after)
    }),
  ]
}

/** The lock in a host's parcel; undefined: not made yet, or outdated. */
function lockOf({ file }: Wanted, { parcel, content }: OwnFacts): Lock | undefined {
  const lines = knownValue(parcel)?.content
  if (lines === undefined) return undefined
  const lock: Lock = new Map(lines.map(parseLockLine).filter((pin) => pin !== undefined))
  if (file !== undefined) return lock
  const followed = knownValue(content as Known<PrefixFacts>)
  return followed !== undefined && 'packages' in followed && isSameLock(lock, followed) ? lock : undefined
}

function parseLockLine(line: string): [string, string] | undefined {
  const match = /^([\w.-]+)==([\w.+!~-]+) --hash=sha256:[0-9a-f]{64} # [^/]+\.whl$/.exec(line)
  return match === null ? undefined : [normalName(match[1] ?? ''), match[2] ?? '']
}

function isSameLock(lock: Lock, { packages }: Venv): boolean {
  const others = [...packages].filter(([name]) => !lock.has(name) && !TOOLS.includes(name))
  return others.length === 0 && [...lock].every(([name, version]) => packages.get(name)?.version === version)
}

/** Gathers the wheels and the lock on the followed host. */
function gather(wanted: Wanted, source: OwnFacts, lock: Lock | undefined): Operation {
  const { spec, file } = wanted
  const { from: host, path: prefix, python, wheels } = spec
  const [parcel, content] = [parcelOf(wanted), contentOf(wanted)]
  const title = 'wheels'
  if (lock !== undefined) return operation('wheels', host, title, nothing(`the ${lock.size} wheels are in ${parcel}`))
  const make = (requirements: string, of: string, kind: Gathering['kind']): Verdict => {
    const run = gatherWheels({
      python,
      prefix,
      parcel,
      content,
      requirements,
      kind,
      ...(wheels === undefined ? {} : { wheels }),
    })
    const where = wheels === undefined ? '' : `, from ${wheels} where possible`
    const made = step('wheels', host, 'gather', {
      title: `gather the wheels of ${of}${where}`,
      changes: [`+ ${parcel}`],
      run,
    })
    return steps('missing', [made])
  }
  if (file?.kind === 'text') {
    const kind = isTomlLock(file.path) ? 'lock' : 'list'
    return operation('wheels', host, title, make(file.text, file.path, kind))
  }
  const verdict = ifKnown(host, TITLE, source.content as Known<PrefixFacts>, (content) => {
    if (!('packages' in content)) {
      const hint = 'Create it there, or name its packages in hosts.yaml (requirements).'
      return blocked(host, 'nothing-to-follow', `there is no environment ${prefix} for the others to follow`, hint)
    }
    const pins = [...content.packages].map(([name, { version }]) => `${name}==${version}\n`)
    return make(pins.join(''), `the ${pins.length} packages of ${prefix}`, 'complete')
  })
  return operation('wheels', host, title, verdict)
}

function venvVerdict(
  wanted: Wanted,
  host: string,
  content: PrefixFacts,
  lock: Lock | undefined,
  /** False: the parcel is already on the host. */
  isBrought: boolean,
): Verdict {
  const { spec, key } = wanted
  const { path, python, from } = spec
  const [parcel, lockFile] = [parcelOf(wanted), contentOf(wanted)]
  const one = (word: string, rest: Omit<Step, 'id'>) => step('venv', host, word, rest)
  const bring = one('bring', {
    title: `copy the wheels from ${from}`,
    changes: [`+ ${parcel}`],
    run: { script: parcelCheck(parcel, lockFile), files: { from, path: parcel, to: parcel } },
    check: { script: parcelCheck(parcel, lockFile) },
  })
  const install = (changes: readonly string[]) =>
    one('install', {
      title: `install them in ${path} (offline)`,
      changes,
      run: installLock(path, parcel, lockFile),
    })
  const make = one('make', {
    title: `create ${path} with ${python}`,
    changes: [`+ ${path}`],
    run: makeVenv(python, path, parcel, key),
    check: { script: `${pathWord(`${path}/bin/python`)} -c ''` },
  })
  const anew = (changes: readonly string[]) => [...(isBrought ? [bring] : []), make, install(changes)]
  if (content.kind === 'none') {
    const all = [...(lock ?? [])].map(([name, version]) => `+ ${name} ${version}`)
    return steps('missing', anew(all.length === 0 ? ['+ the packages of the wheels'] : listed(all)))
  }
  if (content.kind === 'other') {
    return blocked(host, 'in-the-way', `${path}: ${content.because}`, 'Move it away, or choose another path.')
  }
  if (content.kind === 'conda') {
    return blocked(host, 'in-the-way', `${path} is an environment of conda`, 'Choose another path.')
  }
  if (content.python === undefined) {
    const hint = `Remove ${path} there; Muster then creates it again.`
    return content.made === undefined
      ? blocked(host, 'no-interpreter', `the Python of ${path} does not run`, hint)
      : steps('differs', anew([`~ ${path}: all of it`]))
  }
  const fill = (changes: readonly string[]) => [...(isBrought ? [bring] : []), install(changes)]
  if (lock === undefined) return steps('differs', fill([`~ ${path}: to match the wheels`]))
  const changes = differences(content, lock)
  if (changes.length === 0) return nothing(`${path} holds the ${lock.size} packages, and no others`)
  return steps('differs', fill(listed(changes)))
}

function differences({ packages, broken }: Venv, lock: Lock): string[] {
  const changes = [...lock].flatMap(([name, version]) => {
    const there = packages.get(name)?.version
    if (there === undefined) return [`+ ${name} ${version}`]
    if (there !== version) return [`~ ${name} ${printable(there)} → ${version}`]
    return broken.includes(name) ? [`~ ${name} ${version}: its list of files is missing`] : []
  })
  const extra = [...packages].filter(([name]) => !lock.has(name) && !TOOLS.includes(name))
  return [...changes, ...extra.map(([name, { version }]) => `- ${name} ${printable(version)}`)]
}

function listed(changes: readonly string[]): string[] {
  if (changes.length <= SHOWN_CHANGES) return [...changes]
  return [...changes.slice(0, SHOWN_CHANGES), `~ and ${changes.length - SHOWN_CHANGES} more`]
}

export function planVenvDown(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { facts } = areaFacts
  const { spec } = wanted
  const elsewhere = keptElsewhere('down', wanted, areaFacts)
  const parcelElsewhere = keptElsewhere('down', wanted, areaFacts, 'parcel')
  const parcel = parcelOf(wanted)
  return [...facts].flatMap(([host, { facts: own }]) => [
    operation(
      'venv',
      host,
      TITLE,
      ifKnown(host, TITLE, own.content as Known<PrefixFacts>, (content): Verdict => {
        const kept = elsewhere.get(host)
        if (kept !== undefined) return keptBy(kept)
        if (!('packages' in content)) return nothing(`there is no environment ${spec.path}`)
        if (content.made === undefined) return nothing(`${spec.path} was not created by Muster: it stays`)
        const title = `remove ${spec.path}`
        return oneStep('differs', 'venv', host, 'remove', {
          title,
          changes: [`- ${spec.path}`],
          run: removeVenv(spec.path),
        })
      }),
    ),
    operation(
      'wheels',
      host,
      'wheels',
      ifKnown(host, 'wheels', own.parcel, ({ isThere }): Verdict => {
        if (!isThere) return nothing('there are none')
        const kept = parcelElsewhere.get(host)
        if (kept !== undefined) return keptBy(kept)
        const title = `remove ${parcel}`
        return oneStep('differs', 'wheels', host, 'remove', {
          title,
          changes: [`- ${parcel}`],
          run: { script: removeParcel(parcel) },
        })
      }),
    ),
  ])
}
