/**
 * Measures an NFS mount from its client: how fast it writes (each block is committed on the server), how fast it reads past the
 * client's cache, and how long a small file takes. Any other directory can be measured in the same way, such as the exported one
 * on the server itself. Everything is written to a new directory there, which is removed at the end.
 */

import { onAbort } from '../../../base/abort.ts'
import type { Clock } from '../../../base/clock.ts'
import { counted } from '../../../base/counted.ts'
import { formatBytes } from '../../../base/format-bytes.ts'
import { LineReader } from '../../../base/line-reader.ts'
import { shellQuote } from '../../../base/shell-quote.ts'
import { ageText } from '../../../base/time-text.ts'
import { type OpsHosts, reasonOfResult } from '../../kernel/host-port.ts'
import { isNfs, type Mount, parseMounts, versionOf } from '../../nfs/mounts.ts'
import { formatOutcome } from '../../run/outcome.ts'
import { amountOf } from '../amount.ts'
import { median } from '../mesh/judge.ts'
import { formatMs } from '../mesh/link.ts'

const MOUNTS_TIMEOUT_MS = 20_000
const BLOCK_BYTES = 4 * 1024 * 1024
/** The largest size of the file; then writing starts again at its beginning. */
const MOST_BLOCKS = 16
const SMALL_FILES = 20
/** Added to the requested time, so that a slow server can finish its last block. */
const SLACK_S = 60
/** A block takes this long only on very slow storage. */
const SILENT_MS = 5_000
const MOST_VALUES = 100_000

export type NfsMount = { readonly point: string; readonly source: string; readonly version?: string }

export type NfsOptions = {
  /** Undefined: the first NFS mount of the host. */
  readonly directory: string | undefined
  /** For writing, and again for reading. */
  readonly seconds: number
}

export type NfsEvent =
  /** `mount`: undefined where the directory is on no NFS mount. */
  | {
      readonly type: 'directory'
      readonly host: string
      readonly directory: string
      readonly mount: NfsMount | undefined
    }
  | {
      readonly type: 'block'
      readonly host: string
      readonly does: 'write' | 'read'
      readonly bytes: number
      readonly seconds: number
    }
  | { readonly type: 'small-file'; readonly host: string; readonly ms: number }
  /** Reads cannot bypass the client's cache, so they may only measure its memory. */
  | { readonly type: 'cached'; readonly host: string }
  /** Nothing was finished for some seconds. */
  | { readonly type: 'silent'; readonly host: string }
  | { readonly type: 'failed'; readonly host: string; readonly isAway: boolean; readonly reason: string }

export type NfsContext = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  readonly clock: Clock
  onEvent(event: NfsEvent): void
}

/** Resolves at the end, or after the signal. */
export async function measureNfs(host: string, options: NfsOptions, context: NfsContext): Promise<void> {
  const { hosts, signal, clock, onEvent } = context
  const listed = await hosts.exec(host, 'cat /proc/mounts', { timeoutMs: MOUNTS_TIMEOUT_MS, signal, isBrief: true })
  const fail = (reason: string, isAway = false): void => onEvent({ type: 'failed', host, isAway, reason })
  if (listed.outcome.kind !== 'exit')
    return fail(reasonOfResult(listed, formatOutcome), listed.outcome.kind === 'unreachable')
  const mounts = parseMounts(Buffer.from(listed.stdout).toString())
  const directory = options.directory ?? mounts.find(isNfs)?.point
  if (directory === undefined) return fail('it has no NFS mount; to measure another directory, name it')
  if (!directory.startsWith('/')) return fail('the directory must be an absolute path')
  const mount = mountOf(mounts, directory)
  const tell = () => onEvent({ type: 'directory', host, directory, mount })
  // Of another directory nothing is known until something was written there.
  let isTold = mount !== undefined
  if (isTold) tell()
  const reader = new NfsReader()
  let lastMs = clock.now()
  const silence = () => clock.after(SILENT_MS, () => onEvent({ type: 'silent', host }))
  let silent = silence()
  let silentMs = 0
  using _abort = onAbort(signal, () => {
    silentMs = clock.now() - lastMs
  })
  const result = await hosts.exec(host, measureScript(directory, options.seconds), {
    timeoutMs: (2 * options.seconds + SLACK_S) * 1000,
    signal,
    onOutput(stream, text) {
      if (stream !== 'stdout') return
      silent[Symbol.dispose]()
      silent = silence()
      lastMs = clock.now()
      if (!isTold) tell()
      isTold = true
      for (const event of reader.push(text)) onEvent({ ...event, host })
    },
  })
  silent[Symbol.dispose]()
  const { outcome } = result
  if (silentMs >= SILENT_MS) fail(`stopped after ${ageText(silentMs)} without an answer from ${storageOf(mount)}`)
  if (signal.aborted || (outcome.kind === 'exit' && outcome.code === 0)) return
  fail(reasonOfResult({ ...result, stdout: new Uint8Array() }, formatOutcome), outcome.kind === 'unreachable')
}

