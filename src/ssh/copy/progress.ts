/** How far a copy to many hosts is, from its events, and how people read it. Pure. */
import { formatBytes } from '../../base/format-bytes.ts'
import type { CopyEvent, HostResult } from './events.ts'

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

export const FAILURES_KEPT = 20

export const WAITING: CopyHost = { hasBegun: false, totalBytes: 0, doneBytes: 0, result: undefined, failures: [] }

export function reduceHost(host: CopyHost, event: CopyEvent): CopyHost {
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

export type CopyTotal = { readonly ended: number; readonly doneBytes: number; readonly totalBytes: number }

/** A host that has not begun counts as much as those that have: all get the same files. */
export function totalOf(hosts: Iterable<CopyHost>): CopyTotal {
  const all = [...hosts]
  const wholeBytes = Math.max(0, ...all.map(({ totalBytes }) => totalBytes))
  const isWaiting = ({ hasBegun, result }: CopyHost): boolean => !hasBegun && result === undefined
  return {
    ended: all.filter(({ result }) => result !== undefined).length,
    doneBytes: all.reduce((sum, { doneBytes }) => sum + doneBytes, 0),
    totalBytes: all.reduce((sum, host) => sum + (isWaiting(host) ? wholeBytes : host.totalBytes), 0),
  }
}

type Amount = Pick<CopyHost, 'doneBytes' | 'totalBytes'>

/** 0 to 1. */
export const shareOf = ({ doneBytes, totalBytes }: Amount): number =>
  totalBytes === 0 ? 0 : Math.min(1, doneBytes / totalBytes)

export const formatShare = (amount: Amount): string =>
  `${String(Math.floor(100 * shareOf(amount))).padStart(3)} %  ${formatBytes(amount.doneBytes)} of ${formatBytes(amount.totalBytes)}`

export function describeResult(result: HostResult, isDryRun = false): string {
  const { outcome, reason, copied, identical, failed, sentBytes, passedOnBytes = 0, durationMs } = result
  if (outcome !== 'ok' && reason !== undefined)
    return `${outcome}${outcome === reason ? '' : `: ${reason}`}${copied > 0 ? ` (${copied} copied before)` : ''}`
  const counts = [
    isDryRun ? `${copied} would be copied` : `${copied} copied`,
    ...(identical > 0 ? [`${identical} identical`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ].join(', ')
  return isDryRun
    ? counts
    : `${counts}, ${formatBytes(sentBytes + passedOnBytes)} in ${(durationMs / 1000).toFixed(1)} s`
}
