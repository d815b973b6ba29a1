/** The state of a copy to many hosts. Pure. */
import type { CopyEvent, HostResult } from '../../ssh/copy/events.ts'

export type CopyHost = {
  readonly hasBegun: boolean
  readonly totalBytes: number
  /** Sent now or there before. */
  readonly doneBytes: number
  readonly result: HostResult | undefined
  /** The host that writes for both, because they share the destination. */
  readonly sharesWith?: string
  /** The first ones. */
  readonly failures: readonly { readonly path: string; readonly reason: string }[]
}

export type CopyView = {
  readonly kind: 'copy'
  readonly sources: readonly string[]
  readonly destination: string
  readonly hosts: ReadonlyMap<string, CopyHost>
  /** Files that cannot be read here, one sentence each; the first ones. */
  readonly problems: readonly string[]
  readonly isStopping: boolean
}

export const FAILURES_KEPT = 20

const WAITING: CopyHost = { hasBegun: false, totalBytes: 0, doneBytes: 0, result: undefined, failures: [] }

export function startCopy(sources: readonly string[], destination: string, hosts: readonly string[]): CopyView {
  const waiting = new Map(hosts.map((host) => [host, WAITING]))
  return { kind: 'copy', sources, destination, hosts: waiting, problems: [], isStopping: false }
}

export function restartCopy(view: CopyView, hosts: readonly string[]): CopyView {
  const again = new Map(view.hosts)
  for (const host of hosts) again.set(host, WAITING)
  return { ...view, hosts: again, problems: [], isStopping: false }
}

export function reduceCopy(view: CopyView, event: CopyEvent): CopyView {
  const host = view.hosts.get(event.host)
  if (host === undefined) return view
  const next = reduceHost(host, event)
  return next === host ? view : { ...view, hosts: new Map(view.hosts).set(event.host, next) }
}

function reduceHost(host: CopyHost, event: CopyEvent): CopyHost {
  switch (event.type) {
    case 'begin':
      return { ...host, hasBegun: true, totalBytes: event.totalBytes }
    case 'shared':
      return { ...host, sharesWith: event.with }
    case 'progress':
      return { ...host, doneBytes: host.doneBytes + event.bytes }
    case 'result':
      return { ...host, result: event.result }
    case 'file': {
      if (event.action !== 'failed' || host.failures.length >= FAILURES_KEPT) return host
      return { ...host, failures: [...host.failures, { path: event.path, reason: event.reason ?? '' }] }
    }
  }
}

export const isCopying = (view: CopyView): boolean =>
  [...view.hosts.values()].some(({ result }) => result === undefined)

export const failedCopies = (view: CopyView): string[] =>
  [...view.hosts].flatMap(([host, { result }]) => (result !== undefined && result.outcome !== 'ok' ? [host] : []))

export type CopyTotal = { readonly ended: number; readonly doneBytes: number; readonly totalBytes: number }

export function totalOf(view: CopyView): CopyTotal {
  const hosts = [...view.hosts.values()]
  return {
    ended: hosts.filter(({ result }) => result !== undefined).length,
    doneBytes: hosts.reduce((sum, { doneBytes }) => sum + doneBytes, 0),
    totalBytes: hosts.reduce((sum, { totalBytes }) => sum + totalBytes, 0),
  }
}
