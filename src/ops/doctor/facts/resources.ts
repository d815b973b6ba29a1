/** What the machine has to give: processors and their load, memory, open files. */
import { type Probe, parseCount, parsePairs } from './probe.ts'

export type Load = { readonly cores?: number; readonly one?: number; readonly five?: number; readonly fifteen?: number }

export const loadProbe: Probe<Load> = {
  name: 'load',
  shell: `
echo "cores=$(nproc || getconf _NPROCESSORS_ONLN || grep -c '^processor' /proc/cpuinfo)"
if [ -r /proc/loadavg ]; then read -r one five fifteen rest < /proc/loadavg; echo "load=$one $five $fifteen"
else echo "load=$(uptime)"
fi
`,
  parse(text) {
    const pairs = parsePairs(text)
    const cores = parseCount(pairs.get('cores'))
    // Some locales of uptime write a comma for the point; the three numbers are the last ones.
    const numbers = pairs
      .get('load')
      ?.replace(/(\d),(\d)/g, '$1.$2')
      .match(/\d+\.\d+/g)
      ?.slice(-3)
      .map(Number)
    const [one, five, fifteen] = numbers ?? []
    const hasLoad = one !== undefined && five !== undefined && fifteen !== undefined
    if (!hasLoad && !cores) return undefined
    return { ...(cores ? { cores } : {}), ...(hasLoad ? { one, five, fifteen } : {}) }
  },
}

/** Bytes. proc_meminfo(5); kernels before 3.14 do not estimate what is available, and then it is free + buffers + cache. */
export type Memory = {
  readonly totalBytes: number
  readonly availableBytes?: number
  readonly swapTotalBytes?: number
  readonly swapFreeBytes?: number
}

export const memoryProbe: Probe<Memory> = {
  name: 'memory',
  shell: `
if [ -r /proc/meminfo ]; then grep -E '^(MemTotal|MemFree|MemAvailable|Buffers|Cached|SwapTotal|SwapFree):' /proc/meminfo
else echo "bytes=$(sysctl -n hw.memsize || sysctl -n hw.physmem)"
fi
`,
  parse(text) {
    const bytes = new Map<string, number>()
    for (const match of text.matchAll(/^(\w+): +(\d+) kB$/gm)) bytes.set(match[1] ?? '', Number(match[2]) * 1024)
    const total = bytes.get('MemTotal') ?? parseCount(/^bytes=(\d+)$/m.exec(text)?.[1])
    if (!total) return undefined
    const parts = ['MemFree', 'Buffers', 'Cached'].map((key) => bytes.get(key))
    const estimate = parts.every((part) => part !== undefined) ? parts.reduce((sum, part) => sum + part, 0) : undefined
    const available = bytes.get('MemAvailable') ?? estimate
    const swapTotal = bytes.get('SwapTotal')
    const swapFree = bytes.get('SwapFree')
    return {
      totalBytes: total,
      ...(available === undefined ? {} : { availableBytes: available }),
      ...(swapTotal === undefined || swapFree === undefined
        ? {}
        : { swapTotalBytes: swapTotal, swapFreeBytes: swapFree }),
    }
  },
}

export type Limit = number | 'unlimited'
/** RLIMIT_NOFILE of a command's process. */
export type OpenFilesLimit = { readonly soft: Limit; readonly hard: Limit }

export const openFilesProbe: Probe<OpenFilesLimit> = {
  name: 'open-files',
  shell: `
echo "soft=$(ulimit -S -n)"
echo "hard=$(ulimit -H -n)"
`,
  parse(text) {
    const pairs = parsePairs(text)
    const limit = (word: string | undefined): Limit | undefined => (word === 'unlimited' ? word : parseCount(word))
    const soft = limit(pairs.get('soft'))
    const hard = limit(pairs.get('hard'))
    return soft === undefined || hard === undefined ? undefined : { soft, hard }
  },
}
