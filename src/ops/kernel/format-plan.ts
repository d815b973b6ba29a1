/** The text of a plan: for people as a diff of each host, and as JSON. */
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { formatFinding } from './finding.ts'
import type { Operation } from './operation.ts'
import { type Plan, stuckOperations } from './plan.ts'
import type { SharedHome } from './shared-home.ts'

/** The kind of a line: adds, removes, changes, blocks; `head` is the title of an operation. */
export type LineKind = '+' | '-' | '~' | '!' | 'head' | 'plain'

/** Printable. */
export type PlanLine = { readonly kind: LineKind; readonly text: string }

export type PaintChange = (kind: LineKind, text: string) => string

/**
 * Hosts with the same text are grouped; unreachable ones are at the end, each with its reason. An operation with
 * nothing to do is one line with the reason. `fold` formats a set of hosts: `m[8-10]`.
 */
export function planLines(plan: Plan, fold: (hosts: readonly string[]) => string): PlanLine[] {
  const reached = plan.operations.filter((operation) => !isAway(operation))
  const groups = Map.groupBy(reached, (operation) =>
    JSON.stringify([operation.area, operation.title, linesOf(operation)]),
  )
  const away = Map.groupBy(plan.operations.filter(isAway), ({ area, title }) => JSON.stringify([area, title]))
  const lines = [...groups.values(), ...away.values()].flatMap((operations) => {
    const [first] = operations
    if (first === undefined) return []
    const head = `${first.area} · ${first.title} · ${fold(operations.map(({ host }) => host))}`
    const words = new Set(operations.map((operation) => JSON.stringify(linesOf(operation))))
    const own = words.size === 1 ? linesOf(first) : operations.flatMap(linesWithHost)
    return [{ kind: 'head', text: printable(head) } as const, ...own]
  })
  const shared = (plan.sharedHomes ?? []).map((home): PlanLine => ({ kind: 'plain', text: sharedHomeLine(home, fold) }))
  return [...shared, ...lines]
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
): string {
  return planLines(plan, fold)
    .map(({ kind, text }) => `${paint(kind, text)}\n`)
    .join('')
}

function linesOf({ verdict }: Operation): PlanLine[] {
  const plain = (text: string): PlanLine => ({ kind: 'plain', text: printable(text) })
  switch (verdict.kind) {
    case 'nothing':
      return [plain(`  nothing to do: ${verdict.because}`)]
    case 'blocked':
      return verdict.findings.map((finding) => ({ kind: '!', text: `  ! ${formatFinding(finding)}` }))
    case 'steps':
      return verdict.steps.flatMap(({ title, changes, undo }) => [
        plain(`  ${title}`),
        ...changes.map((line) => ({ kind: kindOf(line), text: printable(`    ${line}`) })),
        ...(undo === undefined ? [] : [plain(`    if it fails: ${undo.title}`)]),
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
