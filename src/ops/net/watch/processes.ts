/**
 * The processes of one host, every few seconds: what uses its cores, memory, disks and GPUs. Rates are means since the previous
 * report; what is not known (a process of another user's disks, a host without ps) is left out, never 0.
 */
import type { Clock } from '../../../base/clock.ts'
import { defined } from '../../../base/defined.ts'
import { LineReader } from '../../../base/line-reader.ts'
import { printable } from '../../../base/printable.ts'
import { amountOf } from '../amount.ts'
import { RepeatedScript, type WatchPort } from './repeated-script.ts'

export type ProcessUse = {
  readonly pid: number
  readonly user?: string
  /** proc(5): R, S, D, Z … */
  readonly state: string
  readonly threads: number
  /** The command line, or the name of the program where only that is known. */
  readonly command: string
  /** In cores: 1.5 of two threads. */
  readonly cpu?: number
  readonly memoryBytes: number
  /** A second, from and to disks. */
  readonly readBytes?: number
  readonly writtenBytes?: number
  /** 0 to 1, of the GPU that it uses most. */
  readonly gpu?: number
  readonly gpuBytes?: number
}

export type ProcessReport = {
  readonly atMs: number
  readonly processes: readonly ProcessUse[]
  /** There are more than were reported. */
  readonly isCut: boolean
}

const MOST_PROCESSES = 8000
const MOST_COMMAND = 300
/** After this many reports all command lines are read again, because a process may execute another program. */
const READ_AGAIN = 8
const EVERY_S = 2

/** Of each process that has used anything: what proc(5) counts of it, and its name. `$ 1` because sh would expand the other form. */
const COUNT = [
  // The name may hold line breaks; it is too short to hold as many numbers as follow it.
  'h || /^[0-9]/ { if (h) $ 0 = h OFS $ 0; h = none',
  'if (match($ 0, /.*[)] /) == 0 || split(substr($ 0, RLENGTH + 1), f) < 22) { h = $ 0; next }',
  'c = substr($ 0, 1, RLENGTH - 2)',
  'if (f[12] + f[13] + f[22] == 0) next',
  `if (++n > ${MOST_PROCESSES}) { print x; exit }`,
  'match(c, /[(]/); k = $ 1',
  'print t, k, f[2], f[1], f[12], f[13], f[18], f[20], f[22], (k in r) ? r[k] : z, (k in w) ? w[k] : z, substr(c, RSTART + 1); next }',
  '{ split($ 0, a, s); if (a[5] ~ /^read/) r[a[3]] = a[6]; else w[a[3]] = a[6] }',
].join('; ')

/** Command lines of the processes that were not there the last time. */
const NAMES = [
  'BEGIN { n = split(o, a); for (i = 1; i <= n; i++) b[a[i]] }',
  `{ if (++m > ${MOST_PROCESSES}) next; print $ 1; if ($ 1 in b) next; print t, substr($ 0, 1, ${MOST_COMMAND}) | c }`,
].join(' ')

/** Not echo: dash turns a backslash and n in the name of a process into another line. */
const nvidia = (tag: string, command: string) =>
  `nvidia-smi ${command} 2>/dev/null | awk -v t=${tag} "{ print t, $ 0 }"`

/** As WATCH_SCRIPT, without the characters that some login shell reads differently; a line `=` ends a report. */
export const PROCESS_SCRIPT = [
  'LC_ALL=C; export LC_ALL; PATH="$PATH:/usr/local/bin:/usr/bin:/usr/sbin:/sbin"',
  'if [ -r /proc/1/stat ] && command -v awk >/dev/null 2>&1; then :; else echo none; exit 0; fi',
  'echo "units $(getconf CLK_TCK 2>/dev/null || echo 100) $(getconf PAGESIZE 2>/dev/null || echo 4096)"',
  'echo "self $$"; exec 3>&1; o=; n=0',
  [
    'while :; do read -r u x </proc/uptime',
    'echo "up $u" || exit',
    `{ grep -s "^[rw][a-z]*_bytes:" /proc/[0-9]*/io /dev/null; cat /proc/[0-9]*/stat 2>/dev/null; } | awk -v t=p -v x=cut -v z=- -v s="[/: ]+" "${COUNT}"`,
    `o=$( { LC_ALL=C.UTF-8 ps -A -o pid= -o user:32= -o args= 2>/dev/null || LC_ALL=C.UTF-8 ps -A -o pid= -o user= -o args= 2>/dev/null; } | awk -v t=c -v c="cat >&3" -v o="$o" "${NAMES}")`,
    'echo "=" || exit',
    `if command -v nvidia-smi >/dev/null 2>&1; then ${nvidia('gpu', 'pmon -c 1 -s um')}; ${nvidia('app', '--query-compute-apps=pid,used_memory --format=csv,noheader,nounits')}; echo gpus; fi`,
    `n=$((n+1)); if [ $n = ${READ_AGAIN} ]; then n=0; o=; fi`,
    `sleep ${EVERY_S} || exit`,
    'done',
  ].join('; '),
].join('; ')

