/** The connections of a console to the hosts of one file of a workspace, by the names that the file gives them. */
import { inverseOf } from '../../base/collections.ts'
import type { Fleet } from '../../ssh/create-fleet.ts'
import type { WorkspaceFile } from './declared-hosts.ts'

/** What works over a console's connections needs no more of them. */
export type Connections = Pick<Fleet, 'endpoint' | 'connection' | 'session' | 'connect' | 'on'>

/** A host that was opened from another file is not reached: when files change, its name may pass to a host of this one. */
export function fleetOfFile(fleet: Connections, file: Pick<WorkspaceFile, 'title' | 'names'>): Connections {
  const inConsole = (host: string): string | undefined => {
    const name = file.names.get(host)
    return name !== undefined && fleet.endpoint(name)?.passwordScope === file.title ? name : undefined
  }
  return {
    endpoint(host) {
      const name = inConsole(host)
      const endpoint = name === undefined ? undefined : fleet.endpoint(name)
      return endpoint && { ...endpoint, host }
    },
    connection(host) {
      const name = inConsole(host)
      return name === undefined ? undefined : fleet.connection(name)
    },
    session(host) {
      const name = inConsole(host)
      return name === undefined ? { kind: 'closed' } : fleet.session(name)
    },
    connect: (hosts) => fleet.connect(hosts.flatMap((host) => inConsole(host) ?? [])),
    on: (listener) =>
      fleet.on((event) => {
        const host = inverseOf(file.names).get(event.host)
        if (host !== undefined && inConsole(host) !== undefined) listener({ ...event, host })
      }),
  }
}
