/** A plan for people, as a readable difference of each host, and for programs. Words only. */
import { printable } from '../../base/printable.ts'
import { formatFinding } from './finding.ts'
import type { Operation } from './operation.ts'
import type { Plan } from './plan.ts'

/** What a line does: adds, removes, changes, stands in the way; `head` is over its operation's lines. */
export type LineKind = '+' | '-' | '~' | '!' | 'head' | 'plain'

/** Printable. */
export type PlanLine = { readonly kind: LineKind; readonly text: string }

export type PaintChange = (kind: LineKind, text: string) => string

/**
 * Hosts with the same words stand together. What has nothing to be done is one line with the reason.
 * `fold` writes a set of hosts: `m[8-10]`.
 */
export function planLines(plan: Plan, fold: (hosts: readonly string[]) => string): PlanLine[] {
  const groups = new Map<
    string,
    { readonly operation: Operation; readonly lines: readonly PlanLine[]; readonly hosts: string[] }
  >()
  for (const operation of plan.operations) {
    const lines = linesOf(operation)
    const key = JSON.stringify([operation.area, operation.title, lines])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { operation, lines, hosts: [operation.host] })
    else group.hosts.push(operation.host)
  }
  return [...groups.values()].flatMap(({ operation, lines, hosts }) => {
    const head = `${operation.area} · ${operation.title} · ${fold(hosts)}`
    return [{ kind: 'head', text: printable(head) } as const, ...lines]
  })
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
}

export function countPlan({ operations }: Plan): PlanCounts {
  const count = (kind: string) => operations.filter(({ verdict }) => verdict.kind === kind).length
  const steps = operations.reduce((sum, { verdict }) => sum + (verdict.kind === 'steps' ? verdict.steps.length : 0), 0)
  return {
    hosts: new Set(operations.map(({ host }) => host)).size,
    toDo: count('steps'),
    nothing: count('nothing'),
    blocked: count('blocked'),
    steps,
  }
}

/** One object an operation: docs/schema/bring-up.schema.json. Scripts and what they read are left out. */
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
        steps: verdict.steps.map((step) => ({
          id: step.id,
          title: step.title,
          changes: step.changes,
          asRoot: step.run.asRoot ?? false,
          ...(step.undo === undefined ? {} : { undo: step.undo.title }),
        })),
      }
  }
}
