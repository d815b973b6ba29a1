/** Bring-up for the console; src/cli implements it. */
import type { ChangeDirection } from '../../ops/kernel/area.ts'
import type { HostStatus } from '../../ops/kernel/bring-up.ts'
import type { ChangeHandlers } from '../../ops/kernel/change.ts'
import type { JournalLine } from '../../ops/kernel/journal.ts'

/** A part of bring-up. `hosts`: undefined when hosts.yaml does not declare it. */
export type AreaColumn = { readonly name: string; readonly hosts: readonly string[] | undefined }

export type ChangeOrder = {
  readonly direction: ChangeDirection
  readonly areas: readonly string[]
  /** Hosts that may be changed; the others are only checked. */
  readonly hosts: readonly string[]
  readonly signal: AbortSignal
}

/** How a change ended; `statuses`: of its areas afterwards, when it verified them. */
export type ChangeResult = {
  readonly kind: 'unchanged' | 'declined' | 'locked' | 'lost' | 'cancelled' | 'done'
  readonly statuses?: readonly HostStatus[]
}

/** Uses only the connections of the shells, and asks no questions. */
export interface BringUpPort {
  /** All areas, in the order of bring-up; rejects when hosts.yaml cannot be read. */
  areas(): Promise<readonly AreaColumn[]>
  /** Reads the facts of all hosts and verifies what is declared, without changes. `onHost`: a host has answered. */
  check(signal: AbortSignal, onHost: (host: string) => void): Promise<readonly HostStatus[]>
  change(order: ChangeOrder, handlers: ChangeHandlers): Promise<ChangeResult>
  /** The newest first. */
  journal(area: string, host: string): Promise<readonly JournalLine[]>
}
