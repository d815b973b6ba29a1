/** What is known about a host at one second. Rates are per second; unknown values are left out, never 0. */
import { defined } from '../../../base/defined.ts'
import { LineReader } from '../../../base/line-reader.ts'
import { amountOf } from '../amount.ts'

export type CardTraffic = { readonly name: string; readonly receivedBytes: number; readonly sentBytes: number }

export type GpuSample = {
  /** `0` */
  readonly id: string
  readonly name: string
  /** 0 to 1 */
  readonly busy?: number
  readonly usedBytes?: number
  readonly totalBytes?: number
  readonly celsius?: number
  readonly watts?: number
  /** Process ids. */
  readonly processes?: readonly number[]
}

/** Sum of all mounts: bytes on the network, and READ, WRITE and GETATTR requests with their mean round trip. */
export type NfsTraffic = {
  readonly readBytes: number
  readonly writtenBytes: number
  readonly operations: number
  readonly roundTripMs?: number
}

export type Sample = {
  /** By this machine's clock, milliseconds since the epoch. */
  readonly atMs: number
  /** Since the host started. Rates are means since the previous sample. */
  readonly upSeconds?: number
  readonly cores: number
  /** 0 to 1, of all cores. */
  readonly cpu: number
  /** Of the last minute. */
  readonly load?: number
  readonly memoryBytes: number
  readonly memoryUsedBytes: number
  readonly swapBytes: number
  readonly swapUsedBytes: number
  /** Pages a second, in and out. */
  readonly swapped?: number
  readonly readBytes?: number
  readonly writtenBytes?: number
  /** Of the busiest disk, 0 to 1. */
  readonly diskBusy?: number
  /** The fullest local file system. */
  readonly fullest?: { readonly point: string; readonly used: number }
  /** All cards of the machine together. */
  readonly receivedBytes?: number
  readonly sentBytes?: number
  readonly cards: readonly CardTraffic[]
  readonly nfs?: NfsTraffic
  readonly gpus: readonly GpuSample[]
}

/**
 * The script that runs on a watched host: one line of POSIX sh without apostrophes, backslashes, exclamation marks or percent
 * signs, so that any login shell passes it to sh unchanged. Once a second one sed prints the kernel's counters, and a line `=`
 * ends the sample. Slow programs (df, tools of graphics cards) run rarely.
 */

/** proc(5): the lines that are printed from each file; the parser recognises them by their shape. */
const PICK = [
  '/^[0-9][0-9.]* [0-9][0-9.]*$/p', // uptime
  '/^[0-9.]* [0-9.]* [0-9.]* [0-9]*.[0-9]* [0-9]*$/p', // loadavg
  '/^cpu /p',
  ...['MemTotal', 'MemAvailable', 'MemFree', 'Buffers', 'Cached', 'SwapTotal', 'SwapFree'].map(
    (name) => `/^${name}:/p`,
  ),
  '/^pswpin /p;/^pswpout /p',
  // net/dev; the lines of mountstats have fewer numbers.
  `/^ *[^ :]*: *[0-9][0-9]*${'  *[0-9][0-9]*'.repeat(9)}/p`,
  '/ [shv]d[a-z]* [0-9]/p;/ xvd[a-z]* [0-9]/p;/ nvme[0-9]*n[0-9]* [0-9]/p;/ mmcblk[0-9]* [0-9]/p;/ ubd[a-z]* [0-9]/p', // diskstats
  '/^device .* mounted on /p;/bytes:/p;/READ:/p;/WRITE:/p;/GETATTR:/p', // mountstats
].join(';')

const FILES = '/proc/uptime /proc/loadavg /proc/stat /proc/meminfo /proc/vmstat /proc/net/dev /proc/diskstats'
const NVIDIA = 'index,uuid,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw'
/** For what no user of the host can name: dash's echo turns a backslash and n into another line. */
const tagged = (tag: string) => `while read -r l; do echo "${tag} $l" || exit; done`
/** How many samples pass between two calls of df. */
const SELDOM = 15

