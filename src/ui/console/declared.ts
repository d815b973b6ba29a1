/** Applies a changed hosts.yaml to an open console: new hosts are offered, and nothing open is closed. */
import { isDeepStrictEqual } from 'node:util'
import { record } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { commandLabel } from '../keys/registry.ts'
import type { ConsoleApp } from './console-app.ts'

/** What hosts.yaml declares, as far as the console needs it. */
export type DeclaredNames = {
  readonly cluster?: string | undefined
  readonly hosts: readonly string[]
  readonly groups: ReadonlyMap<string, readonly string[]>
  /** What it says of the connection to each host. */
  readonly entries?: ReadonlyMap<string, unknown>
  /** What it declares for areas, of each file. */
  readonly sections: readonly unknown[]
}

/** The news for the user about the file of this name, which has changed; undefined: there are none. */
export function takeDeclared(
  app: ConsoleApp,
  file: string,
  before: DeclaredNames,
  now: DeclaredNames,
): string | undefined {
  const { hosts: open, groups } = app.state
  const [add, close] = (['add-host', 'close-host'] as const).map((id) => commandLabel(app.state, id))
  const offered = now.hosts.filter((host) => !before.hosts.includes(host) && !open.has(host))
  const gone = before.hosts.filter((host) => !now.hosts.includes(host))
  const renamed = new Map(
    gone.flatMap((host) => {
      const name = open.has(host) ? offered.find((each) => isSameWay(before, host, now, each)) : undefined
      return name === undefined ? [] : [[host, name]]
    }),
  )
  const newNames = new Set(renamed.values())
  const added = offered.filter((host) => !newNames.has(host))
  const stays = gone.filter((host) => open.has(host) && !renamed.has(host))
  const left = gone.filter((host) => !open.has(host))
  const different = noteChanges(app.declaredBefore, before, now)
  const changed = now.hosts.filter((host) => open.has(host) && different.has(host))
  const back = now.hosts.filter((host) => open.has(host) && !before.hosts.includes(host) && !different.has(host))
  const hasGroups = !isDeepStrictEqual(now.groups, groups)
  app.change(() => ({ groups: now.groups }))
  app.drawDialog()
  for (const page of Object.values(app.pages)) page.onDeclared?.()
  app.offered = [...new Set([...app.offered, ...offered])].filter((host) => now.hosts.includes(host))
  const news = [
    ...[...renamed].map(
      ([host, name]) => `${host} is called ${name} now: connect again with ${close}, then ${add} and the new name`,
    ),
    ...(added.length === 0 ? [] : [`${foldHostSet(added)} ${added.length === 1 ? 'is' : 'are'} new: ${add} connects`]),
    ...(stays.length === 0
      ? []
      : [`${foldHostSet(stays)} ${stays.length === 1 ? 'was removed, and stays' : 'were removed, and stay'} open`]),
    ...(left.length === 0 ? [] : [`${foldHostSet(left)} ${left.length === 1 ? 'was' : 'were'} removed`]),
    ...(back.length === 0 ? [] : [`${foldHostSet(back)} ${back.length === 1 ? 'is' : 'are'} declared again`]),
    ...(changed.length === 0
      ? []
      : [`${foldHostSet(changed)} changed: connect again with ${close}, then ${add} and the name`]),
    ...(hasGroups ? ['groups changed'] : []),
    ...(now.cluster === before.cluster
      ? []
      : [`the name of the cluster changed to ${printable(now.cluster ?? '')}: a new console uses it`]),
    ...(isDeepStrictEqual(now.sections, before.sections) ? [] : ['areas changed: r on the tab Bring-up checks them']),
  ]
  return news.length === 0 ? undefined : `${file}: ${news.join('; ')}`
}

/** Two names of one machine: the file says the same of their connections, with an address that does not follow from the name. */
function isSameWay(before: DeclaredNames, host: string, now: DeclaredNames, name: string): boolean {
  const [was, is] = [before.entries?.get(host), now.entries?.get(name)]
  return record(is)?.address !== undefined && isDeepStrictEqual({ ...record(was), name }, is)
}

/** The hosts of which the file says something new now that is not what they were connected with. `known`: what that was, where it differs. */
function noteChanges(known: Map<string, unknown>, before: DeclaredNames, now: DeclaredNames): ReadonlySet<string> {
  const different = new Set<string>()
  for (const host of new Set([...before.hosts, ...now.hosts])) {
    const [was, is] = [before.entries?.get(host), now.entries?.get(host)]
    if (isDeepStrictEqual(was, is)) continue
    if (!known.has(host)) known.set(host, was)
    // Changed back to what its connection was made with.
    if (isDeepStrictEqual(known.get(host), is)) known.delete(host)
    else different.add(host)
  }
  return different
}
