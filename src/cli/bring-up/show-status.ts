/** `status`: looks, compares, verifies without writing anything, and tells. */
import { lookAtHosts, verifyAreas } from '../../ops/kernel/bring-up.ts'
import { makePlan } from '../../ops/kernel/plan.ts'
import { type HostStanding, standingsOf } from '../../ops/kernel/standing.ts'
import { type CliContext, EXIT } from '../command-line/context.ts'
import { serviceState } from '../job/service/state.ts'
import { type BringUpOptions, prepareBringUp } from './prepare.ts'
import { BringUpReport } from './report.ts'

/** Who asks how things stand wants to read it now, whoever is down. */
const CONNECT_TIMEOUT_MS = 4_000

export async function showStatus(
  names: readonly string[],
  options: BringUpOptions,
  context: CliContext,
  depth: 'look' | 'proof' = 'look',
): Promise<number> {
  const limits = depth === 'look' ? { usualConnectTimeoutMs: CONNECT_TIMEOUT_MS } : {}
  using prepared = await prepareBringUp(names, options, context, limits)
  const { areas, hosts, mark, isSelected, limitFactor } = prepared
  const { signal, now } = context
  const report = new BringUpReport(options, context)
  const worlds = await lookAtHosts(areas, { hosts, signal, mark, now, limitFactor })
  if (signal.aborted) return EXIT.interrupted
  const plan = makePlan('up', areas, worlds)
  const findings = await verifyAreas(areas, worlds, plan, { hosts, signal, limitFactor }, depth)
  if (signal.aborted) return EXIT.interrupted
  const standings = standingsOf(areas, worlds, plan, findings).filter(({ host }) => isSelected(host))
  report.sharedHomes(plan.sharedHomes)
  report.standings(standings)
  report.findings(standings.flatMap((standing) => standing.findings))
  const service = await serviceState(prepared.inventory, context)
  if (service !== undefined && names.length === 0) report.service(service)
  const counts = countStandings(standings)
  const words = Object.entries(counts).flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []))
  report.summary({ standings: standings.length, ...counts }, words.join(', '))
  if (counts.away > 0) return EXIT.unreachable
  return counts.good === standings.length ? EXIT.ok : EXIT.failed
}

function countStandings(standings: readonly HostStanding[]) {
  const count = (wanted: HostStanding['standing']) => standings.filter(({ standing }) => standing === wanted).length
  return {
    good: count('good'),
    missing: count('missing'),
    differs: count('differs'),
    failed: count('failed'),
    blocked: count('blocked'),
    away: count('away'),
  }
}