export const WATCH_SCRIPT = [
  'LC_ALL=C; export LC_ALL; PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin:/opt/rocm/bin"',
  'if [ -r /proc/stat ] && [ -r /proc/meminfo ]; then :; else echo none; exit 0; fi',
  'c=0; while read -r w x; do case $w in cpu[0-9]*) c=$((c+1));; intr) break;; esac; done </proc/stat; echo "cores $c"',
  `if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi --query-gpu=${NVIDIA} --format=csv,noheader,nounits -l 5 2>/dev/null | ${tagged('nvidia')} & nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits -l 5 2>/dev/null | ${tagged('nvproc')} & fi`,
  `if command -v rocm-smi >/dev/null 2>&1; then while :; do rocm-smi --showproductname --showuse --showmeminfo vram --showtemp --showpower --csv 2>/dev/null | ${tagged('rocm')}; sleep 30; done & fi`,
  `n=0; while :; do if [ $n = 0 ]; then m=; if grep -q " nfs4* " /proc/mounts; then m=/proc/self/mountstats; fi; { df -Pkl 2>/dev/null || df -Pk / 2>/dev/null; } | sed "s/^/fs /"; n=${SELDOM}; fi; sed -n "${PICK}" ${FILES} $m 2>/dev/null; echo "=" || exit; n=$((n-1)); sleep 1 || exit; done`,
].join('; ')

/** More than any sample of a machine with hundreds of disks and cards. */
const MAX_TEXT = 256 * 1024
/** Bounds for what is kept from one sample to the next: longer than any line, more than any machine has GPUs. */
const MAX_LINE = 16 * 1024
const MAX_GPUS = 64
/** In a sample; a node of Kubernetes has one for each pod. */
const MAX_CARDS = 64
/** Of all GPUs together. */
const MAX_PROCESSES = 512
const MAX_NAME = 256
/** Rates over less time mean nothing; the kernel counts hundredths of a second. */
const MIN_STEP_MS = 100
/** For how many samples an answer of these tools counts: a few of their intervals. Then they are dead, or hang. */
const NVIDIA_COUNTS = 20
const ROCM_COUNTS = 100
const VIRTUAL_CARDS =
  /^(lo|veth.*|docker\d*|br-.*|virbr.*|cni.*|flannel.*|cali.*|tap.*|tun\d*|ifb\d*|dummy\d*|bond\d*|team\d*|.*\.\d+)$/

/** A copy, because a part of a text keeps all of the text in memory. */
const nameFrom = (text: string): string => Buffer.from(text.slice(0, MAX_NAME)).toString()

/** Whether the card's traffic is not already counted with another card's. */
export const isRealCard = (name: string): boolean => !VIRTUAL_CARDS.test(name)

type Nfs = { readBytes: number; writtenBytes: number; operations: number; waitedMs: number }

type Counters = {
  upMs?: number
  load?: number
  busy?: number
  total?: number
  memory: Record<string, number>
  swapped?: number
  cards: Map<string, { readonly received: number; readonly sent: number }>
  disks: Map<string, { readonly read: number; readonly written: number; readonly busyMs: number }>
  nfs?: Nfs
  /** Mounts that were counted, because one that is visible at several paths is printed several times. */
  mounts: Set<string>
}

const fresh = (): Counters => ({ memory: {}, cards: new Map(), disks: new Map(), mounts: new Set() })

/** More than a kernel is built for (NR_CPUS). */
const MOST_CORES = 65_536

/** Parses the output of the script into samples; counters become rates between two of them. Bounded. */
export class SampleReader {
  readonly #lines = new LineReader(MAX_LINE)
  /** Of the current sample. */
  #length = 0
  #now = fresh()
  #before: Counters | undefined
  #cores = 0
  #fullest: Sample['fullest']
  #fullestNext: Sample['fullest']
  #sampleCount = 0
  #gpus = new Map<string, { readonly sample: GpuSample; readonly lastSample: number }>()
  #gpuNames = new Map<string, string>()
  #processes = new Map<string, number[]>()
  #rocmHead: readonly string[] = []
  /** The source of the current mount; undefined if it is not counted. */
  #mountFrom: string | undefined
  /** The host has no /proc, so there are no samples. */
  isUnsupported = false

