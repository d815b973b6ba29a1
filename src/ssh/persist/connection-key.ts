/** What two programs have to agree on before they may share a connection. Pure. */
import type { Endpoint } from '../../inventory/host.ts'

/** Names and waiting times of the asker, and what goes with a shell instead of the connection. */
const IRRELEVANT: ReadonlySet<string> = new Set(['host', 'number', 'connectTimeoutMs', 'persistMs', 'environment'])

/** Equal for the same account of the same server by the same route, keys and checks. Fields that Endpoint gains later count. */
export function connectionKey(endpoint: Endpoint): string {
  return JSON.stringify(relevant(endpoint))
}

function relevant(endpoint: Endpoint): unknown {
  return Object.entries(endpoint)
    .filter(([name, value]) => !IRRELEVANT.has(name) && value !== undefined)
    .map(([name, value]) => [name, name === 'jump' ? endpoint.jump.map(relevant) : value] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1))
}
