/**
 * One bring-up at a time on a host: a process there holds a lock of the kernel (flock(2) on /run, which every login may open
 * and which is no file of anybody) for as long as its owner's connection lives. An owner that died holds nothing.
 */
import { printable } from '../../base/printable.ts'
import { formatOutcome, type RunOutcome } from '../run/outcome.ts'
import { quote } from './finding.ts'
import { type OpsHosts, reasonOfResult } from './host-port.ts'

export type Lock =
  /** `isReal`: false where the host has no flock(1), and nothing is held. */
  | { readonly kind: 'held'; readonly isReal: boolean }
  /** Words about who holds it; printable. */
  | { readonly kind: 'busy'; readonly owner: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly outcome: RunOutcome }

const BUSY_CODE = 75
const NO_FLOCK_CODE = 76
/** For an owner that is just leaving. */
const WAIT_S = 3
const TIMEOUT_MS = 30_000

/** The owner's words stand in the argument list of the holder, where whoever finds the lock taken reads them. */
function lockScript(owner: string, waitS: number): string {
  return `command -v flock > /dev/null || exit ${NO_FLOCK_CODE}
exec /bin/sh -c '
exec 9< /run || exit 1
if ! flock ${waitS === 0 ? '-n' : `-w ${waitS}`} 9; then
  for f in /proc/[0-9]*/cmdline; do
    tr "\\\\000" "\\\\n" < $f 2> /dev/null | grep -A 1 "^muster-lock-holder$" | sed -n 2p
  done | grep -v -F -x "$1" | head -n 1
  exit ${BUSY_CODE}
fi
echo held
while :; do sleep 3600 9<&-; done
' muster-lock-holder ${quote(owner)}`
}

export type LockOptions = {
  /** Who, for others. */
  readonly owner: string
  /** Until then it is kept. */
  readonly signal: AbortSignal
  /** For hosts that are slow. */
  readonly limitFactor?: number | undefined
  /** For an owner that is just leaving; 3 unless given. */
  readonly waitS?: number
}

/** The locks of one change, each kept until it is released or all of them are disposed of. */
export class HostLocks implements Disposable {
  readonly #hosts: OpsHosts
  readonly #options: LockOptions
  readonly #attempts = new Map<string, { readonly own: AbortController; readonly lock: Promise<Lock> }>()
  readonly #held = new Map<string, Lock>()

  constructor(hosts: OpsHosts, options: LockOptions) {
    this.#hosts = hosts
    this.#options = options
  }

  isHeld(host: string): boolean {
    return this.#held.has(host)
  }

  /** Where it is free. Once a host. */
  async tryOnce(host: string): Promise<Lock> {
    return await (this.#attempts.get(host)?.lock ?? this.#attempt(host, { waitS: 0 }))
  }

  /** Waits for an owner that is just leaving; what is held already stays. */
  async take(host: string): Promise<Lock> {
    return this.#held.get(host) ?? (await this.#attempt(host, {}))
  }

  keepOnly(names: readonly string[]): void {
    for (const host of this.#attempts.keys()) if (!names.includes(host)) this.#release(host)
  }

  [Symbol.dispose](): void {
    this.keepOnly([])
  }

  #attempt(host: string, more: Pick<LockOptions, 'waitS'>): Promise<Lock> {
    const own = new AbortController()
    const signal = AbortSignal.any([this.#options.signal, own.signal])
    const lock = lockHost(this.#hosts, host, { ...this.#options, ...more, signal }).then((taken) => {
      if (taken.kind === 'held' && !own.signal.aborted) this.#held.set(host, taken)
      return taken
    })
    this.#attempts.set(host, { own, lock })
    return lock
  }

  #release(host: string): void {
    this.#attempts.get(host)?.own.abort()
    this.#attempts.delete(host)
    this.#held.delete(host)
  }
}

/** Takes the lock of a host. */
async function lockHost(
  hosts: OpsHosts,
  host: string,
  { owner, signal, limitFactor = 1, waitS = WAIT_S }: LockOptions,
): Promise<Lock> {
  const { promise, resolve } = Promise.withResolvers<Lock>()
  const waiting = new AbortController()
  const limit = setTimeout(() => waiting.abort(), TIMEOUT_MS * limitFactor)
  const held = AbortSignal.any([signal, waiting.signal])
  let printed = ''
  void hosts
    .exec(host, lockScript(owner, waitS), {
      timeoutMs: Number.POSITIVE_INFINITY,
      signal: held,
      onOutput: (stream, text) => {
        if (stream === 'stdout') printed += text
        if (!printed.startsWith('held\n')) return
        clearTimeout(limit)
        resolve({ kind: 'held', isReal: true })
      },
    })
    .then((result) => {
      clearTimeout(limit)
      const { outcome } = result
      if (outcome.kind === 'exit' && outcome.code === NO_FLOCK_CODE) return resolve({ kind: 'held', isReal: false })
      if (outcome.kind === 'exit' && outcome.code === BUSY_CODE) {
        return resolve({ kind: 'busy', owner: printable(printed.trim()) || 'somebody' })
      }
      resolve({ kind: 'failed', reason: printable(reasonOfResult(result, formatOutcome)), outcome })
    })
  return await promise
}
