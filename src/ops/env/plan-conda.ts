/**
 * What env would do about a conda environment on each host: the whole prefix of the host that is followed, at the same path,
 * where it needs no relocation, no solver, no channel, and no conda. Pure.
 */

import { type Known, knownValue } from '../kernel/fact.ts'
import { pathWord } from '../kernel/files.ts'
import { type Action, type Operation, operationId, type Verdict } from '../kernel/operation.ts'
import { MARK_FILE, type PrefixFacts, type SystemFacts } from './facts.ts'
import { removeParcel } from './parcel.ts'
import {
  blocked,
  type EnvWorld,
  fileTrouble,
  nothing,
  type OwnFacts,
  onKnown,
  operation,
  sharedSentence,
  step,
  steps,
} from './plan.ts'
import { AREA, contentOf, type EnvWanted, parcelOf } from './wanted.ts'

type Wanted = EnvWanted<'conda'>
type Prefix = Extract<PrefixFacts, { kind: 'venv' | 'conda' }>

const TITLE = 'conda environment'
const MOVE_TIMEOUT_MS = 60 * 60_000

const prefixOf = (own: OwnFacts): Known<PrefixFacts> => own.content as Known<PrefixFacts>

export function planCondaUp(wanted: Wanted, { facts }: EnvWorld): Operation[] {
  const trouble = fileTrouble(wanted)
  if (trouble !== undefined) return trouble
  const { spec, sharedBy } = wanted
  const source = facts.get(spec.from)?.facts
  const followed = source === undefined ? undefined : knownValue(prefixOf(source))
  const prefix = followed !== undefined && 'packages' in followed ? followed : undefined
  const system = source === undefined ? undefined : knownValue(source.system)
  const takes = [...facts].flatMap(([host, { facts: own }]) => {
    if (host === spec.from) return []
    const owner = sharedBy.get(host)
    if (owner !== undefined) {
      return [operation('conda', host, TITLE, nothing(sharedSentence(owner)))]
    }
    const verdict =
      prefix === undefined
        ? blocked(
            host,
            'nothing-to-follow',
            `${spec.from} has no conda environment ${spec.name} that could be followed`,
          )
        : onKnown(host, TITLE, prefixOf(own), (content) =>
            takeVerdict(wanted, host, content, prefix, isSameMachine(knownValue(own.system), system)),
          )
    return [operation('conda', host, TITLE, verdict, [operationId(AREA, 'file', spec.from)])]
  })
  const isCarried = takes.some(({ verdict }) => verdict.kind === 'steps')
  return [
    ...(source === undefined ? [] : [followedOperation(wanted, source)]),
    ...(isCarried && prefix !== undefined ? [pack(wanted, prefix)] : []),
    ...takes,
    ...tidy(wanted, source, takes, isCarried),
  ]
}

function isSameMachine(one: SystemFacts | undefined, two: SystemFacts | undefined): boolean {
  return one === undefined || two === undefined || one.architecture === two.architecture
}

function followedOperation({ spec }: Wanted, source: OwnFacts): Operation {
  const { from: host, name, prefix, file } = spec
  const verdict = onKnown(host, TITLE, prefixOf(source), (content) => {
    if ('packages' in content) return nothing(`it is the one that the others follow, ${content.path}`)
    const place = prefix === undefined ? `--name ${name}` : `--prefix ${prefix}`
    const hint = `Make it there: conda env create ${place}${file === undefined ? '' : ` --file ${file}`}`
    return blocked(host, 'nothing-to-follow', `there is no conda environment ${prefix ?? name}`, hint)
  })
  return operation('conda', host, TITLE, verdict)
}

