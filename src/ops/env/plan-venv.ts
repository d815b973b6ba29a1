/** The plan for a virtual environment on each host. Pure. */
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { knownValue } from '../kernel/fact.ts'
import {
  blocked,
  ifKnown,
  nothing,
  type Operation,
  type StdinPart,
  type Step,
  steps,
  type Verdict,
} from '../kernel/operation.ts'
import { normalName, type PrefixFacts, removeParcel, removeStale } from './facts.ts'
import { includedFile, isTomlLock, type Pins, pinsOf } from './pins.ts'
import {
  type EnvAreaFacts,
  envId,
  keptElsewhere,
  type OwnFacts,
  operation,
  type Prefix,
  packageChanges,
  prefixFactOf,
} from './plan.ts'
import {
  type Gathering,
  gatherWheels,
  installLock,
  isBrought,
  isVenv,
  makeVenv,
  noteBrought,
  removeVenv,
} from './venv-scripts.ts'
import { contentOf, type EnvWanted, wheelsOf } from './wanted.ts'

type Wanted = EnvWanted<'venv'>
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
  const pins = file?.kind === 'text' ? pinsOf(file) : undefined
  // Without it, the parcel is not what this host gathered.
  const digest = knownValue(source?.parcel)?.digest
  const lock = source === undefined || digest === undefined ? undefined : lockOf(wanted, source, pins)
  const gathered = { output: `${envId('wheels', spec.from)}/gather`, pattern: '[0-9a-f]{64}' }
  const followed = source === undefined || file !== undefined ? undefined : versionsOf(knownValue(prefixFactOf(source)))
  const venvs = [...facts].map(([host, { facts: own }]) => {
    const kept = elsewhere.get(host)
    if (kept !== undefined) return operation('venv', host, TITLE, kept)
    if (host === spec.from && file === undefined) {
      return operation('venv', host, TITLE, nothing(`the other hosts follow it: ${spec.path}`))
    }
    const known = lock ?? followed ?? (source === undefined ? lockOf(wanted, own, pins) : undefined)
    const verdict = ifKnown(host, TITLE, prefixFactOf(own), (content) =>
      source === undefined && known === undefined
        ? blocked(host, 'not-reached', `${spec.from}, which gathers the wheels, cannot be reached`)
        : venvVerdict(wanted, host, content, {
            lock: known,
            digest: source === undefined || host === spec.from ? undefined : ((lock && digest) ?? gathered),
            pins,
            filledBy: knownValue(own.parcel)?.filledBy,
          }),
    )
    // A shared home receives the parcel once; the next host finds it there.
    const bringer = parcelElsewhere.get(host)?.keeper
    const after = [source && envId('wheels', spec.from), bringer && envId('venv', bringer)]
    return operation(
      'venv',
      host,
      TITLE,
      verdict,
      after.filter((id) => id !== undefined),
    )
  })
  const tidied = tidy(wanted, areaFacts, parcelElsewhere)
  if (source === undefined) return [...venvs, ...tidied]
  const isNeeded = venvs.some(({ host, verdict }) => host !== spec.from && verdict.kind === 'steps')
  return [gather(wanted, source, lock, pins, followed !== undefined && !isNeeded), ...venvs, ...tidied]
}

/** Removes wheels that are not of the followed host. Last: a host stops at its first failure. */
function tidy(
  wanted: Wanted,
  { facts }: EnvAreaFacts,
  elsewhere: ReturnType<typeof keptElsewhere>,
): readonly Operation[] {
  const places = wheelsOf(wanted)
  return [...facts].flatMap(([host, { facts: own }]) => {
    const { stale = [] } = knownValue(own.parcel) ?? {}
    if (stale.length === 0 || elsewhere.has(host)) return []
    const title = `remove wheels that are not known to be of ${wanted.spec.from}`
    const step = {
      id: 'remove',
      title,
      changes: stale.map((path) => `- ${path}`),
      run: { script: removeStale(places) },
    }
    return [operation('tidy', host, 'other wheels', steps('differs', [step]))]
  })
}

/** The lock in a host's parcel; undefined: not made yet, or outdated. */
function lockOf({ file }: Wanted, own: OwnFacts, pins: Pins | undefined): Lock | undefined {
  const lines = knownValue(own.parcel)?.content
  if (lines === undefined) return undefined
  const lock = new Map(lines.map(parseLockLine).filter((pin) => pin !== undefined))
  // With hashes in the file, each host has a pip of its own.
  if (pins !== undefined && !pins.has('pip')) lock.delete('pip')
  if (file !== undefined) return lock
  const followed = knownValue(prefixFactOf(own))
  if (followed === undefined || !('packages' in followed)) return undefined
  // pip is among the wheels even if the followed environment has none, as those that uv makes.
  const pinned = [...lock].filter(([name]) => followed.packages.has(name) || !TOOLS.includes(name))
  return packageChanges(comparedOf(followed, lock), new Map(pinned)).length === 0 ? lock : undefined
}

