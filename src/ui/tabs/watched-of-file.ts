import type { WatchedResources } from '../network/watched-hosts.ts'
import type { PageContext } from '../state/console-state.ts'
import type { OpenFile } from './file-context.ts'

/** The watched hosts of one file of a workspace, by its names for them. `context`: of the console. */
export function watchedOfFile(watched: WatchedResources, context: PageContext, file: OpenFile): WatchedResources {
  const own = () => new Map([...file.names].map(([host, name]) => [name, host]))
  return {
    changes: {
      on: (listener) =>
        watched.changes.on((change) => {
          const host = change && own().get(change.host)
          if (change === undefined) listener(undefined)
          else if (host !== undefined) listener({ ...change, host })
        }),
    },
    get hosts() {
      const names = own()
      return watched.hosts.flatMap((one) => {
        const host = one.isOwn === true ? one.host : names.get(one.host)
        return host === undefined ? [] : [{ ...one, host }]
      })
    },
    // All of them are watched for all tabs.
    follow: () => watched.follow([...context.state.hosts.keys()]),
  }
}