const MAX_LINE = 4 * 1024
const MAX_REPORT = 4 * 1024 * 1024

type Counted = {
  readonly parent: number
  readonly state: string
  readonly ticks: number
  readonly threads: number
  readonly start: string
  readonly pages: number
  readonly read: number | undefined
  readonly written: number | undefined
  readonly name: string
}

type Named = { readonly user: string; readonly command: string }
type GpuUse = { sm?: number; bytes?: number }

/** Parses the output of the script into reports; counters become rates between two of them. Bounded. */
export class ProcessReader {
  readonly #lines = new LineReader(MAX_LINE)
  #length = 0
  #ticksPerSecond = 100
  #pageBytes = 4096
  #upSeconds = 0
  /** The script itself, which is not shown. */
  #self = -1
  #now = new Map<number, Counted>()
  #isCut = false
  #before: { readonly upSeconds: number; readonly processes: ReadonlyMap<number, Counted> } | undefined
  readonly #names = new Map<number, Named>()
  #pmonHead: readonly string[] = []
  #gpuNext = new Map<number, GpuUse>()
  #gpus: ReadonlyMap<number, GpuUse> = new Map()
  /** The host has no /proc, or no awk. */
  isUnsupported = false

  push(text: string, atMs: number): readonly ProcessReport[] {
    return this.#lines.push(text).flatMap((line) => this.#line(line, atMs) ?? [])
  }

  #line(line: string, atMs: number): ProcessReport | undefined {
    if (line === '=') {
      this.#length = 0
      return this.#end(atMs)
    }
    this.#length += line.length
    if (line.length > MAX_LINE || this.#length > MAX_REPORT) return
    const words = line.trim().split(/\s+/)
    const [tag = '', first] = words
    switch (tag) {
      case 'none':
        this.isUnsupported = true
        return
      case 'units':
        this.#ticksPerSecond = amountOf(first) || 100
        this.#pageBytes = amountOf(words[2]) || 4096
        return
      case 'self':
        this.#self = amountOf(first) ?? -1
        return
      case 'up':
        this.#upSeconds = amountOf(first) ?? 0
        return
      case 'cut':
        this.#isCut = true
        return
      case 'p':
        return this.#count(line)
      case 'c':
        return this.#name(line)
      case 'gpu':
        return this.#pmon(words.slice(1))
      case 'app':
        return this.#app(line)
      case 'gpus':
        this.#gpus = this.#gpuNext
        this.#gpuNext = new Map()
        return
    }
    return
  }