const versionsOf = (content: PrefixFacts | undefined): Lock | undefined =>
  content !== undefined && 'packages' in content
    ? new Map([...content.packages].map(([name, { version }]) => [name, version]))
    : undefined

function parseLockLine(line: string): [string, string] | undefined {
  const match = /^([\w.-]+)==([\w.+!~-]+) --hash=sha256:[0-9a-f]{64} # [^/]+\.whl$/.exec(line)
  return match === null ? undefined : [normalName(match[1] ?? ''), match[2] ?? '']
}

/** The versions of an environment, without the tools that the lock does not name. */
function comparedOf({ packages }: Prefix, lock: Lock): Lock {
  const compared = [...packages].filter(([name]) => lock.has(name) || !TOOLS.includes(name))
  return new Map(compared.map(([name, { version }]) => [name, version]))
}

/** What a host installs. */
type Wheels = {
  readonly lock: Lock | undefined
  /** SHA-256 of the lock of the host that gathered the wheels; undefined: they are already on this host. */
  readonly digest: StdinPart | undefined
  readonly pins: Pins | undefined
  /** The host that chose what the environment holds, with nothing to limit it. */
  readonly filledBy: string | undefined
}

/** Gathers the wheels and the lock on the followed host. `isEqual`: the others have what they hold. */
function gather(
  wanted: Wanted,
  source: OwnFacts,
  lock: Lock | undefined,
  pins: Pins | undefined,
  isEqual: boolean,
): Operation {
  const { spec, file } = wanted
  const { from: host, path: prefix, python, wheels } = spec
  const [places, content] = [wheelsOf(wanted), contentOf(wanted)]
  const { parcel } = places
  const make = (requirements: string, of: string, kind: Gathering['kind']): Verdict => {
    const isPipOwn = pins !== undefined && !pins.has('pip')
    const run = gatherWheels({
      host,
      python,
      prefix,
      places,
      content,
      requirements,
      kind,
      isPipOwn,
      ...defined({ wheels }),
    })
    const title = `gather the wheels of ${of}${wheels === undefined ? '' : `, from ${wheels} where possible`}`
    return steps('missing', [{ id: 'gather', title, changes: [`+ ${parcel}`], run }])
  }
  const verdict = () => {
    if (lock !== undefined) return nothing(`${counted(lock.size, 'wheel is', 'wheels are')} in ${parcel}`)
    if (isEqual) return nothing('no other host needs wheels')
    if (file?.kind === 'text' && isTomlLock(file.path)) return make(file.text, file.path, 'lock')
    if (file?.kind === 'text') {
      const included = includedFile(file.text)
      if (included === undefined) return make(file.text, file.path, 'list')
      const hint = `Put its lines into ${file.path}, or name it by its absolute path on ${host}.`
      return blocked(host, 'included-file', `${file.path} includes ${included}, which is not copied to ${host}`, hint)
    }
    return ifKnown(host, TITLE, prefixFactOf(source), (followed) => {
      if (!('packages' in followed)) {
        const hint = 'Create it there, or name its packages in hosts.yaml (requirements).'
        return blocked(host, 'nothing-to-follow', `there is no environment ${prefix} for the others to follow`, hint)
      }
      const all = [...followed.packages].map(([name, { version }]) => `${name}==${version}\n`)
      return make(all.join(''), `${counted(all.length, 'package')} of ${prefix}`, 'complete')
    })
  }
  return operation('wheels', host, 'wheels', verdict())
}

