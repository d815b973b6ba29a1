/** A Ray cluster behind the console's port: what its head reports, and which orders it gets. */
import type { ClusterUsage, NodeUsage } from '../../../../src/ops/ray/usage.ts'
import type { CommandHandlers } from '../../../../src/ops/run/run-hosts.ts'
import type { RayCommand, RayPort, RayWatchOptions } from '../../../../src/ui/ray/ray-view.ts'

export const ADDRESSES = new Map([
  ['10.9.0.1', 'm1'],
  ['10.9.0.2', 'm2'],
  ['10.9.0.3', 'm3'],
])

export function nodeUsage(ip: string, own: Partial<NodeUsage> = {}): NodeUsage {
  const logical = new Map([['CPU', { used: 0, total: 4 }]])
  return { id: `id-${ip}`, ip, isHead: ip === '10.9.0.1', isAlive: true, message: '', logical, gpuPercents: [], ...own }
}

export function usageOf(own: Partial<ClusterUsage> = {}): ClusterUsage {
  return {
    nodes: [...ADDRESSES.keys()].map((ip) => nodeUsage(ip)),
    groups: [],
    actors: new Map(),
    demands: [],
    ...own,
  }
}

export type FakeRay = RayPort & {
  readonly watches: { readonly options: RayWatchOptions; end(reason?: string): void }[]
  readonly orders: { readonly order: RayCommand; readonly handlers: CommandHandlers; readonly ends: string[] }[]
}

export function fakeRay(): FakeRay {
  const watches: FakeRay['watches'] = []
  const orders: FakeRay['orders'] = []
  return {
    watches,
    orders,
    cluster: async () => ({ head: 'm1', nodes: ADDRESSES }),
    watch: (options) =>
      new Promise((resolve) => {
        watches.push({ options, end: resolve })
        options.signal.addEventListener('abort', () => resolve(undefined))
      }),
    start(order, handlers) {
      const ends: string[] = []
      orders.push({ order, handlers, ends })
      return { stop: () => ends.push('stop'), abandon: () => ends.push('abandon'), pause() {}, resume() {} }
    },
  }
}