function takeVerdict(wanted: Wanted, host: string, content: PrefixFacts, followed: Prefix, isSame: boolean): Verdict {
  const { from } = wanted.spec
  const { path } = followed
  if (!isSame) return blocked(host, 'architecture', `its processor is not the kind that ${from} has`)
  if (content.kind === 'other') return blocked(host, 'in-the-way', `${path}: ${content.because}`, 'Move it away.')
  if ('packages' in content && content.path !== path) {
    const cause = `it is ${content.path} here and ${path} on ${from}: conda environments cannot be moved`
    return blocked(host, 'elsewhere', cause, 'Give its prefix in hosts.yaml, the same for all.')
  }
  const changes = 'packages' in content ? differences(content, followed) : [`+ ${path}`]
  if (changes.length === 0) return nothing(`${path} holds the ${followed.packages.size} packages of ${from}`)
  const isThere = 'packages' in content
  const run = unpackPrefix(path, parcelOf(wanted), from, isThere && content.made === undefined)
  const take = { title: `${isThere ? 'replace' : 'make'} ${path} by what ${from} has`, changes, run }
  return steps(isThere ? 'differs' : 'missing', [step('conda', host, 'take', take)])
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

function pack(wanted: Wanted, { path }: Prefix): Operation {
  const host = wanted.spec.from
  const [parcel, content] = [parcelOf(wanted), contentOf(wanted)]
  const run: Action = {
    script: `d=${pathWord(parcel)}
umask 077
mkdir -p "$d" || exit 1
tar -C ${pathWord(path)} --exclude ./${MARK_FILE} -cf "$d/prefix.tar.part" . || { rm -f "$d/prefix.tar.part"; exit 1; }
mv -f "$d/prefix.tar.part" "$d/prefix.tar" && echo 'prefix # prefix.tar' > "$d/${content}"`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
  const verdict = steps('missing', [
    step('file', host, 'pack', { title: `pack ${path} for the others`, changes: [`+ ${parcel}`], run }),
  ])
  return operation('file', host, 'environment as a file', verdict, [operationId(AREA, 'conda', host)])
}

/** Beside the old one, then in its place; one that is not Muster's is kept as PREFIX.muster-before. */
function unpackPrefix(path: string, parcel: string, from: string, isKept: boolean): Action {
  const away = isKept
    ? `[ ! -e "$p" ] || { [ ! -e "$p.muster-before" ] && mv "$p" "$p.muster-before"; } || { echo "$p.muster-before is in the way" >&2; exit 1; }`
    : `[ ! -e "$p" ] || mv "$p" "$p.muster-old" || exit 1`
  return {
    files: { from, path: parcel, to: parcel },
    script: `umask 022
d=${pathWord(parcel)} p=${pathWord(path)}
rm -rf "$p.muster-new" "$p.muster-old" || exit 1
mkdir -p "$p.muster-new" && echo conda > "$p.muster-new/${MARK_FILE}" || exit 1
tar -C "$p.muster-new" -xpf "$d/prefix.tar" || { rm -rf "$p.muster-new"; exit 1; }
${away}
mv "$p.muster-new" "$p" || exit 1
rm -rf "$p.muster-old"
${removeParcel(parcel)}`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** The file goes when all have it, also one that a run which was cut left there. */
function tidy(
  wanted: Wanted,
  source: OwnFacts | undefined,
  takes: readonly Operation[],
  isCarried: boolean,
): Operation[] {
  const isLeft = source !== undefined && knownValue(source.parcel)?.isThere === true
  if (source === undefined || (!isCarried && !isLeft)) return []
  const host = wanted.spec.from
  const parcel = parcelOf(wanted)
  const remove = {
    title: 'remove the file of the environment',
    changes: [`- ${parcel}`],
    run: { script: removeParcel(parcel) },
  }
  const verdict = steps('differs', [step('tidy', host, 'remove', remove)])
  return [
    operation(
      'tidy',
      host,
      'environment as a file',
      verdict,
      takes.map(({ id }) => id),
    ),
  ]
}

export function planCondaDown(wanted: Wanted, { facts }: EnvWorld): Operation[] {
  const parcel = parcelOf(wanted)
  return [...facts].map(([host, { facts: own }]) => {
    const verdict = onKnown(host, TITLE, prefixOf(own), (content) => {
      const owner = wanted.sharedBy.get(host)
      if (owner !== undefined) return nothing(sharedSentence(owner))
      const isOwn = 'packages' in content && content.made !== undefined
      const all = [
        ...(isOwn ? [step('conda', host, 'remove', removal(content.path))] : []),
        ...(knownValue(own.parcel)?.isThere === true
          ? [
              step('conda', host, 'file', {
                title: `remove ${parcel}`,
                changes: [`- ${parcel}`],
                run: { script: removeParcel(parcel) },
              }),
            ]
          : []),
      ]
      if (all.length > 0) return steps('differs', all)
      return nothing('packages' in content ? `${content.path} was not made by Muster: it stays` : 'it is not there')
    })
    return operation('conda', host, TITLE, verdict)
  })
}

/** What was there before takes its place again. */
function removal(path: string) {
  const script = `p=${pathWord(path)}
[ -f "$p/${MARK_FILE}" ] || { echo "$p was not made by Muster" >&2; exit 1; }
find "$p" -mindepth 1 -maxdepth 1 ! -name ${MARK_FILE} ! -name conda-meta -exec rm -rf {} + && rm -rf "$p"/conda-meta/* || exit 1
rm -rf "$p" && { [ ! -e "$p.muster-before" ] || mv "$p.muster-before" "$p"; }`
  const changes = [`- ${path}`, `+ ${path} as it was before, where there was one`]
  return { title: `remove ${path}`, changes, run: { script, timeoutMs: MOVE_TIMEOUT_MS } }
}
