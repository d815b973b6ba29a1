/**
 * The plan for a conda environment on each host: made once on the followed host, and its prefix copied to the same path on the
 * others, which then need no relocation, solver, channel or conda. Pure.
 */

import { type Known, knownValue } from '../kernel/fact.ts'
import { ifKnown, type Operation, operationId, type Step, type Verdict } from '../kernel/operation.ts'
import {
  finishRemoval,
  isPackedPrefix,
  makeCondaPrefix,
  packPrefix,
  removePrefix,
  unpackArchive,
  unpackPrefix,
} from './conda-scripts.ts'
import { type PrefixFacts, removeParcel, type SystemFacts } from './facts.ts'
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
import { AREA, contentOf, type EnvWanted, parcelOf } from './wanted.ts'

type Wanted = EnvWanted<'conda'>
type Prefix = Extract<PrefixFacts, { kind: 'venv' | 'conda' }>

const TITLE = 'conda environment'
const prefixOf = (own: OwnFacts): Known<PrefixFacts> => own.content as Known<PrefixFacts>

export function planCondaUp(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { facts } = areaFacts
  const { spec } = wanted
  const elsewhere = keptElsewhere('up', wanted, areaFacts)
  const source = facts.get(spec.from)?.facts
  const followed = source === undefined ? undefined : knownValue(prefixOf(source))
  const prefix = followed !== undefined && 'packages' in followed ? followed : undefined
  const path = prefix?.path ?? (followed?.kind === 'none' ? newPathOf(wanted) : undefined)
  const system = source === undefined ? undefined : knownValue(source.system)
  const takes = [...facts].flatMap(([host, { facts: own }]) => {
    if (host === spec.from) return []
    const kept = elsewhere.get(host)
    if (kept !== undefined) return [operation('conda', host, TITLE, keptBy(kept))]
    const verdict =
      path === undefined
        ? blocked(
            host,
            'nothing-to-follow',
            `${spec.from} has no conda environment ${spec.name} for the others to follow`,
          )
        : ifKnown(host, TITLE, prefixOf(own), (content) =>
            takeVerdict(wanted, host, content, prefix ?? path, isSameMachine(knownValue(own.system), system)),
          )
    return [operation('conda', host, TITLE, verdict, [operationId(AREA, 'file', spec.from)])]
  })
  const isCarried = takes.some(({ verdict }) => verdict.kind === 'steps')
  return [
    ...(source === undefined ? [] : [followedOperation(wanted, source)]),
    ...(isCarried && path !== undefined ? [pack(wanted, path)] : []),
    ...takes,
    ...tidy(wanted, areaFacts, takes, isCarried),
  ]
}

function isSameMachine(one: SystemFacts | undefined, two: SystemFacts | undefined): boolean {
  return one === undefined || two === undefined || one.architecture === two.architecture
}

/** The path to make it at; conda finds names there in every home. Undefined: no file says what to install. */
function newPathOf({ spec, file }: Wanted): string | undefined {
  return file?.kind === 'text' ? (spec.prefix ?? `~/.conda/envs/${spec.name}`) : undefined
}

function followedOperation(wanted: Wanted, source: OwnFacts): Operation {
  const { spec, file: declared, key } = wanted
  const { from: host, name, prefix } = spec
  const verdict = ifKnown(host, TITLE, prefixOf(source), (content) => {
    if ('packages' in content) return nothing(`the other hosts follow it: ${content.path}`)
    const path = newPathOf(wanted)
    if (path !== undefined && content.kind === 'other') {
      return blocked(host, 'in-the-way', `${path}: ${content.because}`, 'Move it away.')
    }
    if (path !== undefined && declared?.kind === 'text') {
      const isYaml = /\.ya?ml$/i.test(declared.path)
      const title = `create ${path} from ${declared.path}`
      const run = isPackedPrefix(declared.path)
        ? unpackArchive(path, declared.path, parcelOf(wanted), key)
        : makeCondaPrefix({ prefix: path, text: declared.text, isYaml, key })
      return oneStep('missing', 'conda', host, 'make', { title, changes: [`+ ${path}`], run })
    }
    const place = prefix === undefined ? `--name ${name}` : `--prefix ${prefix}`
    const hint = `Create it there (conda create ${place}), or name its packages in hosts.yaml (file).`
    return blocked(host, 'nothing-to-follow', `there is no conda environment ${prefix ?? name}`, hint)
  })
  return operation('conda', host, TITLE, verdict)
}

/** `followed`: the environment that the others follow, or the path where it will be made. */
function takeVerdict(
  wanted: Wanted,
  host: string,
  content: PrefixFacts,
  followed: Prefix | string,
  isSame: boolean,
): Verdict {
  const { from } = wanted.spec
  const path = typeof followed === 'string' ? followed : followed.path
  if (!isSame) return blocked(host, 'architecture', `its processor architecture differs from that of ${from}`)
  if (content.kind === 'other') return blocked(host, 'in-the-way', `${path}: ${content.because}`, 'Move it away.')
  if ('packages' in content && !isPath(content.path, path)) {
    const cause = `it is ${content.path} here and ${path} on ${from}: conda environments cannot be moved`
    return blocked(host, 'elsewhere', cause, 'Give its prefix in hosts.yaml, the same for all.')
  }
  const isThere = 'packages' in content
  const changes = changesOf(content, followed, path)
  if (typeof followed !== 'string' && changes.length === 0) {
    return nothing(`${path} holds the ${followed.packages.size} packages of ${from}`)
  }
  const run = unpackPrefix(path, parcelOf(wanted), from, isThere && content.made === undefined)
  const take = {
    title: `${isThere ? 'replace' : 'create'} ${path} ${isThere ? 'with' : 'from'} the environment of ${from}`,
    changes,
    run,
  }
  return oneStep(isThere ? 'differs' : 'missing', 'conda', host, 'take', take)
}