function venvVerdict(
  wanted: Wanted,
  host: string,
  content: PrefixFacts,
  { lock, digest, pins, filledBy }: Wheels,
): Verdict {
  const { spec, key } = wanted
  const { path, python, from } = spec
  const [places, lockFile] = [wheelsOf(wanted), contentOf(wanted)]
  const { parcel } = places
  const files = { from, path: parcel, kind: 'directory', to: parcel } as const
  const bring = digest !== undefined && {
    id: 'bring',
    title: `copy the wheels from ${from}`,
    changes: [`+ ${parcel}`],
    run: { script: noteBrought(places), files },
    check: { script: isBrought(places, lockFile), stdin: [digest], lack: `${parcel} is not as on ${from}` },
  }
  // The user's file decides what another host gathers, not that host.
  const checked = host !== from && pins !== undefined ? { pins, file: spec.file ?? '', from } : undefined
  const filler = checked === undefined ? from : undefined
  const isForeign = filledBy !== undefined && filledBy !== host && filledBy !== filler
  const install = (changes: readonly string[], isReplaced = false): Step => {
    const by = checked ?? (host === from ? 'own' : { host: from })
    const replacing = isReplaced ? { filler } : undefined
    const run = installLock({ prefix: path, python, places, content: lockFile, by, ...defined({ replacing }) })
    return { id: 'install', title: `install them in ${path} (offline)`, changes, run }
  }
  const make = {
    id: 'make',
    title: `create ${path} with ${python}`,
    changes: [`+ ${path}`],
    run: makeVenv(python, path, places, key, filler),
    check: { script: isVenv(path), lack: `${path} is no environment of Muster whose Python runs` },
  }
  const again = {
    ...make,
    title: `create ${path} again with ${python}`,
    changes: [`- the environment in ${path}; other files there stay`, `+ ${path}`],
  }
  const madeAgain = () => steps('differs', [bring, again, install([`~ ${path}: all packages`])])
  if (content.kind === 'none') {
    if (isLost(content)) return madeAgain()
    const all = [...(lock ?? [])].map(([name, version]) => `+ ${name} ${version}`)
    return steps('missing', [bring, make, install(all.length === 0 ? ['+ the packages of the wheels'] : listed(all))])
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
      : madeAgain()
  }
  if (isForeign) {
    const changes = [`~ ${path}: all packages, because ${printable(filledBy)} chose them`]
    // The check would skip this step, because the interpreter works.
    const { check: _, ...always } = again
    if (content.made !== undefined) return steps('differs', [bring, always, install(changes)])
    return steps('differs', [bring, install(changes, true)])
  }
  if (lock === undefined) {
    // What Muster did not install may be there for another purpose.
    const own = content.made === undefined ? [...comparedOf(content, new Map())] : []
    const losses = own.map(([name, version]) => `- ${name} ${version}, unless it is among the wheels`)
    return steps('differs', [bring, install([`~ ${path}: to match the wheels`, ...listed(losses)])])
  }
  const changes = packageChanges(comparedOf(content, lock), lock, content.broken)
  if (changes.length === 0)
    return nothing(`${path} holds ${lock.size === 1 ? 'the package' : `the ${lock.size} packages`}, and no others`)
  return steps('differs', [bring, install(listed(changes))])
}

/** Removal or creation was interrupted. */
function isLost(content: PrefixFacts): boolean {
  return content.kind === 'none' && content.left?.what === 'lost'
}

function listed(changes: readonly string[]): readonly string[] {
  if (changes.length <= SHOWN_CHANGES) return changes
  return [...changes.slice(0, SHOWN_CHANGES), `~ and ${changes.length - SHOWN_CHANGES} more`]
}

export function planVenvDown(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { path } = wanted.spec
  const elsewhere = keptElsewhere('down', wanted, areaFacts)
  const parcelElsewhere = keptElsewhere('down', wanted, areaFacts, 'parcel')
  const { root, notes, legacy } = wheelsOf(wanted)
  const all = [...new Set([root, notes, legacy])].map(removeParcel).join('\n')
  const remove = (what: string, run: Step['run'], but = ''): Verdict =>
    steps('differs', [{ id: 'remove', title: `remove ${what}`, changes: [`- ${what}${but}`], run }])
  return [...areaFacts.facts].flatMap(([host, { facts: own }]) => {
    const venv = ifKnown(host, TITLE, prefixFactOf(own), (content): Verdict => {
      const kept = elsewhere.get(host)
      if (kept !== undefined) return kept
      const removed = remove(path, removeVenv(path), '; other files there stay')
      if ('packages' in content) {
        return content.made === undefined ? nothing(`${path} was not created by Muster: it stays`) : removed
      }
      return isLost(content) ? removed : nothing(`there is no environment ${path}`)
    })
    const wheels = ifKnown(host, 'wheels', own.parcel, ({ isThere }) =>
      isThere ? (parcelElsewhere.get(host) ?? remove(root, { script: all })) : nothing('there are none'),
    )
    return [operation('venv', host, TITLE, venv), operation('wheels', host, 'wheels', wheels)]
  })
}