  push(text: string, atMs: number): readonly Sample[] {
    return this.#lines.push(text).flatMap((line) => this.#line(line.trim(), atMs) ?? [])
  }

  #line(line: string, atMs: number): Sample | undefined {
    if (line === '=') {
      this.#length = 0
      return this.#end(atMs)
    }
    this.#length += line.length
    if (line.length > MAX_LINE || this.#length > MAX_TEXT) return
    const words = line.split(/\s+/)
    const [key = '', ...rest] = words
    const now = this.#now
    switch (key) {
      case 'none':
        this.isUnsupported = true
        return
      case 'cores':
        this.#cores = Math.min(MOST_CORES, amountOf(rest[0]) ?? 0)
        return
      case 'cpu':
        return this.#cpu(rest.map((word) => amountOf(word) ?? 0))
      case 'fs':
        return this.#fileSystem(rest)
      case 'nvidia':
        return this.#nvidia(fieldsOf(line))
      case 'nvproc':
        return this.#process(fieldsOf(line))
      case 'rocm':
        return this.#rocm(fieldsOf(line))
      case 'pswpin':
      case 'pswpout':
        now.swapped = (now.swapped ?? 0) + (amountOf(rest[0]) ?? 0)
        return
      case 'device':
        this.#mountFrom = / fstype nfs4? /.test(line) ? rest[0] : undefined
        return
      case 'bytes:':
        return this.#nfsBytes(rest)
      case 'READ:':
      case 'WRITE:':
      case 'GETATTR:':
        if (now.nfs === undefined || this.#mountFrom === undefined) return
        now.nfs.operations += amountOf(rest[0]) ?? 0
        now.nfs.waitedMs += amountOf(rest[6]) ?? 0
        return
    }
    if (/^\d[\d.]*$/.test(key)) return this.#numbers(words)
    const [name = '', first] = line.split(/:\s*/)
    const values = (first ?? '').split(/\s+/).map(amountOf)
    if (values.length >= 16 && values.every((value) => value !== undefined)) {
      now.cards.set(nameFrom(name), { received: values[0] ?? 0, sent: values[8] ?? 0 })
    } else if (/^(Mem|Swap|Buffers|Cached)/.test(name)) now.memory[name] = (values[0] ?? 0) * 1024
  }

  #cpu(ticks: readonly number[]): undefined {
    // user nice system idle iowait irq softirq steal; guests are in user already.
    const all = ticks.slice(0, 8)
    this.#now.total = all.reduce((sum, each) => sum + each, 0)
    this.#now.busy = this.#now.total - (ticks[3] ?? 0) - (ticks[4] ?? 0)
  }

