/** What the console says after keys were sent, when not everybody got them. Pure. */
import { foldHostSet } from '../../inventory/host-set.ts'
import type { WriteReport } from '../../ssh/fleet.ts'

/** Undefined when everybody got the keys. */
export function writeNotice(report: WriteReport): string | undefined {
  const { sent, skipped } = report
  if (skipped.length === 0) return undefined
  const total = sent.length + skipped.length
  const reasons = new Map<string, string[]>()
  for (const { host, reason } of skipped) {
    const hosts = reasons.get(reason)
    if (hosts) hosts.push(host)
    else reasons.set(reason, [host])
  }
  const why = [...reasons].map(([reason, hosts]) => `${foldHostSet(hosts)} ${reason}`)
  return `sent to ${sent.length} of ${total}, skipped ${why.join('; ')}`
}
