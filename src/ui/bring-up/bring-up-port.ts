/** What the console asks for to see and change how hosts stand; the composition root gives it. */
import type { Direction } from '../../ops/kernel/area.ts'
import type { ChangeHandlers } from '../../ops/kernel/change.ts'
import type { JournalLine } from '../../ops/kernel/journal.ts'
import type { HostStanding } from '../../ops/kernel/standing.ts'

/** A part of bring-up. `hosts`: undefined when hosts.yaml does not declare it. */
export type AreaColumn = { readonly name: string; readonly hosts: readonly string[] | undefined }

export type ChangeOrder = {
  readonly direction: Direction
  readonly areas: readonly string[]
  /** Hosts that may be changed; the others are looked at all the same. */
  readonly hosts: readonly string[]
  readonly signal: AbortSignal
}

/** How a change ended; `standings`: of its areas after it, where it looked whether they work. */
export type ChangeResult = {
  readonly kind: 'unchanged' | 'declined' | 'locked' | 'lost' | 'cancelled' | 'done'
  readonly standings?: readonly HostStanding[]
}

/** Nothing is asked and nothing connected beyond the connections that the shells have. */
export interface BringUpPort {
  /** All areas that Muster knows, in the order in which they are brought up; rejects where hosts.yaml cannot be read. */
  areas(): Promise<readonly AreaColumn[]>
  /** Reads the facts of all hosts, and looks whether what is declared works; it changes nothing. `onHost`: it has answered. */
  look(signal: AbortSignal, onHost: (host: string) => void): Promise<readonly HostStanding[]>
  change(order: ChangeOrder, handlers: ChangeHandlers): Promise<ChangeResult>
  /** What was last done there, the newest first. */
  journal(area: string, host: string): Promise<readonly JournalLine[]>
}
