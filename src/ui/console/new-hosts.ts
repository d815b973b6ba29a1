/** Which of the hosts to add are open already, under their own name or another one. Pure. */
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { formatHostSpec } from '../../inventory/host-name.ts'
import { bareName, foldHostSet } from '../../inventory/host-set.ts'
import type { HostState } from '../state/console-state.ts'
import { type HostPlace, placeOf } from './fleet-reducer.ts'

type Open = ReadonlyMap<string, HostState>

/** `taken`: why the others are not added. `close`: how a host is closed. */
export function newHosts(endpoints: readonly Endpoint[], open: Open, declared: ReadonlySet<string>, close: string) {
  const fresh: Endpoint[] = []
  const already: string[] = []
  const others: HostState[] = []
  const twins: string[] = []
  // What was typed into both would run twice: the file may have renamed a host that stays open.
  const undeclared = [...open.values()].filter(({ host }) => !declared.has(host))
  const places = new Map(undeclared.flatMap((host) => (host.address === '' ? [] : [[placeKey(host), host.host]])))
  const logins = new Map([...open.values()].map((host) => [loginOf(host), host.host]))
  for (const endpoint of endpoints) {
    const same = logins.get(loginOf(endpoint))
    const named = open.get(endpoint.host)
    const twin = declared.has(endpoint.host) && named === undefined ? places.get(placeKey(endpoint)) : undefined
    if (same !== undefined) already.push(same)
    else if (twin !== undefined) twins.push(`${twin} is open, and is ${endpoint.host} now: close it first (${close})`)
    else if (named === undefined) fresh.push(endpoint)
    // It is not yet known how to reach it.
    else if (named.user === '') already.push(named.host)
    else others.push(named)
  }
  const taken = [
    ...(already.length === 0 ? [] : [`${foldHostSet(already)} ${already.length === 1 ? 'is' : 'are'} already open`]),
    ...twins,
    ...(others.length === 0 ? [] : [`${openElsewhere(others)} first (${close})`]),
  ]
  return { fresh, taken }
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
