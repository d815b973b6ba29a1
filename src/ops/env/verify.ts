/** Finds what no step of env can fix, and what shows only when the environment runs. */
import { shellQuote } from '../../base/shell-quote.ts'
import type { HostExec } from '../kernel/area.ts'
import { knownValue } from '../kernel/fact.ts'
import type { Finding } from '../kernel/finding.ts'
import { reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import { type Drift, driftOf, type HostItems, itemsOf } from './drift.ts'
import type { EnvAreaFacts } from './plan.ts'
import type { EnvWanted } from './wanted.ts'

const TIMEOUT_MS = 60_000

/** Drift that remains where there is nothing to apply, and what an interpreter lacks that is there. */
export async function verifyEnv(
  { spec }: EnvWanted,
  areaFacts: EnvAreaFacts,
  hostExec: HostExec,
): Promise<readonly Finding[]> {
  const { rows, followed } = envDriftOf(spec.from, areaFacts)
  const drift = rows.flatMap(({ name, gravity, reference, values }) =>
    [...values].map(([host, value]): Finding => {
      const cause = `${name} is ${value ?? 'not there'}, and ${reference ?? 'not there'} on ${followed ?? 'most hosts'}`
      return { host, gravity, id: 'drift', cause }
    }),
  )
  if (spec.kind === 'docker') return drift
  const checks = [...areaFacts.facts].map(async ([host, { facts }]): Promise<Finding[]> => {
    const content = knownValue(facts.content)
    if (content === undefined || !('packages' in content)) return []
    const script = `${shellQuote(`${content.path}/bin/python`)} -I -c 'import ssl, ctypes, sqlite3'`
    const result = await hostExec.exec(host, script, { timeoutMs: TIMEOUT_MS })
    if (isSuccess(result.outcome)) return []
    const cause = 'its Python lacks standard modules'
    return [{ host, gravity: 'risk', id: 'python-incomplete', cause, detail: reasonOfResult(result, formatOutcome) }]
  })
  return [...drift, ...(await Promise.all(checks)).flat()]
}

/** In what the hosts that answered differ. */
export function envDriftOf(followed: string, { facts }: Pick<EnvAreaFacts, 'facts'>): Drift {
  const items = [...facts].map(([host, { facts: own }]): [string, HostItems] => [
    host,
    itemsOf(knownValue(own.system), knownValue(own.content)),
  ])
  return driftOf(followed, new Map(items))
}
