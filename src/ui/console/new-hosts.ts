/** Which of the hosts to add are open already, under their own name or another one. Pure. */
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { formatHostSpec } from '../../inventory/host-name.ts'
import { bareName, foldHostSet } from '../../inventory/host-set.ts'
import type { HostState } from '../state/console-state.ts'
import { type HostPlace, placeOf } from './fleet-reducer.ts'

type Open = ReadonlyMap<string, HostState>

/** `declared`: by hosts.yaml now; `changed`: open ones of which it says something else than what they were connected with. */
type Declared = { readonly declared: ReadonlySet<string>; readonly changed: { has(host: string): boolean } }

/**
 * `taken`: why the others are not added. `close`: how a host is closed. `doubles`: hosts to add that were typed by hand and are the
 * same login as an open one, which is the value.
 */
export function newHosts(endpoints: readonly Endpoint[], open: Open, { declared, changed }: Declared, close: string) {
  const fresh: Endpoint[] = []
  const already: string[] = []
  const others: HostState[] = []
  const twins: string[] = []
  const doubles = new Map<string, string>()
  const logins = new Map([...open.values()].map((host) => [loginOf(host), host.host]))
  const places = Map.groupBy(
    [...open.values()].filter(({ address }) => address !== ''),
    placeKey,
  )
  for (const endpoint of endpoints) {
    const { host } = endpoint
    const same = logins.get(loginOf(endpoint))
    const named = open.get(host)
    // Two hosts of hosts.yaml with one address are meant, unless one of them is open as another machine than the file says now.
    const sharing = named === undefined ? (places.get(placeKey(endpoint)) ?? []) : []
    const twin = sharing.find((each) => !declared.has(each.host) || changed.has(each.host))?.host
    if (same !== undefined) already.push(same)
    else if (twin !== undefined && declared.has(host))
      twins.push(`${host} is the same login as ${twin}, which is open: close that first (${close})`)
    else if (named === undefined) {
      fresh.push(endpoint)
      const double = declared.has(host) ? undefined : sharing[0]?.host
      if (double !== undefined) doubles.set(host, double)
    }
    // It is not yet known how to reach it.
    else if (named.user === '') already.push(named.host)
    else others.push(named)
  }
  const taken = [
    ...(already.length === 0 ? [] : [`${foldHostSet(already)} ${already.length === 1 ? 'is' : 'are'} already open`]),
    ...twins,
    ...(others.length === 0 ? [] : [`${openElsewhere(others)} first (${close})`]),
  ]
  return { fresh, taken, doubles }
}

/** Equal for two names of the same login: `127.0.0.1` and `root@127.0.0.1:2201`. Two hosts of hosts.yaml are never equal. */
function loginOf(place: HostPlace): string {
  return JSON.stringify([bareName(place.host), placeKey(place)])
}

function placeKey(place: HostPlace): string {
  const { address, port, user } = placeOf(place)
  return JSON.stringify([address, port, user])
}

function openElsewhere(hosts: readonly HostState[]): string {
  const [first] = hosts
  const names = foldHostSet(hosts.map(({ host }) => host))
  if (first === undefined || hosts.length > 1) return `${names} are open with another address, port or user: close them`
  const { address, port, user } = first
  return `${names} is open as ${printable(formatHostSpec({ user, host: address, port }))}: close it`
}