  #numbers(words: readonly string[]): undefined {
    const now = this.#now
    const first = amountOf(words[0])
    if (first === undefined) return
    if (words.length === 2) now.upMs = first * 1000
    else if (words.length === 5 && words[3]?.includes('/')) now.load = first
    else if (words.length >= 13) {
      const [read = 0, written = 0, busyMs = 0] = [words[5], words[9], words[12]].map(amountOf)
      now.disks.set(words[2] ?? '', { read: read * 512, written: written * 512, busyMs })
    }
  }

  #nfsBytes(values: readonly string[]): undefined {
    const now = this.#now
    const mount = `${this.#mountFrom} ${values.join(' ')}`
    if (this.#mountFrom === undefined || now.mounts.has(mount)) {
      this.#mountFrom = undefined
      return
    }
    now.mounts.add(mount)
    now.nfs ??= { readBytes: 0, writtenBytes: 0, operations: 0, waitedMs: 0 }
    // As nfsiostat reads them: the fifth and sixth number are bytes on the network.
    now.nfs.readBytes += amountOf(values[4]) ?? 0
    now.nfs.writtenBytes += amountOf(values[5]) ?? 0
  }

  #fileSystem(words: readonly string[]): undefined {
    const used = partOf(words[4]?.replace('%', ''))
    const point = nameFrom(words.slice(5).join(' '))
    // The heading comes first.
    if (words[0] === 'Filesystem') this.#fullestNext = undefined
    const isReal = /^\/(?!proc|sys|dev|run|snap)/.test(point)
    if (used === undefined || !isReal || /^(tmpfs|devtmpfs|udev|overlay|none|efivarfs)$/.test(words[0] ?? '')) return
    if (this.#fullestNext === undefined || used > this.#fullestNext.used) this.#fullestNext = { point, used }
    this.#fullest = this.#fullestNext
  }

  #nvidia(fields: readonly string[]): undefined {
    const [id = '', uuid = '', name = ''] = fields
    if (!/^\d+$/.test(id) || !this.#hasRoomFor(id)) return
    // `[N/A]`, `[Not Supported]` and the like are unknown.
    const [used, total, celsius, watts] = fields.slice(4).map(amountOf)
    if (this.#gpuNames.size < MAX_GPUS || this.#gpuNames.has(uuid)) this.#gpuNames.set(uuid, id)
    // A new round: its processes follow.
    const processes = this.#processes.get(uuid)
    this.#processes.delete(uuid)
    const [usedBytes, totalBytes] = [used && used * 2 ** 20, total && total * 2 ** 20]
    const known = { busy: partOf(fields[3]), usedBytes, totalBytes, celsius, watts, processes }
    this.#noteGpu({ id, name, ...defined(known) }, NVIDIA_COUNTS)
  }

  #process([uuid = '', pid = '']: readonly string[]): undefined {
    if (!/^\d+$/.test(pid) || (this.#processes.size >= MAX_GPUS && !this.#processes.has(uuid))) return
    const pids = this.#processes.get(uuid) ?? []
    const count = [...this.#processes.values()].reduce((sum, each) => sum + each.length, 0)
    // Two rounds may run into each other.
    if (count < MAX_PROCESSES && !pids.includes(Number(pid))) this.#processes.set(uuid, [...pids, Number(pid)])
  }

  #rocm(fields: readonly string[]): undefined {
    if (/^device$/i.test(fields[0] ?? '')) {
      this.#rocmHead = fields
      return
    }
    const id = /^card(\d+)$/.exec(fields[0] ?? '')?.[1]
    if (id === undefined || !this.#hasRoomFor(id)) return
    const text = (pattern: RegExp) => fields[this.#rocmHead.findIndex((name) => pattern.test(name))]
    const find = (pattern: RegExp) => amountOf(text(pattern))
    const busy = partOf(text(/GPU use \(%\)/i))
    const totalBytes = find(/VRAM Total Memory \(B\)/i)
    const usedBytes = find(/VRAM Total Used Memory \(B\)/i)
    // Instinct cards from MI300 on have no sensor at the edge, or say N/A.
    const celsius = find(/Temperature.*edge/i) ?? find(/Temperature.*junction/i)
    const watts = find(/Power.*\(W\)/i)
    const name = text(/^Card series$/i) || 'AMD'
    const known = { busy, usedBytes, totalBytes, celsius, watts }
    this.#noteGpu({ id, name, ...defined(known) }, ROCM_COUNTS)
  }

  #noteGpu(sample: GpuSample, countsFor: number): void {
    this.#gpus.set(sample.id, { sample, lastSample: this.#sampleCount + countsFor })
  }

  /** Of a tool that is silent, only which GPUs there were. */
  #knownGpus(): readonly GpuSample[] {
    return [...this.#gpus.values()].map(({ sample, lastSample }) =>
      this.#sampleCount <= lastSample ? sample : { id: sample.id, name: sample.name },
    )
  }

  #hasRoomFor(gpu: string): boolean {
    return this.#gpus.size < MAX_GPUS || this.#gpus.has(gpu)
  }

  #end(atMs: number): Sample | undefined {
    const now = this.#now
    const before = this.#before
    this.#now = fresh()
    this.#sampleCount += 1
    if (now.upMs === undefined || now.total === undefined || now.memory.MemTotal === undefined) return
    this.#before = now
    if (before?.upMs === undefined || now.upMs < before.upMs + MIN_STEP_MS) return
    const seconds = (now.upMs - before.upMs) / 1000
    const rate = (later: number, earlier: number) => Math.max(0, later - earlier) / seconds
    const ticks = now.total - (before.total ?? 0)
    const cards = [...now.cards].flatMap(([name, { received, sent }]): CardTraffic[] => {
      const then = before.cards.get(name)
      if (then === undefined) return []
      return [{ name, receivedBytes: rate(received, then.received), sentBytes: rate(sent, then.sent) }]
    })
    const disks = [...now.disks].flatMap(([name, disk]) => {
      const then = before.disks.get(name)
      return then === undefined ? [] : [{ disk, then }]
    })
    const busiest = Math.max(...disks.map(({ disk, then }) => rate(disk.busyMs, then.busyMs) / 1000))
    const real = cards.filter(({ name }) => isRealCard(name))
    const sum = <T>(all: readonly T[], pick: (each: T) => number) => all.reduce((total, each) => total + pick(each), 0)
    const { memory } = now
    const memoryBytes = memory.MemTotal ?? 0
    // Kernels before 3.14 do not report available memory.
    const available = memory.MemAvailable ?? (memory.MemFree ?? 0) + (memory.Buffers ?? 0) + (memory.Cached ?? 0)
    return {
      atMs,
      upSeconds: now.upMs / 1000,
      cores: this.#cores,
      cpu: ticks > 0 ? Math.min(1, Math.max(0, ((now.busy ?? 0) - (before.busy ?? 0)) / ticks)) : 0,
      ...defined({
        load: now.load,
        fullest: this.#fullest,
        diskBusy: disks.length === 0 ? undefined : Math.min(1, busiest),
      }),
      memoryBytes,
      memoryUsedBytes: Math.max(0, memoryBytes - available),
      swapBytes: memory.SwapTotal ?? 0,
      swapUsedBytes: Math.max(0, (memory.SwapTotal ?? 0) - (memory.SwapFree ?? 0)),
      ...(now.swapped === undefined || before.swapped === undefined
        ? {}
        : { swapped: rate(now.swapped, before.swapped) }),
      readBytes: sum(disks, ({ disk, then }) => rate(disk.read, then.read)),
      writtenBytes: sum(disks, ({ disk, then }) => rate(disk.written, then.written)),
      receivedBytes: sum(real, ({ receivedBytes }) => receivedBytes),
      sentBytes: sum(real, ({ sentBytes }) => sentBytes),
      cards: [...real, ...cards.filter(({ name }) => !isRealCard(name))].slice(0, MAX_CARDS),
      ...(now.nfs === undefined || before.nfs === undefined ? {} : { nfs: nfsOf(now.nfs, before.nfs, rate) }),
      gpus: this.#knownGpus(),
    }
  }
}

/** From percent, 0 to 1 also where a program reports more. */
function partOf(percent: string | undefined): number | undefined {
  const value = amountOf(percent)
  return value === undefined ? undefined : Math.min(1, value / 100)
}

/** What is behind the first word, at its commas. */
function fieldsOf(line: string): readonly string[] {
  return line
    .slice(line.indexOf(' ') + 1)
    .split(',')
    .map((word) => nameFrom(word.trim()))
}

function nfsOf(now: Nfs, before: Nfs, rate: (later: number, earlier: number) => number): NfsTraffic {
  const operations = now.operations - before.operations
  return {
    readBytes: rate(now.readBytes, before.readBytes),
    writtenBytes: rate(now.writtenBytes, before.writtenBytes),
    operations: rate(now.operations, before.operations),
    ...(operations > 0 ? { roundTripMs: Math.max(0, now.waitedMs - before.waitedMs) / operations } : {}),
  }
}
