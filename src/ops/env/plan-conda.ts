/**
 * The plan for a conda environment on each host: made once on the followed host, and its prefix copied to the same path on the
 * others, which then need no relocation, solver, channel or conda. Pure.
 */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { knownValue } from '../kernel/fact.ts'
import { blocked, ifKnown, nothing, type Operation, type Step, steps, type Verdict } from '../kernel/operation.ts'
import {
  COPIED,
  finishRemoval,
  isPackedPrefix,
  makeCondaPrefix,
  packPrefix,
  removePrefix,
  unpackArchive,
  unpackPrefix,
} from './conda-scripts.ts'
import { MARK_FILE, NO_CONDA, type PrefixFacts, removeParcel } from './facts.ts'
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
import { contentOf, type EnvWanted, parcelOf } from './wanted.ts'

type Wanted = EnvWanted<'conda'>

const TITLE = 'conda environment'
const LONGEST_PATH = 1000

export function planCondaUp(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { facts } = areaFacts
  const { from } = wanted.spec
  const elsewhere = keptElsewhere('up', wanted, areaFacts)
  const source = facts.get(from)?.facts
  const followed = knownValue(source && prefixFactOf(source))
  const there = followed !== undefined && 'packages' in followed ? followed : undefined
  // One that another host made is made again first, and then is a different one.
  const prefix = there?.made === COPIED ? undefined : there
  const newPath = followed?.kind === 'none' ? newPathOf(wanted) : undefined
  const path = there === undefined ? newPath : followedPathOf(wanted, there)
  const takes = [...facts].flatMap(([host, { facts: own }]) => {
    if (host === from) return []
    const kept = elsewhere.get(host)
    if (kept !== undefined) return [operation('conda', host, TITLE, kept)]
    const verdict =
      path === undefined
        ? notFollowed(wanted, host, there)
        : ifKnown(host, TITLE, prefixFactOf(own), (content) =>
            takeVerdict(wanted, host, content, { path, prefix }, isSameMachine(own, source)),
          )
    return [operation('conda', host, TITLE, verdict, [envId('file', from)])]
  })
  const isCarried = takes.some(({ verdict }) => verdict.kind === 'steps')
  return [
    ...(source === undefined ? [] : [followedOperation(wanted, source)]),
    ...(isCarried && path !== undefined ? [pack(wanted, path)] : []),
    ...takes,
    ...tidy(wanted, areaFacts, takes, isCarried),
  ]
}

/** Also where one of the two is unknown. */
function isSameMachine(own: OwnFacts, source: OwnFacts | undefined): boolean {
  const [one, two] = [own, source].map((facts) => knownValue(facts?.system)?.architecture)
  return one === undefined || two === undefined || one === two
}

/** The path to make it at; conda finds names there in every home. Undefined: no file says what to install. */
function newPathOf({ spec, file }: Wanted): string | undefined {
  return file?.kind === 'text' ? (spec.prefix ?? `~/.conda/envs/${spec.name}`) : undefined
}

/**
 * Where the others get it. That a host says where it has a named environment is no reason to write there on the others, unless it is
 * where conda finds this name: in a directory `envs`. Undefined: it is elsewhere.
 */
function followedPathOf({ spec }: Wanted, { path }: Prefix): string | undefined {
  if (spec.prefix !== undefined) return spec.prefix
  const parts = path.split('/')
  const isUsual = parts.at(-1) === spec.name && parts.at(-2) === 'envs' && !parts.some((each) => /^\.\.?$/.test(each))
  return isUsual && path.startsWith('/') && path.length <= LONGEST_PATH && printable(path) === path ? path : undefined
}

/** `there`: the environment of the followed host. */
function notFollowed({ spec: { from, name } }: Wanted, host: string, there: Prefix | undefined): Verdict {
  if (there === undefined) {
    return blocked(host, 'nothing-to-follow', `${from} has no conda environment ${name} for the others to follow`)
  }
  const said = printable(there.path.slice(0, LONGEST_PATH))
  const cause = `${from} has ${name} at ${said}, which is no directory envs/${name}: the other hosts do not follow it there`
  return blocked(host, 'unusual-path', cause, 'If it is right, give its prefix in hosts.yaml.')
}

