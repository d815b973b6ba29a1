/**
 * What Muster has left on hosts: each area says what it finds, whether it is in use or declared, and how to remove it. Removal is a
 * change like any other (change.ts), with a plan, locks and a journal. What hosts.yaml declares is removed by `down` only.
 */

import { formatBytes } from '../../base/format-bytes.ts'
import { type Area, type AreaFacts, areaOf, type Declared } from './area.ts'
import type { AnyFacts, FactSet, HostFacts, KnownFacts } from './fact.ts'
import { blockedBy, type Operation, operationId, type Step, type Verdict } from './operation.ts'

export type Leftover = {
  /** Not printable yet. */
  readonly what: string
  readonly bytes?: number
  /** Last change, in seconds since the epoch by the host's clock. */
  readonly changedS?: number
  readonly state:
    | { readonly kind: 'left'; readonly steps: readonly Omit<Step, 'id'>[] }
    /** A process or a job uses it. */
    | { readonly kind: 'used'; readonly because: string }
    /** hosts.yaml declares it; because: what removes it. */
    | { readonly kind: 'declared'; readonly because: string }
    /** User data, or owned by another account. */
    | { readonly kind: 'kept'; readonly because: string }
    /** The host did not say. */
    | { readonly kind: 'unknown'; readonly because: string }
}

export type LeftSpec<F> = {
  readonly name: string
  factsOf(declared: Declared, host: string, also: readonly string[]): FactSet<F>
  /** Pure. */
  itemsOf(facts: KnownFacts<F>, declared: Declared, host: string): readonly Leftover[]
}

/** What a room leaves, without the type of its facts. */
export type LeftRoom = LeftSpec<AnyFacts>

/** Erases the type of the facts: each room gets only the answers to its own facts. */
export function defineLeft<F>(spec: LeftSpec<F>): LeftRoom {
  return spec as unknown as LeftRoom
}

export type HostLeftover = Leftover & { readonly area: string; readonly host: string }

export type LeftAreas = {
  readonly areas: readonly Area[]
  itemsOf(factsByArea: ReadonlyMap<string, AreaFacts<AnyFacts>>): readonly HostLeftover[]
}

/** `also`: more directories to search, as shell words. */
export function leftAreas(
  rooms: readonly LeftRoom[],
  declared: Declared,
  hosts: readonly string[],
  also: readonly string[],
): LeftAreas {
  const itemsOn = (room: LeftRoom, host: string, { facts }: HostFacts<AnyFacts>): readonly HostLeftover[] =>
    room.itemsOf(facts, declared, host).map((item) => ({ ...item, area: room.name, host }))
  return {
    areas: rooms.map((room) =>
      areaOf<null, AnyFacts>(
        {
          name: room.name,
          hostsOf: () => hosts,
          factsOf: (_, host) => room.factsOf(declared, host, also),
          plan: (_, __, { facts }) => [...facts].flatMap(([host, own]) => itemsOn(room, host, own).map(operationOf)),
        },
        null,
      ),
    ),
    itemsOf: (factsByArea) =>
      hosts.flatMap((host) =>
        rooms.flatMap((room) => {
          const own = factsByArea.get(room.name)?.facts.get(host)
          return own === undefined ? [] : itemsOn(room, host, own)
        }),
      ),
  }
}

function operationOf(item: HostLeftover, index: number): Operation {
  const { area, host, what } = item
  const id = operationId(area, `left-${index + 1}`, host)
  return { id, area, host, title: what, after: [], isAlone: true, verdict: verdictOf(item, id) }
}

function verdictOf({ state, host, bytes }: HostLeftover, id: string): Verdict {
  switch (state.kind) {
    case 'left': {
      const size = bytes === undefined ? '' : ` (${formatBytes(bytes)})`
      const steps = state.steps.map((step, index) => ({
        ...step,
        id: `${id}/${index + 1}`,
        changes: step.changes.map((line, at) => (index + at === 0 ? `${line}${size}` : line)),
      }))
      return { kind: 'steps', state: 'differs', steps }
    }
    case 'unknown':
      return blockedBy({ host, gravity: 'blocker', id: 'unknown', cause: state.because })
    default:
      return { kind: 'nothing', because: state.because }
  }
}

/** From the operations of a plan for `down`: what is in effect, or unfinished. */
export function leftOfOperations(
  operations: readonly Operation[],
  declaredBy: string | undefined,
  usedBy?: string,
): readonly Leftover[] {
  return operations.flatMap(({ title, verdict }): Leftover[] => {
    if (verdict.kind === 'nothing') return []
    if (verdict.kind === 'blocked') {
      const because = verdict.findings.map(({ cause }) => cause).join(', ')
      return [{ what: title, state: { kind: 'unknown', because } }]
    }
    if (declaredBy !== undefined) return [{ what: title, state: declaredWith(declaredBy) }]
    if (usedBy !== undefined) return [{ what: title, state: { kind: 'used', because: usedBy } }]
    return [{ what: title, state: { kind: 'left', steps: verdict.steps.map(({ id: _, ...step }) => step) } }]
  })
}

export function declaredWith(area: string): Leftover['state'] {
  return { kind: 'declared', because: `hosts.yaml declares it; to remove it: muster down ${area}` }
}

export function unknownOf(what: string, because: string): Leftover {
  return { what, state: { kind: 'unknown', because: `cannot tell: ${because}` } }
}