  #count(line: string): undefined {
    const fields = /^p (\d{1,10}) (\d{1,10}) (\S) (\d+) (\d+) (\d+) (\d+) (\d+) (\S+) (\S+) (.*)$/.exec(line)
    if (fields === null || this.#now.size >= MOST_PROCESSES) return
    const [, pid, parent, state = '', user, system, threads, start = '', pages, read, written, name = ''] = fields
    const key = Number(pid)
    // The kernel prints each process once: another line is a program's name that looks like one.
    if (this.#now.has(key)) return
    this.#now.set(key, {
      parent: Number(parent),
      state: printable(state),
      ticks: (amountOf(user) ?? 0) + (amountOf(system) ?? 0),
      threads: amountOf(threads) ?? 1,
      start,
      pages: amountOf(pages) ?? 0,
      read: amountOf(read),
      written: amountOf(written),
      name: printable(name),
    })
  }

  #name(line: string): undefined {
    const [, pid, user = '', command = ''] = /^c +(\d{1,10}) +(\S+) +(.*)$/.exec(line) ?? []
    if (pid === undefined || (this.#names.size >= 2 * MOST_PROCESSES && !this.#names.has(Number(pid)))) return
    this.#names.set(Number(pid), { user: printable(user), command: printable(command.trimEnd()) })
  }

  /** `# gpu pid type sm mem enc dec … fb ccpm command`: the columns depend on the driver. */
  #pmon(words: readonly string[]): undefined {
    if (words[0] === '#') {
      if (words.includes('pid')) this.#pmonHead = words.slice(1)
      return
    }
    const at = (title: string) => words[this.#pmonHead.indexOf(title)]
    const use = this.#gpuOf(at('pid'))
    const sm = amountOf(at('sm'))
    const megabytes = amountOf(at('fb'))
    if (use === undefined) return
    if (sm !== undefined) use.sm = Math.max(use.sm ?? 0, Math.min(1, sm / 100))
    if (megabytes !== undefined) use.bytes = Math.max(use.bytes ?? 0, megabytes * 2 ** 20)
  }

  #app(line: string): undefined {
    const [pid, megabytes] = line.slice(4).split(',')
    const use = this.#gpuOf(pid?.trim())
    const used = amountOf(megabytes?.trim())
    if (use !== undefined && used !== undefined) use.bytes = Math.max(use.bytes ?? 0, used * 2 ** 20)
  }

  #gpuOf(pid: string | undefined): GpuUse | undefined {
    if (pid === undefined || !/^\d{1,10}$/.test(pid)) return undefined
    const known = this.#gpuNext.get(Number(pid))
    if (known !== undefined || this.#gpuNext.size >= MOST_PROCESSES) return known
    const use: GpuUse = {}
    this.#gpuNext.set(Number(pid), use)
    return use
  }

  #end(atMs: number): ProcessReport | undefined {
    const [now, before, isCut] = [this.#now, this.#before, this.#isCut]
    this.#now = new Map()
    this.#isCut = false
    if (now.size === 0) return undefined
    this.#before = { upSeconds: this.#upSeconds, processes: now }
    for (const pid of this.#names.keys()) if (!now.has(pid)) this.#names.delete(pid)
    const seconds = before === undefined ? 0 : this.#upSeconds - before.upSeconds
    return {
      atMs,
      isCut,
      processes: [...now].flatMap(([pid, counted]): ProcessUse[] => {
        if (this.#isSelf(pid, now)) return []
        const then = before?.processes.get(pid)
        const same = then?.start === counted.start ? then : undefined
        // A process that is new since then began at 0.
        const isNew = before !== undefined && Number(counted.start) / this.#ticksPerSecond >= before.upSeconds
        const rate = (pick: (one: Counted) => number | undefined) => {
          const [later, earlier] = [pick(counted), same === undefined ? (isNew ? 0 : undefined) : pick(same)]
          if (later === undefined || earlier === undefined || !(seconds > 0)) return undefined
          return Math.max(0, later - earlier) / seconds
        }
        const ticks = rate((one) => one.ticks)
        const gpu = this.#gpus.get(pid)
        const named = this.#names.get(pid)
        const one = {
          pid,
          state: counted.state,
          threads: counted.threads,
          memoryBytes: counted.pages * this.#pageBytes,
          command: named?.command || counted.name,
          ...defined({
            user: named?.user,
            cpu: ticks === undefined ? undefined : ticks / this.#ticksPerSecond,
            readBytes: rate((one) => one.read),
            writtenBytes: rate((one) => one.written),
            gpu: gpu?.sm,
            gpuBytes: gpu?.bytes,
          }),
        }
        return [one]
      }),
    }
  }
  #isSelf(pid: number, processes: ReadonlyMap<number, Counted>): boolean {
    // The script, its subshells and their programs.
    for (let [at, depth] = [pid, 0] as [number | undefined, number]; at !== undefined && depth < 4; depth += 1) {
      if (at === this.#self) return true
      at = processes.get(at)?.parent
    }
    return false
  }
}

/** What is known of the processes of one host. */
export type WatchedProcesses = {
  readonly host: string
  /** Undefined: nothing yet. */
  readonly last: ProcessReport | undefined
  /** Why there is no newer report. */
  readonly trouble?: string
}

export type ProcessWatchOptions = {
  readonly host: string
  readonly port: WatchPort
  readonly clock: Clock
  onChange(): void
}

/** Disposing stops the script. */
export class ProcessWatch implements Disposable {
  readonly #script: RepeatedScript
  #view: WatchedProcesses

  constructor({ host, port, clock, onChange }: ProcessWatchOptions) {
    this.#view = { host, last: undefined }
    this.#script = new RepeatedScript({
      host,
      script: PROCESS_SCRIPT,
      port,
      clock,
      reader: () => {
        const reader = new ProcessReader()
        return {
          push: (text) => {
            const last = reader.push(text, clock.now()).at(-1)
            if (last === undefined) return false
            this.#view = { host, last }
            onChange()
            return true
          },
          get refusal() {
            return reader.isUnsupported ? 'its processes cannot be listed: it has no /proc, or no awk' : undefined
          },
        }
      },
      onTrouble: (trouble) => {
        this.#view = { ...this.#view, trouble }
        onChange()
      },
    })
  }

  get view(): WatchedProcesses {
    return this.#view
  }

  /** The host can be reached again. */
  resume(): void {
    this.#script.startNow()
  }

  [Symbol.dispose](): void {
    this.#script[Symbol.dispose]()
  }
}