/** Blocked if something else is at the path. */
function inTheWay(host: string, path: string, content: PrefixFacts): Verdict | undefined {
  const isTaken =
    content.kind === 'none'
      ? content.taken?.some((each) => isPath(each, path))
      : content.kind === 'venv' && !content.made?.startsWith(COPIED) && isPath(content.path, path)
  const because = content.kind === 'other' ? content.because : isTaken ? 'it holds something else' : undefined
  return because === undefined ? undefined : blocked(host, 'in-the-way', `${path}: ${because}`, 'Move it away.')
}

/** Blocked if the host cannot make it from its file. An archive needs no conda. */
function noTool({ spec, file }: Wanted, source: OwnFacts): Verdict | undefined {
  if (file === undefined || isPackedPrefix(file.path) || knownValue(source.condaTool) !== false) return undefined
  const hint = `Install micromamba on ${spec.from}, or name an archive that conda-pack made elsewhere (file).`
  return blocked(spec.from, 'no-conda', NO_CONDA, hint)
}

function followedOperation(wanted: Wanted, source: OwnFacts): Operation {
  const { spec, file: declared, key } = wanted
  const { from: host, name, prefix } = spec
  const verdict = ifKnown(host, TITLE, prefixFactOf(source), (content) => {
    const isCopied = 'packages' in content && content.made === COPIED
    if ('packages' in content && !isCopied) return nothing(`the other hosts follow it: ${content.path}`)
    const path = isCopied ? newPathOf(wanted) && content.path : newPathOf(wanted)
    if (isCopied && path === undefined) {
      const hint = `To follow it as it is, delete ${content.path}/${MARK_FILE} on ${host}. To replace it, run muster env down and create it there.`
      return blocked(host, 'of-other-host', `${content.path} was copied from another host`, hint)
    }
    const blocker = path === undefined ? undefined : (inTheWay(host, path, content) ?? noTool(wanted, source))
    if (blocker !== undefined) return blocker
    if (path !== undefined && declared?.kind === 'text') {
      const isYaml = /\.ya?ml$/i.test(declared.path)
      const title = `create ${path} from ${declared.path}`
      const run = isPackedPrefix(declared.path)
        ? unpackArchive(path, declared.path, parcelOf(wanted), key)
        : makeCondaPrefix({ prefix: path, text: declared.text, isYaml, key })
      if (!isCopied) return steps('missing', [{ id: 'make', title, changes: [`+ ${path}`], run }])
      const changes = [`~ ${path}: all of it, because another host made it`]
      return steps('differs', [{ id: 'make', title, changes, run }])
    }
    const place = prefix === undefined ? `--name ${name}` : `--prefix ${prefix}`
    const hint = `Create it there (conda create ${place}), or name its packages in hosts.yaml (file).`
    return blocked(host, 'nothing-to-follow', `there is no conda environment ${prefix ?? name}`, hint)
  })
  return operation('conda', host, TITLE, verdict)
}

/** `followed`: the path, and the environment there; without it, it will be made. */
function takeVerdict(
  wanted: Wanted,
  host: string,
  content: PrefixFacts,
  { path, prefix: followed }: { readonly path: string; readonly prefix: Prefix | undefined },
  isSame: boolean,
): Verdict {
  const { from } = wanted.spec
  if (!isSame) return blocked(host, 'architecture', `its processor architecture differs from that of ${from}`)
  const blocker = inTheWay(host, path, content)
  if (blocker !== undefined) return blocker
  if ('packages' in content && !isPath(content.path, path)) {
    const cause = `it is ${content.path} here and ${path} on ${from}: conda environments cannot be moved`
    return blocked(host, 'elsewhere', cause, 'Give its prefix in hosts.yaml, the same for all.')
  }
  const isThere = 'packages' in content
  const changes = changesOf(content, followed, path)
  if (followed !== undefined && changes.length === 0) {
    return nothing(`${path} holds ${counted(followed.packages.size, 'package')} of ${from}`)
  }
  const title = `${isThere ? 'replace' : 'create'} ${path} ${isThere ? 'with' : 'from'} the environment of ${from}`
  const run = unpackPrefix(path, parcelOf(wanted), from, isThere)
  const isOwn = isThere && content.made !== undefined
  const gone = isOwn ? [`- all files in ${path} that are not on ${from}`] : []
  return steps(isThere ? 'differs' : 'missing', [{ id: 'take', title, changes: [...changes, ...gone], run }])
}

