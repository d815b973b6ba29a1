/** The text of a plan: for people as a diff of each host, and as JSON. */
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { formatFinding } from './finding.ts'
import type { Operation } from './operation.ts'
import { type Plan, stuckOperations } from './plan.ts'
import type { SharedHome } from './shared-home.ts'

/** The kind of a line: adds, removes, changes, blocks; `head` is the title of an operation, `quiet` is less important than the rest. */
export type LineKind = '+' | '-' | '~' | '!' | 'head' | 'plain' | 'quiet'

/** Printable. */
export type PlanLine = { readonly kind: LineKind; readonly text: string }

export type PaintChange = (kind: LineKind, text: string) => string

/**
 * What changes or is blocked is first, then unreachable hosts, each with its reason, and last what needs nothing. Hosts with the same
 * text are grouped. Beside changes of `up`, operations with nothing to do are folded into a line for each area; `isWhole`: each has
 * its reason all the same. For `down`, the reason says why something stays. `fold` formats a set of hosts: `m[8-10]`.
 */
export function planLines(plan: Plan, fold: (hosts: readonly string[]) => string, isWhole = false): PlanLine[] {
  const away = plan.operations.filter(isAway)
  const idle = plan.operations.filter(({ verdict }) => verdict.kind === 'nothing')
  const active = plan.operations.filter((operation) => operation.verdict.kind !== 'nothing' && !isAway(operation))
  const isFolded = plan.direction === 'up' && !isWhole && active.length > 0
  const groups = [
    ...Map.groupBy([...active, ...(isFolded ? [] : idle)], wordsOf).values(),
    ...Map.groupBy(away, ({ area, title }) => JSON.stringify([area, title])).values(),
  ]
  const lines = groups.flatMap((operations) => {
    const [first] = operations
    if (first === undefined) return []
    const head = `${first.area} · ${first.title} · ${fold(operations.map(({ host }) => host))}`
    const words = new Set(operations.map((operation) => JSON.stringify(linesOf(operation))))
    const own = words.size === 1 ? linesOf(first) : operations.flatMap(linesWithHost)
    return [{ kind: 'head', text: printable(head) } as const, ...own]
  })
  const shared = (plan.sharedHomes ?? []).map((home): PlanLine => ({ kind: 'plain', text: sharedHomeLine(home, fold) }))
  return [...shared, ...lines, ...(isFolded ? foldedLines(idle, fold) : [])]
}

const wordsOf = (operation: Operation): string => JSON.stringify([operation.area, operation.title, linesOf(operation)])

/** `trust · SSH key, SSH configuration · m[1-3]`: the operations of an area that need nothing on the same hosts. */
function foldedLines(idle: readonly Operation[], fold: (hosts: readonly string[]) => string): PlanLine[] {
  if (idle.length === 0) return []
  const hostsOf = Map.groupBy(idle, ({ area, title }) => JSON.stringify([area, title]))
  const groups = Map.groupBy(hostsOf.values(), (operations) =>
    JSON.stringify([operations[0]?.area, operations.map(({ host }) => host)]),
  )
  const lines = [...groups.values()].map((same): PlanLine => {
    const [first = []] = same
    const titles = same.flatMap(([one]) => one?.title ?? [])
    const text = `  ${first[0]?.area} · ${titles.join(', ')} · ${fold(first.map(({ host }) => host))}`
    return { kind: 'quiet', text: printable(text) }
  })
  return [{ kind: 'head', text: 'nothing to do' }, ...lines]
}

/** `m[1-3] share /home/ada`. Printable. */
export function sharedHomeLine({ hosts, path }: SharedHome, fold: (hosts: readonly string[]) => string): string {
  return printable(`${fold(hosts)} share ${path}`)
}

function isAway({ verdict }: Operation): boolean {
  return verdict.kind === 'blocked' && verdict.findings.every(({ id }) => id === 'away')
}

function linesWithHost(operation: Operation): PlanLine[] {
  return linesOf(operation).map(({ kind, text }) => ({
    kind,
    text: text.replace('  ! ', `  ! ${printable(operation.host)}: `),
  }))
}

export function formatPlan(
  plan: Plan,
  fold: (hosts: readonly string[]) => string,
  paint: PaintChange = (_, text) => text,
  isWhole = false,
): string {
  return planLines(plan, fold, isWhole)
    .map(({ kind, text }) => `${paint(kind, text)}\n`)
    .join('')
}

function linesOf({ verdict }: Operation): PlanLine[] {
  const plain = (text: string): PlanLine => ({ kind: 'plain', text: printable(text) })
  const quiet = (text: string): PlanLine => ({ kind: 'quiet', text: printable(text) })
  switch (verdict.kind) {
    case 'nothing':
      return [quiet(`  nothing to do: ${verdict.because}`)]
    case 'blocked':
      return verdict.findings.map((finding) => ({ kind: '!', text: `  ! ${formatFinding(finding)}` }))
    case 'steps':
      return verdict.steps.flatMap(({ title, changes, undo }) => [
        plain(`  ${title}`),
        ...changes.map((line) => ({ kind: kindOf(line), text: printable(`    ${line}`) })),
        ...(undo === undefined ? [] : [quiet(`    if it fails: ${undo.title}`)]),
      ])
  }
}

function kindOf(line: string): '+' | '-' | '~' {
  return line.startsWith('+') ? '+' : line.startsWith('-') ? '-' : '~'
}

export type PlanCounts = {
  readonly hosts: number
  /** Operations. */
  readonly toDo: number
  readonly nothing: number
  readonly blocked: number
  readonly steps: number
  /** Steps that wait for what is blocked. */
  readonly stuckSteps: number
}

export function countPlan(plan: Plan): PlanCounts {
  const { operations } = plan
  const stuck = stuckOperations(plan)
  const count = (kind: string) => operations.filter(({ verdict }) => verdict.kind === kind).length
  const stepsOf = (some: readonly Operation[]) =>
    some.reduce((sum, { verdict }) => sum + (verdict.kind === 'steps' ? verdict.steps.length : 0), 0)
  return {
    hosts: new Set(operations.map(({ host }) => host)).size,
    toDo: count('steps'),
    nothing: count('nothing'),
    blocked: count('blocked'),
    steps: stepsOf(operations),
    stuckSteps: stepsOf(operations.filter(({ id }) => stuck.has(id))),
  }
}

/** `3 steps`; where some cannot start, `1 of 3 steps`. */
export const stepsText = ({ steps, stuckSteps }: PlanCounts): string =>
  stuckSteps === 0 ? counted(steps, 'step') : `${steps - stuckSteps} of ${counted(steps, 'step')}`

/** One object per operation: docs/schema/change.schema.json. Scripts and their stdin are left out. */
export function planEvent({ id, area, host, title, after, verdict }: Operation): object {
  const base = { type: 'operation', id, area, host, title, after, verdict: verdict.kind }
  switch (verdict.kind) {
    case 'nothing':
      return { ...base, because: verdict.because }
    case 'blocked':
      return { ...base, findings: verdict.findings }
    case 'steps':
      return {
        ...base,
        state: verdict.state,
        steps: verdict.steps.map(({ id: step, title: what, changes, run, undo }) => {
          return { id: step, title: what, changes, asRoot: run.asRoot ?? false, ...defined({ undo: undo?.title }) }
        }),
      }
  }
}
