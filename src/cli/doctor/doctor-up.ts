/** What would stop `muster up` on hosts that answer: findings of its plan, and what making an environment needs. */
import { randomBytes } from 'node:crypto'
import type { Endpoint } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { prepareAreas } from '../../ops/kernel/area.ts'
import { gatherAreaFacts } from '../../ops/kernel/bring-up.ts'
import type { Finding } from '../../ops/kernel/finding.ts'
import { makePlan } from '../../ops/kernel/plan.ts'
import { loadAreas } from '../bring-up/areas.ts'
import { createOpsHosts, type OpsHostsOptions } from '../connect/ops-hosts.ts'

export type UpFindingsOptions = Omit<OpsHostsOptions, 'token' | 'sudoPassword'> & {
  readonly inventory: Inventory
  /** Of all hosts of the inventory. */
  readonly endpoints: readonly Endpoint[]
  /** The hosts that answered: only these are asked. */
  readonly answered: ReadonlySet<string>
  readonly limitFactor: number
  now(): number
}

const ASK_LIMIT_MS = 15_000
/** About another host, which the doctor examines by itself or was not asked about. */
const OF_OTHERS = ['away', 'needs-other', 'not-reached']

export function declaresAreas({ sections }: Inventory): boolean {
  return (sections?.size ?? 0) > 0
}

export async function upFindings(options: UpFindingsOptions): Promise<Finding[]> {
  const { inventory, endpoints, answered, limitFactor, signal, now } = options
  const { areas } = await prepareAreas(await loadAreas(), inventory, endpoints)
  if (areas.length === 0 || answered.size === 0) return []
  const token = randomBytes(8).toString('hex')
  using hosts = createOpsHosts(endpoints, { ...options, token, sudoPassword: async () => undefined })
  const factsByArea = await gatherAreaFacts(areas, {
    hosts,
    signal,
    mark: `m${token}`,
    now,
    limitFactor,
    before: async (host) =>
      answered.has(host) ? undefined : { kind: 'away', host, outcome: 'unreachable', reason: 'it was not examined' },
  })
  const plan = makePlan('up', areas, factsByArea, { isSelected: (host) => answered.has(host) })
  const blocked = plan.operations.flatMap(({ area, verdict }) =>
    verdict.kind === 'blocked'
      ? verdict.findings.map((finding) => ({ ...finding, cause: `up ${area}: ${finding.cause}` }))
      : [],
  )
  const asked = await Promise.all(
    areas
      .flatMap((area) => area.preflights(plan.operations))
      .map(async ({ host, script, findingsOf }) => {
        const { stdout } = await hosts.exec(host, script, {
          timeoutMs: ASK_LIMIT_MS * limitFactor,
          signal,
          isBrief: true,
        })
        return findingsOf(Buffer.from(stdout).toString())
      }),
  )
  const own = blocked.filter(({ host, id }) => answered.has(host) && !OF_OTHERS.includes(id))
  return [...own, ...asked.flat()]
}
