/**
 * The machine that the console runs on, through systeminformation, at almost no cost: CPU time comes from Node itself, because
 * currentLoad() runs a shell; networkStats() runs one for each interface and is called rarely; disks would need lsblk.
 */
import { cpus, loadavg, networkInterfaces } from 'node:os'
import { type CardTraffic, isRealCard } from '../../ops/net/watch/sample.ts'
import type { OwnMachinePort } from '../../ops/net/watch/watch-hosts.ts'

/** Samples for each reading of the interfaces. */
const SELDOM = 10
/** Each reading starts a process. */
const MOST_CARDS = 4

export function createOwnMachine(): OwnMachinePort {
  let polls = 0
  let before: { readonly busyMs: number; readonly atMs: number } | undefined
  let cards: readonly CardTraffic[] = []
  return {
    async poll() {
      const { mem, networkStats } = await import('systeminformation')
      const poll = polls++
      // It returns rates since its last call.
      if (poll % SELDOM === 0 || poll === 1) {
        const names = realCards()
        const stats = names.length === 0 ? [] : await networkStats(names.join(','))
        cards = stats.flatMap(({ iface, rx_sec, tx_sec }): CardTraffic[] =>
          // Null the first time, against its types.
          Number.isFinite(rx_sec) ? [{ name: iface, receivedBytes: rx_sec, sentBytes: tx_sec }] : [],
        )
      }
      const memory = await mem()
      const now = processorTime()
      const then = before
      before = now
      if (then === undefined) return undefined
      const ms = now.cores * (now.atMs - then.atMs)
      return {
        cores: now.cores,
        cpu: ms <= 0 ? 0 : Math.min(1, Math.max(0, (now.busyMs - then.busyMs) / ms)),
        load: loadavg()[0] ?? 0,
        memoryBytes: memory.total,
        memoryUsedBytes: memory.total - memory.available,
        swapBytes: memory.swaptotal,
        swapUsedBytes: memory.swapused,
        ...(cards.length === 0
          ? {}
          : {
              receivedBytes: cards.reduce((sum, { receivedBytes }) => sum + receivedBytes, 0),
              sentBytes: cards.reduce((sum, { sentBytes }) => sum + sentBytes, 0),
            }),
        cards,
        gpus: [],
      }
    },
  }
}

/** Of all processors since boot; waiting for disks is not busy. */
function processorTime(): { readonly cores: number; readonly busyMs: number; readonly atMs: number } {
  const all = cpus()
  const busyMs = all.reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0)
  return { cores: all.length, busyMs, atMs: performance.now() }
}

function realCards(): readonly string[] {
  return Object.entries(networkInterfaces())
    .flatMap(([name, addresses]) => (isRealCard(name) && addresses?.some(({ internal }) => !internal) ? [name] : []))
    .slice(0, MOST_CARDS)
}
