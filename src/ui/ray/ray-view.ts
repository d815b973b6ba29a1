/** The Ray cluster and its jobs for the console, as src/cli implements them; its state, and the short form for the header. Pure. */
import { printable } from '../../base/printable.ts'
import type { RayJobOrder, RayJobSpec } from '../../ops/ray/jobs.ts'
import type { ClusterUsage } from '../../ops/ray/usage.ts'
import type { CommandHandlers, RunningCommand } from '../../ops/run/run-hosts.ts'

/** `usage` undefined: the head does not answer. */
export type RayStatus = { readonly view: RayView; readonly usage: ClusterUsage | undefined }

export type RayView =
  /** hosts.yaml declares none, or its head is not open in the console. */
  | { readonly kind: 'none' }
  /** Its head cannot be reached; `reason` is empty before the first answer. */
  | { readonly kind: 'unknown'; readonly reason: string }
  /** Ray on its head does not answer. */
  | { readonly kind: 'down'; readonly reason: string }
  | {
      readonly kind: 'up'
      readonly alive: number
      /** Nodes that hosts.yaml declares. */
      readonly declared: number
      /** Declared nodes that are not alive, by host. */
      readonly missing: readonly string[]
      /** Placement groups, tasks and actors that wait for resources. */
      readonly pending: number
    }

export function viewOf(usage: ClusterUsage, { nodes }: RayCluster): RayView {
  const alive = usage.nodes.filter(({ isAlive }) => isAlive)
  const there = new Set(alive.map(({ ip }) => ip))
  return {
    kind: 'up',
    alive: alive.length,
    declared: nodes.size,
    missing: [...nodes].flatMap(([address, host]) => (there.has(address) ? [] : [host])),
    pending: pendingOf(usage),
  }
}

function pendingOf({ groups, demands }: ClusterUsage): number {
  const groupCount = groups.filter(({ state }) => state !== 'CREATED').length
  // Demands of groups are counted with the groups.
  const tasks = demands.filter((demand) => !demand.includes('placement group'))
  return tasks.reduce((sum, demand) => sum + Number(/: (\d{1,9})\+? pending/.exec(demand)?.[1] ?? 1), groupCount)
}

export type RayWords = { readonly text: string; readonly tone: 'ok' | 'warning' | 'danger' | 'muted' }

/** For the header; undefined: nothing. */
export function rayWords(view: RayView): RayWords | undefined {
  switch (view.kind) {
    case 'none':
      return undefined
    case 'unknown':
      return { text: 'ray ?', tone: view.reason === '' ? 'muted' : 'warning' }
    case 'down':
      return { text: 'ray down', tone: 'danger' }
    case 'up': {
      const { alive, declared, missing, pending } = view
      const waits = pending === 0 ? '' : ` · ${pending} pending`
      const tone = missing.length > 0 ? 'danger' : pending > 0 ? 'warning' : 'ok'
      return { text: `ray ${alive}/${declared}${waits}`, tone }
    }
  }
}

/** The message about a change; undefined: none. */
export function rayNews(before: RayView, after: RayView, head: string): { text: string; isBad: boolean } | undefined {
  if (after.kind === 'down' && before.kind !== 'down')
    return { text: printable(`Ray: the head on ${head} does not answer: ${after.reason}`), isBad: before.kind === 'up' }
  if (after.kind === 'unknown' && before.kind === 'up')
    return { text: printable(`Ray: cannot reach ${head}: ${after.reason}`), isBad: true }
  if (after.kind !== 'up') return undefined
  const gone = before.kind === 'up' ? after.missing.filter((host) => !before.missing.includes(host)) : []
  if (gone.length > 0) return { text: `Ray: ${gone.join(', ')} left the cluster`, isBad: true }
  const isNew = before.kind !== 'up' || after.missing.length < before.missing.length
  return isNew ? { text: `Ray: ${after.alive} of ${after.declared} nodes are alive`, isBad: false } : undefined
}

/** As hosts.yaml declares it. */
export type RayCluster = {
  readonly head: string
  /** Hosts by the addresses of their nodes, the head first. */
  readonly nodes: ReadonlyMap<string, string>
}

/** `directory`: on this machine, as typed. */
export type RayCommand =
  | Exclude<RayJobOrder, { do: 'submit' }>
  | {
      readonly do: 'submit'
      readonly job: Omit<RayJobSpec, 'archive'>
      readonly directory: string | undefined
      readonly follow: boolean
    }

export type RayWatchOptions = {
  readonly signal: AbortSignal
  readonly intervalMs: number
  /** `usage` undefined: Ray did not answer this time; the reason is printable. */
  onUsage(usage: ClusterUsage | undefined, reason: string): void
  /** The head is silent; called once until it reports again. The reason is printable. */
  onSilent(reason: string): void
}

export interface RayPort {
  /** As hosts.yaml declares it; undefined: it declares none. */
  cluster(): Promise<RayCluster | undefined>
  /** Until the signal, over the head's connection; resolves with the reason (printable) when the head cannot be reached. */
  watch(options: RayWatchOptions): Promise<string | undefined>
  /**
   * Prints what `muster ray submit`, `jobs`, `logs` and `stop` print. `stop` stops a followed job, `abandon` leaves it
   * running. Never throws, and calls back only after it returned.
   */
  start(order: RayCommand, handlers: CommandHandlers): RunningCommand
}
