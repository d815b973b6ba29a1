/** Jobs that other queues of this user run on the same hosts, such as that of a cluster before hosts.yaml gave it another name. */
import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { activePlaces } from '../../scheduler/jobs/active-places.ts'
import type { CliContext } from '../command-line/verb.ts'
import { driverHost } from './declared-hosts.ts'
import { queuePath } from './open-queue.ts'

const ENDING = '.db'
const MOST_QUEUES = 100

/** A sentence for each queue that runs jobs at addresses of these hosts. What cannot be read is left out. */
export function otherQueuesWords(inventory: Inventory, context: CliContext): readonly string[] {
  const own = queuePath(inventory, context)
  const names = new Map(inventory.hosts.map((host) => [driverHost(host).address, host.name]))
  return queuesBeside(own).flatMap((path) => {
    const places = activePlaces(path).flatMap(({ id, address }) => {
      const name = names.get(String(address))
      return name === undefined ? [] : [{ id, name }]
    })
    if (places.length === 0) return []
    const jobs = new Set(places.map(({ id }) => id)).size
    const hosts = foldHostSet([...new Set(places.map(({ name }) => name))])
    const cluster = printable(basename(path, ENDING))
    return [
      `${hosts}: ${jobs === 1 ? '1 job runs' : `${jobs} jobs run`} there in the queue of the cluster ${cluster}, which is not this one. If hosts.yaml gave that cluster another name, take the name back until they have ended: cluster: ${cluster}`,
    ]
  })
}

function queuesBeside(own: string): readonly string[] {
  try {
    const names = readdirSync(dirname(own)).filter((name) => name.endsWith(ENDING) && name !== basename(own))
    return names.slice(0, MOST_QUEUES).map((name) => join(dirname(own), name))
  } catch {
    // There is no queue yet.
    return []
  }
}
