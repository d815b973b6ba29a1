/**
 * The machine that the console runs on, through systeminformation, at almost no cost: CPU time comes from Node itself, because
 * currentLoad() runs a shell; what starts processes (cards, disks, file systems) is asked for rarely. GPUs are not: graphics()
 * starts five programs and asks the X server.
 */
import { cpus, loadavg, networkInterfaces, uptime } from 'node:os'
import { defined } from '../../base/defined.ts'
import { type CardTraffic, isRealCard, type Sample } from '../../ops/net/watch/sample.ts'
import type { OwnMachinePort } from '../../ops/net/watch/watch-hosts.ts'

/** Samples for each reading of the cards and disks, and of the file systems. */
const SELDOM = 10
const RARELY = 60
/** Each reading starts a process. */
const MOST_CARDS = 4

/** By its default export: in the bundle a CommonJS package that is imported later has no other. */
const information = async () => (await import('systeminformation')).default

export function createOwnMachine(): OwnMachinePort {
  let polls = 0
  let before: { readonly busyMs: number; readonly atMs: number } | undefined
  let cards: readonly CardTraffic[] = []
  let disks: Pick<Sample, 'readBytes' | 'writtenBytes'> = {}
  let fullest: Sample['fullest']
  let isReadingFileSystems = false

  const readFileSystems = async (): Promise<void> => {
    const { fsSize } = await information()
    const [most] = (await fsSize())
      // Other machines' disks, memory, and images that are full by nature are left out.
      .filter(({ fs, type, rw }) => rw !== false && (fs.startsWith('/dev/') || type === 'zfs' || type === 'overlay'))
      .toSorted((one, other) => other.use - one.use)
    fullest = most && { point: most.mount, used: most.use / 100 }
  }

  return {
    async poll() {
      const { fsStats, mem, networkStats } = await information()
      const poll = polls++
      // They return rates since their last call.
      if (poll % SELDOM === 0 || poll === 1) {
        const names = realCards()
        const [stats, disk] = await Promise.all([names.length === 0 ? [] : networkStats(names.join(',')), fsStats()])
        cards = stats.flatMap(({ iface, rx_sec, tx_sec }): CardTraffic[] =>
          // Null the first time, against its types.
          Number.isFinite(rx_sec) ? [{ name: iface, receivedBytes: rx_sec, sentBytes: tx_sec }] : [],
        )
        disks =
          typeof disk?.rx_sec === 'number' && typeof disk.wx_sec === 'number'
            ? { readBytes: disk.rx_sec, writtenBytes: disk.wx_sec }
            : {}
      }
      // df waits for an NFS server that is gone; nobody waits for df, and only one is started.
      if (poll % RARELY === 0 && !isReadingFileSystems) {
        isReadingFileSystems = true
        const done = () => {
          isReadingFileSystems = false
        }
        readFileSystems().then(done, done)
      }
      const memory = await mem()
      const now = processorTime()
      const then = before
      before = now
      if (then === undefined) return undefined
      const ms = now.cores * (now.atMs - then.atMs)
      return {
        upSeconds: uptime(),
        cores: now.cores,
        cpu: ms <= 0 ? 0 : Math.min(1, Math.max(0, (now.busyMs - then.busyMs) / ms)),
        load: loadavg()[0] ?? 0,
        memoryBytes: memory.total,
        memoryUsedBytes: memory.total - memory.available,
        swapBytes: memory.swaptotal,
        swapUsedBytes: memory.swapused,
        ...disks,
        ...defined({ fullest }),
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
