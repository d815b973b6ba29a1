/** Hosts grouped by their GPU models. */
import type { Cluster } from '../model/cluster.ts'

export class HostGroups {
  /** By group: its hosts, ascending; never empty. */
  readonly members: readonly Int32Array[]
  readonly groupOf: Uint16Array
  /** By host: its index in `members` of its group. */
  readonly slotOf: Int32Array
  /** By group: its model numbers. */
  readonly models: readonly (readonly number[])[]

  constructor(cluster: Cluster) {
    const members: number[][] = []
    const models: (readonly number[])[] = []
    const groupByModels = new Map<string, number>()
    this.groupOf = new Uint16Array(cluster.hostCount)
    this.slotOf = new Int32Array(cluster.hostCount)
    for (let host = 0; host < cluster.hostCount; host++) {
      const range = cluster.deviceModel.subarray(cluster.deviceStart[host], cluster.deviceStart[host + 1])
      const own = [...new Set(range)].sort((left, right) => left - right)
      let group = groupByModels.get(own.join())
      if (group === undefined) {
        group = members.push([]) - 1
        models.push(own)
        groupByModels.set(own.join(), group)
      }
      this.groupOf[host] = group
      this.slotOf[host] = (members[group]?.push(host) ?? 1) - 1
    }
    this.members = members.map((hosts) => Int32Array.from(hosts))
    this.models = models
  }
}
