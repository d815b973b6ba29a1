/** The state of a copy to many hosts. Pure. */
import type { CopyEvent } from '../../ssh/copy/events.ts'
import { type CopyHost, reduceHost, WAITING } from '../../ssh/copy/progress.ts'

export type CopyView = {
  readonly kind: 'copy'
  readonly sources: readonly string[]
  readonly destination: string
  readonly hosts: ReadonlyMap<string, CopyHost>
  /** Files that cannot be read here, one sentence each; the first ones. */
  readonly problems: readonly string[]
  readonly isStopping: boolean
}

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

export const isCopying = (view: CopyView): boolean =>
  [...view.hosts.values()].some(({ result }) => result === undefined)

export const failedCopies = (view: CopyView): string[] =>
  [...view.hosts].flatMap(([host, { result }]) => (result !== undefined && result.outcome !== 'ok' ? [host] : []))