function isPath(absolute: string, path: string): boolean {
  return path.startsWith('~/') ? absolute.endsWith(path.slice(1)) : absolute === path
}

function changesOf(content: PrefixFacts, followed: Prefix | undefined, path: string): string[] {
  if (!('packages' in content)) return [`+ ${path}`]
  if (followed === undefined) return [`~ ${path}: all of it`]
  const [there, wanted] = [content, followed].map(
    ({ packages }) =>
      new Map([...packages].map(([name, { version, build = '' }]) => [name, `${version} ${build}`.trim()])),
  )
  const python = content.python === followed.python ? [] : [`~ Python ${content.python ?? 'that does not run'}`]
  return [...python, ...packageChanges(there ?? new Map(), wanted ?? new Map())]
}

function pack(wanted: Wanted, path: string): Operation {
  const host = wanted.spec.from
  const parcel = parcelOf(wanted)
  const run = packPrefix(path, parcel, contentOf(wanted))
  const step = { id: 'pack', title: `pack ${path} for the others`, changes: [`+ ${parcel}`], run }
  return operation('file', host, 'environment as a file', steps('missing', [step]), [envId('conda', host)])
}

const isLeft = (own: OwnFacts | undefined) => knownValue(own?.parcel)?.isThere === true

/** Removes the file when all hosts have it, also one that an interrupted run left. */
function tidy(wanted: Wanted, areaFacts: EnvAreaFacts, takes: readonly Operation[], isCarried: boolean): Operation[] {
  const { from } = wanted.spec
  const elsewhere = keptElsewhere('up', wanted, areaFacts, 'parcel')
  const isLeftOn = (host: string) => isLeft(areaFacts.facts.get(host)?.facts)
  const tidied = (host: string, after: readonly string[] = []) =>
    operation('tidy', host, 'environment as a file', steps('differs', [removal(wanted, 'remove')]), after)
  const cut = takes.filter(({ host, verdict }) => verdict.kind === 'nothing' && isLeftOn(host) && !elsewhere.has(host))
  const after = takes.map(({ id }) => id)
  const isSource = areaFacts.facts.has(from) && (isCarried || isLeftOn(from))
  return [...cut.map(({ host }) => tidied(host)), ...(isSource ? [tidied(from, after)] : [])]
}

function removal(wanted: Wanted, id: string): Step {
  const parcel = parcelOf(wanted)
  const run = { script: removeParcel(parcel) }
  return { id, title: 'remove the file of the environment', changes: [`- ${parcel}`], run }
}

export function planCondaDown(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const elsewhere = keptElsewhere('down', wanted, areaFacts)
  return [...areaFacts.facts].map(([host, { facts: own }]) => {
    const verdict = ifKnown(host, TITLE, prefixFactOf(own), (content) => {
      const otherwise =
        'packages' in content ? `${content.path} was not created by Muster: it stays` : 'it is not there'
      const all = [restoring(content), isLeft(own) && removal(wanted, 'file')]
      return elsewhere.get(host) ?? steps('differs', all, otherwise)
    })
    return operation('conda', host, TITLE, verdict)
  })
}

/** Removes what Muster made, also after an interruption, and restores what was there before. */
function restoring(content: PrefixFacts): Step | undefined {
  if ('packages' in content) {
    const { path, made } = content
    if (made === undefined) return undefined
    const changes = [`- ${path}`, `+ ${path} as it was before, where there was one`]
    return { id: 'remove', title: `remove ${path}`, changes, run: removePrefix(path) }
  }
  if (content.kind !== 'none' || content.left === undefined) return undefined
  const { what, path } = content.left
  const half = { title: `remove ${path}, which is incomplete`, changes: [`- ${path}`] }
  const before = { title: `restore ${path} as it was before`, changes: [`+ ${path}`] }
  return { id: 'finish', ...(what === 'before' ? before : half), run: finishRemoval(path) }
}