function isPath(absolute: string, path: string): boolean {
  return path.startsWith('~/') ? absolute.endsWith(path.slice(1)) : absolute === path
}

function changesOf(content: PrefixFacts, followed: Prefix | string, path: string): string[] {
  if (!('packages' in content)) return [`+ ${path}`]
  return typeof followed === 'string' ? [`~ ${path}: all of it`] : differences(content, followed)
}

function differences(content: Prefix, followed: Prefix): string[] {
  const word = ({ version, build = '' }: { version: string; build?: string }) => `${version} ${build}`.trim()
  const there = [...followed.packages].flatMap(([name, one]) => {
    const own = content.packages.get(name)
    if (own === undefined) return [`+ ${name} ${word(one)}`]
    return word(own) === word(one) ? [] : [`~ ${name} ${word(own)} → ${word(one)}`]
  })
  const extra = [...content.packages].flatMap(([name, own]) =>
    followed.packages.has(name) ? [] : [`- ${name} ${word(own)}`],
  )
  const python = content.python === followed.python ? [] : [`~ Python ${content.python ?? 'that does not run'}`]
  return [...python, ...there, ...extra]
}

function pack(wanted: Wanted, path: string): Operation {
  const host = wanted.spec.from
  const parcel = parcelOf(wanted)
  const run = packPrefix(path, parcel, contentOf(wanted))
  const verdict = oneStep('missing', 'file', host, 'pack', {
    title: `pack ${path} for the others`,
    changes: [`+ ${parcel}`],
    run,
  })
  return operation('file', host, 'environment as a file', verdict, [operationId(AREA, 'conda', host)])
}

/** Removes the file when all hosts have it, also one that an interrupted run left. */
function tidy(wanted: Wanted, areaFacts: EnvAreaFacts, takes: readonly Operation[], isCarried: boolean): Operation[] {
  const { facts } = areaFacts
  const { from } = wanted.spec
  const elsewhere = keptElsewhere('up', wanted, areaFacts, 'parcel')
  const isLeft = (host: string) => {
    const own = facts.get(host)?.facts
    return own !== undefined && knownValue(own.parcel)?.isThere === true
  }
  const tidied = (host: string, after: readonly string[] = []) =>
    operation('tidy', host, 'environment as a file', oneStep('differs', 'tidy', host, 'remove', removal(wanted)), after)
  const cut = takes.filter(({ host, verdict }) => verdict.kind === 'nothing' && isLeft(host) && !elsewhere.has(host))
  const all = takes.map(({ id }) => id)
  return [
    ...cut.map(({ host }) => tidied(host)),
    ...(facts.has(from) && (isCarried || isLeft(from)) ? [tidied(from, all)] : []),
  ]
}

function removal(wanted: Wanted): Omit<Step, 'id'> {
  const parcel = parcelOf(wanted)
  const run = { script: removeParcel(parcel) }
  return { title: 'remove the file of the environment', changes: [`- ${parcel}`], run }
}

export function planCondaDown(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { facts } = areaFacts
  const elsewhere = keptElsewhere('down', wanted, areaFacts)
  return [...facts].map(([host, { facts: own }]) => {
    const verdict = ifKnown(host, TITLE, prefixOf(own), (content) => {
      const kept = elsewhere.get(host)
      if (kept !== undefined) return keptBy(kept)
      const all = [
        ...restoring(host, content),
        ...(knownValue(own.parcel)?.isThere === true ? [step('conda', host, 'file', removal(wanted))] : []),
      ]
      if (all.length > 0) return steps('differs', all)
      return nothing('packages' in content ? `${content.path} was not created by Muster: it stays` : 'it is not there')
    })
    return operation('conda', host, TITLE, verdict)
  })
}

/** Removes what Muster made, also after an interruption, and restores what was there before. */
function restoring(host: string, content: PrefixFacts): Step[] {
  if ('packages' in content) {
    const { path, made } = content
    if (made === undefined) return []
    const changes = [`- ${path}`, `+ ${path} as it was before, where there was one`]
    return [step('conda', host, 'remove', { title: `remove ${path}`, changes, run: removePrefix(path) })]
  }
  if (content.kind !== 'none' || content.left === undefined) return []
  const { what, path } = content.left
  const half = { title: `remove ${path}, which is incomplete`, changes: [`- ${path}`] }
  const before = { title: `restore ${path} as it was before`, changes: [`+ ${path}`] }
  return [step('conda', host, 'finish', { ...(what === 'half' ? half : before), run: finishRemoval(path) })]
}
