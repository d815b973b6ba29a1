/** The operations of all hosts, ordered by their dependencies. Pure. */
import { MusterError } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Area, AreaFacts, ChangeDirection } from './area.ts'
import type { AnyFacts } from './fact.ts'
import { blocked, type Operation, operationOf } from './operation.ts'
import type { SharedHome } from './shared-home.ts'

export type Plan = {
  readonly direction: ChangeDirection
  /** Sorted by `after`; the operations of one host run in this order. */
  readonly operations: readonly Operation[]
  /** The first of these hosts changes what they share. */
  readonly sharedHomes?: readonly SharedHome[]
}

/** @throws MusterError `internal` when operations wait for each other. */
export function makePlan(
  direction: ChangeDirection,
  areas: readonly Area[],
  factsByArea: ReadonlyMap<string, AreaFacts<AnyFacts>>,
  /** `isSelected`: operations of other hosts are left out. */
  { isSelected = () => true }: { readonly isSelected?: (host: string) => boolean } = {},
): Plan {
  const ordered = direction === 'up' ? areas : areas.toReversed()
  const all: Operation[] = []
  // Through a selected host; but what hosts share is removed only if all of them are selected.
  const rankOf = (host: string) => Number(isSelected(host) === (direction === 'down'))
  const sharedHomes = ([...factsByArea.values()][0]?.sharedHomes ?? []).map(({ hosts, path }) => ({
    hosts: hosts.toSorted((one, two) => rankOf(one) - rankOf(two)),
    path,
  }))
  for (const area of ordered) {
    const areaFacts = { ...(factsByArea.get(area.name) ?? { facts: new Map(), away: new Map() }), sharedHomes }
    const absent = [...areaFacts.away].map(([host, reason]) => absentOperation(area.name, host, reason))
    all.push(...absent, ...area.plan(direction, areaFacts, [...all]))
  }
  const leftOut = new Map(all.filter(({ host }) => !isSelected(host)).map((each) => [each.id, each]))
  const away = new Map([...factsByArea.values()].flatMap((areaFacts) => [...areaFacts.away]))
  const titles = new Map(all.map(({ id, title, host, area }) => [id, `${title} on ${host} (${area})`]))
  const kept = all
    .filter(({ host }) => isSelected(host))
    .map((operation) => blockedByOthers(operation, leftOut, away, (id) => titles.get(id) ?? id))
  return { direction, operations: inOrder(kept), sharedHomes }
}

export function hasSteps({ operations }: Plan): boolean {
  return operations.some(({ verdict }) => verdict.kind === 'steps')
}

/** Some of its steps do not wait for what is blocked. */
export function canStart(plan: Plan): boolean {
  const stuck = stuckOperations(plan)
  return plan.operations.some(({ id, verdict }) => verdict.kind === 'steps' && !stuck.has(id))
}

/** Those whose steps cannot start, since what they wait for is blocked: an operation before them, or the last one of their host. */
export function stuckOperations({ operations }: Plan): ReadonlySet<string> {
  const stuck = new Set<string>()
  const stuckHosts = new Set<string>()
  for (const { id, host, after, verdict, isAlone = false } of operations) {
    const isWaiting = stuckHosts.has(host) || after.some((other) => stuck.has(other))
    const isStuck = verdict.kind === 'blocked' || (verdict.kind === 'steps' && isWaiting)
    if (isStuck) stuck.add(id)
    if (isStuck && !isAlone) stuckHosts.add(host)
    else stuckHosts.delete(host)
  }
  return stuck
}

function absentOperation(area: string, host: string, reason: string): Operation {
  return operationOf(area, host, 'host', 'the host', blocked(host, 'away', `not reached: ${reason}`))
}

/** Blocked if it waits for an operation on a host that is away or not selected. */
function blockedByOthers(
  operation: Operation,
  leftOut: ReadonlyMap<string, Operation>,
  away: ReadonlyMap<string, string>,
  titleOf: (id: string) => string,
): Operation {
  if (operation.verdict.kind !== 'steps') return operation
  const hostOf = (id: string) => id.slice(id.lastIndexOf('@') + 1)
  const unreached = operation.after.find((id) => away.has(hostOf(id)))
  const waiting = operation.after.filter((id) => ['steps', 'blocked'].includes(leftOut.get(id)?.verdict.kind ?? ''))
  const [needed = ''] = unreached === undefined ? waiting : [unreached]
  if (needed === '') return operation
  const hosts = foldHostSet([...new Set(waiting.map(hostOf))])
  const cause =
    unreached === undefined
      ? `it needs “${titleOf(needed)}”, which has not been done and is not selected. Select ${hosts} too`
      : `it needs “${titleOf(needed)}”, and ${hostOf(needed)} cannot be reached: ${away.get(hostOf(needed))}`
  return { ...operation, verdict: blocked(operation.host, 'needs-other', cause) }
}

/** A stable topological sort. */
function inOrder(operations: readonly Operation[]): Operation[] {
  const byId = new Map<string, Operation>()
  for (const operation of operations) {
    if (byId.has(operation.id)) throw new MusterError('internal', `two operations are called ${operation.id}`)
    byId.set(operation.id, operation)
  }
  const ordered: Operation[] = []
  const states = new Map<string, 'open' | 'placed'>()
  const place = (operation: Operation, trail: readonly string[]): void => {
    const state = states.get(operation.id)
    if (state === 'placed') return
    if (state === 'open') {
      throw new MusterError('internal', `operations wait for each other: ${[...trail, operation.id].join(' → ')}`)
    }
    states.set(operation.id, 'open')
    for (const id of operation.after) {
      const before = byId.get(id)
      if (before !== undefined) place(before, [...trail, operation.id])
    }
    states.set(operation.id, 'placed')
    ordered.push(operation)
  }
  for (const operation of operations) place(operation, [])
  return ordered
}