/** What a measurement waits for. */
const storageOf = (mount: NfsMount | undefined): string =>
  mount === undefined ? 'its disk' : `the server ${mount.source.replace(/:\/.*$/, '')}`

/** The NFS mount that a directory is on: the deepest mount above it, the last one there. */
function mountOf(mounts: readonly Mount[], directory: string): NfsMount | undefined {
  const above = mounts.filter(({ point }) => point === '/' || directory === point || directory.startsWith(`${point}/`))
  const deepest = above.reduce<Mount | undefined>(
    (best, mount) => (best === undefined || mount.point.length >= best.point.length ? mount : best),
    undefined,
  )
  if (deepest === undefined || !isNfs(deepest)) return undefined
  const version = versionOf(deepest)
  return { point: deepest.point, source: deepest.source, ...(version === undefined ? {} : { version }) }
}

/** Names of the files in a measurement's directory, for grep -xE, with those that an NFS client renames while they are open. */
export const MEASURED_FILES = 'data|small[0-9]+|[.]nfs[0-9a-f]+'

/**
 * Shell function that removes the directory of a measurement. Where everybody may rename, another user can put another directory
 * or a link in its place: so it removes only what a measurement writes, and leaves a directory that holds anything else.
 */
export const REMOVE_MEASURED = `remove() {
  (cd -P "$1" && [ "\${PWD##*/}" = "\${1##*/}" ] && [ -z "$(ls -A | grep -vxE '${MEASURED_FILES}')" ] && rm -f data small[0-9]*) && rmdir "$1"
} 2> /dev/null`

/**
 * Prints dd's last line after `write`, `read` and `small`, as it goes. Its directory changes every second, so that `muster left`
 * on another host of this storage sees that it is in use.
 */
function measureScript(directory: string, seconds: number): string {
  const file = shellQuote(`${directory}/.muster-nfs-XXXXXXXX`)
  const block = `bs=${BLOCK_BYTES / 4} count=4`
  const missing = shellQuote(`there is no directory ${directory}`)
  return `LC_ALL=C; export LC_ALL
cd / || exit 1
[ -d ${shellQuote(directory)} ] || { echo ${missing} >&2; exit 1; }
${REMOVE_MEASURED}
for old in ${shellQuote(directory)}/.muster-nfs-????????; do
  [ -z "$(find "$old" -prune -type d -user "$(id -u)" -mmin +60 2> /dev/null)" ] || remove "$old"
done
free=$(df -P ${shellQuote(directory)} 2> /dev/null | tail -n 1 | awk '{ print $4 }')
case $free in ''|*[!0-9]*) ;; *) [ "$free" -gt ${(2 * MOST_BLOCKS * BLOCK_BYTES) / 1024} ] || { echo "less than ${formatBytes(2 * MOST_BLOCKS * BLOCK_BYTES)} free" >&2; exit 1; } ;; esac
d=$(mktemp -d ${file}) || exit 1
trap 'remove "$d"' EXIT
trap 'exit 1' HUP INT TERM
owner() { ls -ldn "$1" | (read -r _ _ id _; echo "$id"); }
# Another account may have renamed it: no link leads here, and the owner is the one that new files get.
cd -P "$d" && [ "$PWD" = "$(cd -P ${shellQuote(directory)} && pwd)/\${d##*/}" ] && (set -C; : > data) 2> /dev/null && [ "$(owner .)" = "$(owner data)" ] || { echo "another account has replaced $d" >&2; exit 1; }
run() {
  what=$1; shift
  said=$(dd "$@" 2>&1) || { printf '%s\\n' "$said" >&2; exit 1; }
  printf '%s %s\\n' "$what" "$(printf '%s\\n' "$said" | tail -n 1)"
}
now=0
at_work() {
  last=$now; now=$(date +%s)
  [ "$now" = "$last" ] || touch -c . 2> /dev/null || :
}
end=$(( $(date +%s) + ${seconds} )); i=0; blocks=0
while at_work; [ "$now" -lt "$end" ] || [ "$blocks" -eq 0 ]; do
  run write if=/dev/zero of=data ${block} seek=$((i * 4)) conv=notrunc,fsync
  i=$(( (i + 1) % ${MOST_BLOCKS} )); [ "$blocks" -ge ${MOST_BLOCKS} ] || blocks=$((blocks + 1))
done
direct=iflag=direct
dd if=data of=/dev/null ${block} iflag=direct 2> /dev/null || { direct=; echo cached; }
end=$(( $(date +%s) + ${seconds} )); i=0; n=0
while at_work; [ "$now" -lt "$end" ] || [ "$n" -eq 0 ]; do
  run read if=data of=/dev/null ${block} skip=$((i * 4)) $direct
  i=$(( (i + 1) % blocks )); n=1
done
i=0
while [ "$i" -lt ${SMALL_FILES} ]; do
  run small if=/dev/zero of="small$i" bs=512 count=1 conv=fsync
  i=$((i + 1))
done`
}

