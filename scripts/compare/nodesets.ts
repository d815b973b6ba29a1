/**
 * Compares host sets with ClusterShell's node sets on every case of ClusterShell's own tests, which run in a checkout of it:
 *
 *     node --import tsx scripts/compare/nodesets.ts CHECKOUT
 *
 * An expression agrees if both read the same names from it, or both refuse it; a folded set agrees if the text is the same. Prints the
 * numbers and each disagreement once. docs/import.md says why they are there. Needs Python; nothing is written into the checkout.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { messageOf } from '../../src/base/errors.ts'
import { printable } from '../../src/base/printable.ts'
import { expandHostSet, foldHostSet, type HostSetContext } from '../../src/inventory/host-set.ts'

/** Groups and all names as the resolver of a test answered; `names` null: too many to write down. */
type Expression = {
  readonly set: string
  readonly names?: readonly string[] | null
  readonly error?: string
  /** False: a set without groups, where @ and * are letters of names. */
  readonly hasGroups: boolean
  readonly groups: Readonly<Record<string, readonly string[]>>
  readonly all?: readonly string[]
}
type Folded = { readonly fold: readonly string[] | null; readonly text: string }

function contextOf({ groups, all = groups.all }: Expression): HostSetContext {
  const known = new Map(Object.entries(groups))
  /** A group of a source finds the groups beside it first. */
  const contextIn = (source: string): HostSetContext => ({
    groupNames: [...known.keys()],
    group: (name) => {
      const key = [source + name, name].find((each) => known.has(each)) ?? ''
      const members = known.get(key)
      return members && expandAll(members, contextIn(/^[^:]+:/.exec(key)?.[0] ?? ''))
    },
  })
  const context = contextIn('')
  return all === undefined ? context : { ...context, names: expandAll(all, context) }
}

const expandAll = (sets: readonly string[], context: HostSetContext): string[] =>
  sets.flatMap((set) => (set === '' ? [] : expandHostSet(set, context)))

const isSame = (left: Iterable<string>, right: Iterable<string>): boolean =>
  JSON.stringify([...new Set(left)].sort()) === JSON.stringify([...new Set(right)].sort())

const short = (text: string): string => (text.length > 100 ? `${text.slice(0, 97)}…` : text)
const show = (names: readonly string[]): string => `${names.length}: ${short(names.join(' '))}`

/** Undefined: they agree. */
function differenceOf(record: Expression): string | undefined {
  const { set, names, error } = record
  let ours: string[]
  try {
    ours = expandHostSet(set, contextOf(record))
  } catch (reason) {
    if (error !== undefined) return undefined
    return `ClusterShell reads ${names ? show(names) : 'many names'}; Muster: ${messageOf(reason).replace(/^host set .*?: at/s, 'at')}`
  }
  if (error !== undefined) return `ClusterShell: ${error}; Muster reads ${show(ours)}`
  return isSame(ours, names ?? ours)
    ? undefined
    : `ClusterShell reads ${names ? show(names) : ''}; Muster ${show(ours)}`
}

/** What Muster reads from another text: the same set, another one, or none. Undefined: the texts are the same. */
function foldDifferenceOf({ fold, text }: Folded): { readonly text: string; readonly isSameSet: boolean } | undefined {
  // Names of groups and patterns are members of a set without groups.
  if (fold === null || fold.length === 0 || fold.some((name) => /^@|[*?]/.test(name))) return undefined
  const ours = foldHostSet(fold)
  if (ours === text) return undefined
  if (!isSame(expandHostSet(ours), fold)) throw new Error(`${ours} is not read as it was written`)
  const context: HostSetContext = { names: [] }
  let isSameSet = false
  try {
    isSameSet = isSame(expandHostSet(text, context), fold)
  } catch {
    // It is no expression here.
  }
  return {
    text: `Muster writes ${short(ours)}${isSameSet ? '' : "; it does not read ClusterShell's text as these names"}`,
    isSameSet,
  }
}

async function main(checkout: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'muster-nodesets-'))
  const expressions = { cases: 0, plain: 0, agree: 0, distinct: new Map<string, string>() }
  const folds = { cases: 0, sameText: 0, sameSet: 0, distinct: new Map<string, string>() }
  try {
    const child = spawn('python3', [join(import.meta.dirname, 'record-nodesets.py'), checkout, '3'], {
      env: { ...process.env, HOME: directory, TMPDIR: directory },
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    })
    const ended = new Promise<number | null>((done, fail) => child.on('close', done).on('error', fail))
    for await (const line of createInterface({ input: child.stdio[3] as Readable })) {
      const record = JSON.parse(line) as Expression | Folded
      if ('set' in record) {
        const isPlain = !record.hasGroups && /[@*?]/.test(record.set)
        const difference = isPlain ? undefined : differenceOf(record)
        expressions.cases += 1
        if (isPlain) expressions.plain += 1
        else if (difference === undefined) expressions.agree += 1
        else expressions.distinct.set(record.set, difference)
      } else {
        const difference = foldDifferenceOf(record)
        folds.cases += 1
        if (difference === undefined) folds.sameText += 1
        else folds.distinct.set(record.text, difference.text)
        if (difference?.isSameSet) folds.sameSet += 1
      }
    }
    if ((await ended) !== 0) throw new Error('the tests of ClusterShell did not end well')
  } finally {
    rmSync(directory, { recursive: true })
  }
  for (const { distinct } of [expressions, folds])
    for (const [text, difference] of distinct)
      console.log(`${printable(short(JSON.stringify(text)))}\n    ${printable(difference)}`)
  console.log(
    `expressions: ${expressions.agree} of ${expressions.cases} agree; ${expressions.plain} use @ or * as letters of names; ${expressions.distinct.size} different ones do not agree`,
  )
  console.log(
    `folded sets: ${folds.sameText} of ${folds.cases} have the same text, ${folds.sameSet} another text for the same set; ${folds.distinct.size} different texts`,
  )
}

const [checkout] = process.argv.slice(2)
if (checkout === undefined) {
  console.error('Usage: nodesets.ts CHECKOUT, a checkout of https://github.com/cea-hpc/clustershell')
  process.exitCode = 2
} else await main(checkout)
