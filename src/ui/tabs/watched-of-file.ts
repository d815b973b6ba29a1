import { inverseOf } from '../../base/collections.ts'
import type { WatchedResources } from '../network/watched-hosts.ts'
import type { PageContext } from '../state/console-state.ts'
import type { OpenFile } from './file-context.ts'

/** The watched hosts of one file of a workspace, by its names for them. `context`: of the console. */
export function watchedOfFile(watched: WatchedResources, context: PageContext, file: OpenFile): WatchedResources {
  return {
    changes: {
      on: (listener) =>
        watched.changes.on((change) => {
          const host = change && inverseOf(file.names).get(change.host)
          if (change === undefined) listener(undefined)
          else if (host !== undefined) listener({ ...change, host })
        }),
    },
    get hosts() {
      const names = inverseOf(file.names)
      return watched.hosts.flatMap((one) => {
        const host = one.isOwn === true ? one.host : names.get(one.host)
        return host === undefined ? [] : [{ ...one, host }]
      })
    },
    // All of them are watched for all tabs.
    follow: () => watched.follow([...context.state.hosts.keys()]),
  }
}
