/** Changes of the receivers: pure, of of the console's state. A change by hand ends 'alone'. */
import { type ConsoleState, isTrouble } from './console-state.ts'

type Change = Partial<ConsoleState>

const known = (state: ConsoleState, hosts: Iterable<string>): Set<string> =>
  new Set([...hosts].filter((host) => state.hosts.has(host)))

export function setReceivers(state: ConsoleState, hosts: Iterable<string>): Change {
  return { receivers: known(state, hosts), receiversBeforeSolo: undefined }
}

export const allReceive = (state: ConsoleState): Change => setReceivers(state, state.hosts.keys())

export const noneReceive = (state: ConsoleState): Change => setReceivers(state, [])

export function invertReceivers(state: ConsoleState): Change {
  return setReceivers(
    state,
    [...state.hosts.keys()].filter((host) => !state.receivers.has(host)),
  )
}

/** Toggles a pane of several hosts as one: all receive unless all did. */
export function toggleReceivers(state: ConsoleState, hosts: readonly string[]): Change {
  const receivers = new Set(state.receivers)
  const isOn = hosts.every((host) => receivers.has(host))
  for (const host of hosts) {
    if (isOn) receivers.delete(host)
    else receivers.add(host)
  }
  return setReceivers(state, receivers)
}

/** Selects these hosts alone, or restores the earlier receivers if they are alone already. */
export function toggleSolo(state: ConsoleState, hosts: readonly string[]): Change {
  if (state.receiversBeforeSolo) return setReceivers(state, state.receiversBeforeSolo)
  return { receivers: known(state, hosts), receiversBeforeSolo: state.receivers }
}

/** Hosts in trouble, and hosts whose screen differs from the majority's. */
export function differentReceive(state: ConsoleState, equalGroups: readonly (readonly string[])[]): Change {
  const different = new Set(equalGroups.slice(1).flat())
  return setReceivers(
    state,
    [...state.hosts.values()].filter((host) => different.has(host.host) || isTrouble(host)).map((host) => host.host),
  )
}
