/** Applies a changed hosts.yaml to an open console: new hosts are offered, and nothing open is closed. */
import { isDeepStrictEqual } from 'node:util'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { commandLabel } from '../keys/registry.ts'
import type { ConsoleApp } from './console-app.ts'

/** What hosts.yaml declares, as far as the console needs it. */
export type DeclaredNames = {
  readonly cluster?: string | undefined
  readonly hosts: readonly string[]
  readonly groups: ReadonlyMap<string, readonly string[]>
  /** What it says of each host: how it is reached, and what it has for jobs. */
  readonly entries?: ReadonlyMap<string, { readonly connection: unknown; readonly forJobs?: unknown }>
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
  const added = now.hosts.filter((host) => !before.hosts.includes(host) && !open.has(host))
  const gone = before.hosts.filter((host) => !now.hosts.includes(host) && open.has(host))
  const kept = before.hosts.filter((host) => open.has(host) && now.hosts.includes(host))
  const changedForJobs = kept.filter(
    (host) => !isDeepStrictEqual(before.entries?.get(host)?.forJobs, now.entries?.get(host)?.forJobs),
  )
  const changed = kept.filter((host) => {
    const [was, is] = [before, now].map(({ entries }) => entries?.get(host)?.connection)
    if (isDeepStrictEqual(was, is)) return false
    const { declaredBefore } = app
    if (!declaredBefore.has(host)) declaredBefore.set(host, was)
    // Changed back to what its connection was made with.
    if (isDeepStrictEqual(declaredBefore.get(host), is)) declaredBefore.delete(host)
    return declaredBefore.has(host)
  })
  const hasGroups = !isDeepStrictEqual(now.groups, groups)
  app.change(() => ({ groups: now.groups }))
  for (const page of Object.values(app.pages)) page.onDeclared?.()
  if (added.length > 0) app.offered = foldHostSet(added)
  const news = [
    ...(added.length === 0 ? [] : [`${foldHostSet(added)} ${added.length === 1 ? 'is' : 'are'} new: ${add} connects`]),
    ...(gone.length === 0
      ? []
      : [`${foldHostSet(gone)} ${gone.length === 1 ? 'was removed, and stays' : 'were removed, and stay'} open`]),
    ...(changed.length === 0
      ? []
      : [`${foldHostSet(changed)} changed: connect again with ${close}, then ${add} and the name`]),
    ...(changedForJobs.length === 0
      ? []
      : [
          `resources or labels of ${foldHostSet(changedForJobs)} changed: a running scheduler uses them once restarted`,
        ]),
    ...(hasGroups ? ['groups changed'] : []),
    ...(now.cluster === before.cluster
      ? []
      : [`the name of the cluster changed to ${printable(now.cluster ?? '')}: a new console uses it`]),
    ...(isDeepStrictEqual(now.sections, before.sections) ? [] : ['areas changed: r on the tab Bring-up checks them']),
  ]
  return news.length === 0 ? undefined : `${file}: ${news.join('; ')}`
}
