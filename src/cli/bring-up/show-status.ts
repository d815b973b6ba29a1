/** `status`: gathers facts, compares, verifies without writing anything, and reports. */
import { counted } from '../../base/counted.ts'
import { gatherAreaFacts, statusesOf, verifyAreas } from '../../ops/kernel/bring-up.ts'
import { formatFinding } from '../../ops/kernel/finding.ts'
import { makePlan } from '../../ops/kernel/plan.ts'
import { type CliContext, EXIT } from '../command-line/verb.ts'
import { serviceState } from '../job/service/service.ts'
import { type BringUpOptions, prepareBringUp } from './prepare.ts'
import { BringUpReport, tally, tallyWords } from './report.ts'

/** A status should come soon, also while hosts are down. */
const CONNECT_TIMEOUT_MS = 4_000

export async function showStatus(
  names: readonly string[],
  options: BringUpOptions,
  context: CliContext,
  depth: 'status' | 'check' = 'status',
): Promise<number> {
  const limits = depth === 'status' ? { usualConnectTimeoutMs: CONNECT_TIMEOUT_MS } : {}
  using prepared = await prepareBringUp(names, options, context, limits)
  const { areas, hosts, mark, isSelected, limitFactor } = prepared
  const { signal, now } = context
  const report = new BringUpReport(options, context)
  const factsByArea = await gatherAreaFacts(areas, { hosts, signal, mark, now, limitFactor })
  if (signal.aborted) return EXIT.interrupted
  const plan = makePlan('up', areas, factsByArea)
  const findings = await verifyAreas(areas, factsByArea, plan, { hosts, signal, limitFactor }, depth)
  if (signal.aborted) return EXIT.interrupted
  const statuses = statusesOf(areas, factsByArea, plan, findings).filter(({ host }) => isSelected(host))
  report.sharedHomes(plan.sharedHomes)
  report.statuses(statuses)
  const all = statuses.flatMap((status) => status.findings)
  // What a status already says is not said again below it.
  report.findings(
    options.json === true
      ? all
      : statuses.flatMap(({ because, findings }) => findings.filter((one) => !because.includes(formatFinding(one)))),
  )
  const service = await serviceState(prepared.inventory, context)
  if (service !== undefined && names.length === 0) report.service(service)
  const counts = tally(
    ['good', 'missing', 'differs', 'failed', 'blocked', 'away'],
    statuses.map(({ status: kind }) => kind),
  )
  const risks = all.filter(({ gravity }) => gravity === 'risk').length
  const words = [...tallyWords(counts), ...(risks === 0 ? [] : [counted(risks, 'risk')])]
  report.summary({ statuses: statuses.length, ...counts, risks }, words.join(', '))
  if (counts.away > 0) return EXIT.unreachable
  return counts.good === statuses.length ? EXIT.ok : EXIT.failed
}