/** `write 4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.0412 s, 102 MB/s`; busybox writes `seconds`. */
const LINE = /^(write|read|small) (\d+) bytes .*?, ([\d.e-]{1,20}) s(?:ec|econds)?,/

type Told<E> = E extends unknown ? Omit<E, 'host'> : never
type ReadEvent = Told<Extract<NfsEvent, { type: 'block' | 'small-file' | 'cached' }>>

class NfsReader {
  readonly #lines = new LineReader(4096)
  #count = 0

  push(text: string): readonly ReadEvent[] {
    return this.#lines.push(text).flatMap((line): ReadEvent[] => {
      if (line === 'cached') return [{ type: 'cached' }]
      const [, what, size, time] = LINE.exec(line.slice(0, 400)) ?? []
      const [bytes, seconds] = [amountOf(size), amountOf(time)]
      this.#count += 1
      if (what === undefined || bytes === undefined || seconds === undefined || this.#count > MOST_VALUES) return []
      if (what === 'small') return [{ type: 'small-file', ms: seconds * 1000 }]
      return [{ type: 'block', does: what === 'write' ? 'write' : 'read', bytes, seconds: Math.max(seconds, 1e-6) }]
    })
  }
}

/** What a measurement has reported so far. */
export type NfsRecord = {
  readonly host: string
  directory: string | undefined
  mount: NfsMount | undefined
  isCached: boolean
  isSilent: boolean
  /** Bytes a second, second by second. */
  readonly writes: number[]
  readonly reads: number[]
  /** Milliseconds for each small file. */
  readonly smallFiles: number[]
  readonly failures: string[]
  /** Of blocks that do not fill a second yet. */
  readonly pending: Record<'write' | 'read', { bytes: number; seconds: number }>
}

export const newNfsRecord = (host: string): NfsRecord => ({
  host,
  directory: undefined,
  mount: undefined,
  isCached: false,
  isSilent: false,
  writes: [],
  reads: [],
  smallFiles: [],
  failures: [],
  pending: { write: { bytes: 0, seconds: 0 }, read: { bytes: 0, seconds: 0 } },
})

/** Returns the rate of the second that a block has completed. */
export function takeNfsEvent(record: NfsRecord, event: NfsEvent): number | undefined {
  record.isSilent = event.type === 'silent'
  switch (event.type) {
    case 'directory':
      record.directory = event.directory
      record.mount = event.mount
      break
    case 'cached':
      record.isCached = true
      break
    case 'small-file':
      record.smallFiles.push(event.ms)
      break
    case 'failed':
      record.failures.push(event.reason)
      break
    case 'block': {
      const pending = record.pending[event.does]
      pending.bytes += event.bytes
      pending.seconds += event.seconds
      if (pending.seconds < 1) break
      const rate = pending.bytes / pending.seconds
      ;(event.does === 'write' ? record.writes : record.reads).push(rate)
      record.pending[event.does] = { bytes: 0, seconds: 0 }
      return rate
    }
  }
  return undefined
}

/** While it is silent. Not printable yet. */
export const silentText = ({ mount }: NfsRecord): string =>
  `${storageOf(mount)} has not answered for more than ${SILENT_MS / 1000} s`

/** `m8:/data is m10:/srv (NFS 4.2)`. Not printable yet. */
export function nfsPlace({ host, directory, mount }: NfsRecord): string {
  if (directory === undefined) return host
  if (mount === undefined) return `${host}:${directory} is not an NFS mount: this measures the host's own disk`
  return `${host}:${directory} is ${mount.source}${mount.version === undefined ? '' : ` (NFS ${mount.version})`}`
}

/** What was measured, in sentences. */
export function nfsSummary({ writes, reads, smallFiles, isCached, pending }: NfsRecord): readonly string[] {
  const rates = (words: string, values: readonly number[], rest: { bytes: number; seconds: number }): string[] => {
    // Everything took less than a second.
    const known = values.length === 0 && rest.seconds > 0 ? [rest.bytes / rest.seconds] : values
    const middle = median(known)
    if (middle === undefined) return []
    const [least, most] = [Math.min(...known), Math.max(...known)].map(formatBytes)
    return [`${words}: median ${formatBytes(middle)}/s, from ${least}/s to ${most}/s`]
  }
  const small = median(smallFiles)
  return [
    ...rates('write', writes, pending.write),
    ...rates(isCached ? "read (perhaps from the client's cache)" : 'read', reads, pending.read),
    ...(small === undefined
      ? []
      : [
          `small file: median ${formatMs(small)}, at most ${formatMs(Math.max(...smallFiles))}, of ${counted(smallFiles.length, 'file')}`,
        ]),
  ]
}
