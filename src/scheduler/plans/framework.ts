/**
 * What a framework asks Ray (or its hosts) for, as pure functions of its options. A framework is a file of this folder that exports
 * `framework`, and a line in `frameworks.ts`.
 */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Strategy } from '../model/resources.ts'

/** By resource, as Ray names them: CPU, GPU, memory (bytes), or a custom one. Without zeros. */
export type Amounts = Readonly<Record<string, number>>

export type PlanGroup = {
  readonly name: string
  readonly bundles: readonly Amounts[]
  readonly strategy: Strategy
  /** Equal groups of one family are shown together. */
  readonly family?: string
  /** What runs in it, if that is more than its name says. */
  readonly sharedBy?: readonly string[]
  /** Actors without a placement group, each placed by itself. */
  readonly isLoose?: boolean
  /** On the host of the framework's first process, on the first other host that holds it, or on the first that has no group yet. */
  readonly on?: 'driver' | 'others' | 'unused'
}

export type GroupsPlan = {
  /** In the order in which the framework takes them. */
  readonly groups: readonly PlanGroup[]
  /** What happens if a group does not fit: `queues` its work behind the groups before it, or the framework never starts. */
  readonly shortage: 'hangs' | 'fails' | 'queues'
  /** Why the framework gives up at once. `freeGpus`: by host, the driver's first. */
  refuses?(freeGpus: readonly number[]): string | undefined
}

export type Value = number | string | boolean | Amounts | undefined
/** By word. */
export type Values = Readonly<Record<string, Value>>

/** An option by the framework's own name. */
export type Word = {
  readonly kind: 'count' | 'amount' | 'text' | 'switch' | 'amounts'
  readonly byDefault?: Value
  /** The same option in another spelling. */
  readonly aliases?: readonly string[]
  /** Its names in earlier versions. */
  readonly old?: readonly string[]
}

/** An option of `muster plan`. `read` throws MusterError `usage`. */
export type PlanFlag = { readonly flags: string; readonly about: string; read(text: string): Values }

export type Framework = {
  /** Package and version that these rules were read from. */
  readonly source: string
  /** A line for --from-command. */
  readonly example: string
  readonly flags: readonly PlanFlag[]
  readonly words: Readonly<Record<string, Word>>
  /** New names of options and calls that do not matter to placement. */
  readonly renamed?: Readonly<Record<string, string>>
  /** As people write it in a command (`--a 1`) or in code (`a=1`). */
  write(word: string, value: Value): string
  /** @throws MusterError `usage` for what the framework itself refuses. */
  plan(values: Values): GroupsPlan
  /** Changes that may make it fit, the mildest first. */
  changes(values: Values): Iterable<Values>
}

const MOST_BUNDLES = 10_000

/** @throws MusterError `usage` */
export function checkSize({ groups }: GroupsPlan): void {
  const count = groups.reduce((sum, { bundles }) => sum + bundles.length, 0)
  if (count > MOST_BUNDLES) throw refusal(`${count} bundles are too many: at most ${MOST_BUNDLES}`)
  for (const { bundles, name } of groups)
    for (const { GPU = 0 } of new Set(bundles))
      if (GPU > 1 && !Number.isInteger(GPU)) throw refusal(`${name}: ${GPU} GPUs: more than one must be a whole number`)
}

export const refusal = (sentence: string, hint?: string) =>
  new MusterError('usage', sentence, hint === undefined ? {} : { hint })

/** The text of a value of this word. @throws MusterError `usage` */
export function parseValue(name: string, { kind, byDefault }: Word, text: string): Value {
  const bare = text.trim().replace(/^(["'])(.*)\1$/, '$2')
  if (kind === 'text' || (bare === 'auto' && byDefault === 'auto')) return bare
  if (kind === 'switch') {
    if (/^(true|1|yes)$/i.test(bare)) return true
    if (/^(false|0|no|none)$/i.test(bare)) return false
    throw refusal(`${name} is ${printable(bare)}: it must be true or false`)
  }
  if (kind === 'amounts') return parseAmounts(name, bare)
  return parseNumber(name, bare, kind)
}

function parseNumber(name: string, text: string, kind: 'count' | 'amount'): number {
  const value = text === '' ? Number.NaN : Number(text)
  if (!Number.isFinite(value) || value < 0 || value > 1e15 || (kind === 'count' && !Number.isInteger(value)))
    throw refusal(`${name} is ${printable(text)}: it must be a ${kind === 'count' ? 'whole ' : ''}number of 0 or more`)
  return value
}

/** `CPU=4,GPU=0.5`, or as Python writes it. */
export function parseAmounts(name: string, text: string): Amounts {
  const parts = text.replace(/^\{|\}$/g, '').split(',')
  return amounts(
    Object.fromEntries(
      parts.flatMap((part) => {
        if (part.trim() === '') return []
        const at = Math.max(part.lastIndexOf('='), part.lastIndexOf(':'))
        const resource = part.slice(0, Math.max(at, 0)).trim().replaceAll(/["']/g, '')
        if (resource === '') throw refusal(`${name} is ${printable(text)}: write it as CPU=4,GPU=0.5`)
        return [[resource, parseNumber(`${name}, ${printable(resource)}`, part.slice(at + 1).trim(), 'amount')]]
      }),
    ),
  )
}

/** Without zeros. */
export const amounts = (all: Amounts): Amounts => Object.fromEntries(Object.entries(all).filter(([, n]) => n !== 0))

/** `count` times the same. @throws MusterError `usage` for an empty one, which Ray refuses. */
export function times(count: number, bundle: Amounts): readonly Amounts[] {
  const one = amounts(bundle)
  if (count > 0 && Object.keys(one).length === 0)
    throw refusal('a bundle asks for nothing, which Ray refuses', 'Give each at least a part of a core or of a GPU.')
  if (count > MOST_BUNDLES) throw refusal(`${count} bundles are too many: at most ${MOST_BUNDLES}`)
  return Array.from({ length: count }, () => one)
}

export const numberOf = (values: Values, word: string): number => (values[word] as number | undefined) ?? 0

/** A flag that sets one word, or several from `1x4`. */
export function flag(flags: string, about: string, words: Framework['words'], ...sets: readonly string[]): PlanFlag {
  return {
    flags,
    about,
    read(text) {
      const parts = sets.length === 1 ? [text] : text.split('x')
      const [name = ''] = flags.split(' ')
      if (parts.length !== sets.length)
        throw refusal(`${name} ${printable(text)}: write it as ${sets.map((_, index) => index + 1).join('x')}`)
      return Object.fromEntries(
        sets.map((word, index) => [word, parseValue(name, words[word] as Word, parts[index] as string)]),
      )
    },
  }
}

/** Smaller numbers, the largest first; at most a few hundred. */
export function* fewer(values: Values, word: string, least = 1): Generator<Values> {
  for (let count = numberOf(values, word) - 1; count >= least; count = Math.min(count - 1, Math.floor(count * 0.97)))
    yield { [word]: count }
}

const STRATEGIES: readonly Strategy[] = ['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD']

/** @throws MusterError `usage` */
export function strategyOf(text: Value): Strategy {
  const strategy = STRATEGIES.find((one) => one === String(text).toUpperCase())
  if (strategy === undefined)
    throw refusal(`unknown strategy: ${printable(String(text))}`, `Strategies: ${STRATEGIES.join(', ')}.`)
  return strategy
}
