/**
 * One bring-up at a time on a host: a process there holds a kernel lock (flock(2) on /run, which every login may open
 * and no user owns) while the connection of its owner lives, and slightly longer than what the owner runs
 * there. Soon after an owner died it holds nothing; an owner that was away for too long learns that its lock is lost.
 */

import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { formatOutcome, isSuccess, type RunOutcome } from '../run/outcome.ts'
import { type OpsHosts, reasonOfResult, type ScriptResult } from './host-port.ts'

export type Lock =
  /** `isReal`: false if the host has no flock(1), so that nothing is held. */
  | { readonly kind: 'held'; readonly isReal: boolean }
  /** Which user and process hold it; printable. */
  | { readonly kind: 'busy'; readonly owner: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly outcome: RunOutcome }

const BUSY_CODE = 75
const NO_FLOCK_CODE = 76
const LOST_CODE = 77
/** An owner that ended or was killed keeps its lock for a moment longer. */
const WAIT_S = 5
const TIMEOUT_MS = 30_000

/**
 * The sleep does not keep the channel open, so that the end of a killed holder is noticed at once. The owner is in the arguments of
 * the holder, where another Muster that finds the lock taken reads it; a process that only waits has another name. If the holder is
 * this owner's, which reached the same machine under another name, the lock is already held. One grep finds the few processes
 * of interest: with 860 processes on a busy machine it took 0.2 s, and three programs for each process 29 s. Its pattern is not
 * the name itself: another Muster that searches at the same time would take that grep for a holder.
 */
function lockScript(owner: string, waitS: number): string {
  return `command -v flock > /dev/null || exit ${NO_FLOCK_CODE}
exec /bin/sh -c '
holders() {
  for f in $(grep -l "[m]uster-lock-holder" /proc/[0-9]*/cmdline 2> /dev/null); do
    p=\${f#/proc/}
    tr "\\\\000" "\\\\n" 2> /dev/null < $f | grep -A 1 "^muster-lock-holder$" | sed -n "2s/^/\${p%/*} /p"
  done
}
share() {
  own=$(holders | while read -r p words; do [ "$words" != "$1" ] || { echo $p; break; }; done)
  if [ -n "$own" ]; then echo shared $own; eval "$stay"; fi
}
stay="while :; do sleep 60 9<&- > /dev/null 2>&1; done"
exec 9< /run || exit 1
if ! flock -n 9; then
  share "$1"
  if ${waitS === 0 ? ':' : `! flock -w ${waitS} 9`}; then
    share "$1"
    holders | sed "s/^[0-9]* //" | grep -v -F -x "$1" | head -n 1
    exit ${BUSY_CODE}
  fi
fi
echo held $$
exec /bin/sh -c "$stay" muster-lock-holder "$1"
' muster-lock-waiter ${shellQuote(owner)}`
}

/** Lines before a script, so that it runs only while process PID holds the lock: a laptop that slept may have lost it. */
function guardScript(owner: string, pid: string): string {
  return `tr '\\000' '\\n' 2> /dev/null < /proc/${pid}/cmdline | grep -q -F -x -e ${shellQuote(owner)} || {
echo 'the lock of this host is lost' >&2; exit ${LOST_CODE}; }
`
}

export type LockOptions = {
  /** Shown to others that find the host locked. */
  readonly owner: string
  /** Ends attempts; held locks are kept until they are released. */
  readonly signal: AbortSignal
  /** For slow hosts. */
  readonly limitFactor?: number | undefined
  /** Attempts while an owner is just ending; 3 unless given. */
  readonly waitS?: number
}

/** `held`: once it is. */
type Attempt = { readonly own: AbortController; readonly lock: Promise<Lock>; held?: HeldLock }

/** The locks of one change, each kept until it is released, all of them are disposed of, or its holder ends. */
export class HostLocks implements Disposable {
  readonly #hosts: OpsHosts
  readonly #options: LockOptions
  readonly #attempts = new Map<string, Attempt>()
  /** Lost locks, with the reason. */
  readonly #lost = new Map<string, string>()
  #onLost = (): void => {}

  constructor(hosts: OpsHosts, options: LockOptions) {
    this.#hosts = hosts
    this.#options = options
  }

  isHeld(host: string): boolean {
    return this.#attempts.get(host)?.held !== undefined
  }

  /** Locks that were lost and not taken again. */
  get lost(): ReadonlyMap<string, string> {
    return this.#lost
  }

  /** Aborted as soon as a lock is lost, or at once if one already is; of the last call only. */
  watch(): AbortSignal {
    const over = new AbortController()
    this.#onLost = () => over.abort()
    if (this.#lost.size > 0) over.abort()
    return over.signal
  }

  /** Takes it if it is free. Once per host. */
  async tryOnce(host: string): Promise<Lock> {
    return await (this.#attempts.get(host)?.lock ?? this.#attempt(host, { waitS: 0 }))
  }

  /** Waits a few seconds for an owner that is about to release it. */
  async take(host: string): Promise<Lock> {
    return this.#attempts.get(host)?.held?.lock ?? (await this.#attempt(host, {}))
  }

  keepOnly(names: readonly string[]): void {
    // If the same machine has another name here, that name's process may hold the lock.
    const kept = new Set(names.map((host) => this.#attempts.get(host)?.held?.holder))
    for (const [host, { held }] of [...this.#attempts]) {
      const isNeeded = names.includes(host) || (held?.holder !== undefined && kept.has(held.holder))
      if (!isNeeded) this.#release(host)
    }
  }

  /** The same hosts, on which a script starts only while the host's lock is held. */
  guarded(): OpsHosts {
    const { deliver } = this.#hosts
    const exec: OpsHosts['exec'] = (host, script, options) =>
      this.#hosts.exec(host, `${this.#attempts.get(host)?.held?.guard ?? ''}${script}`, options)
    if (deliver === undefined) return { exec }
    return {
      exec,
      deliver: async (host, delivery, options) => {
        const { signal } = options
        const asked = await exec(host, ':', { signal, timeoutMs: TIMEOUT_MS, isBrief: true })
        return isSuccess(asked.outcome) ? await deliver.call(this.#hosts, host, delivery, options) : asked
      },
    }
  }

  [Symbol.dispose](): void {
    this.keepOnly([])
  }

  #attempt(host: string, more: Pick<LockOptions, 'waitS'>): Promise<Lock> {
    const own = new AbortController()
    const attempt = lockHost(this.#hosts, host, { ...this.#options, ...more, until: own.signal })
    const lock = attempt.taken.then((held) => {
      const known = this.#attempts.get(host)
      if (held.lock.kind === 'held' && known?.own === own) {
        known.held = held
        this.#lost.delete(host)
      }
      return held.lock
    })
    void attempt.lost.then((reason) => {
      if (this.#attempts.get(host)?.own !== own) return
      this.#release(host)
      this.#lost.set(host, reason)
      this.#onLost()
    })
    this.#attempts.set(host, { own, lock })
    return lock
  }

  #release(host: string): void {
    this.#attempts.get(host)?.own.abort()
    this.#attempts.delete(host)
    this.#lost.delete(host)
  }
}

/** `holder`: the process ID. */
type HeldLock = { readonly lock: Lock; readonly guard: string; readonly holder?: string }

/** Takes the lock of a host, and keeps it until `until`. `lost`: why it is gone, if it was held and ended before. */
function lockHost(
  hosts: OpsHosts,
  host: string,
  { owner, signal, until, limitFactor = 1, waitS = WAIT_S }: LockOptions & { readonly until: AbortSignal },
): { readonly taken: Promise<HeldLock>; readonly lost: Promise<string> } {
  const taken = Promise.withResolvers<HeldLock>()
  const lost = Promise.withResolvers<string>()
  const waiting = new AbortController()
  const stopWaiting = (): void => waiting.abort()
  let isOverLimit = false
  const limit = setTimeout(() => {
    isOverLimit = true
    stopWaiting()
  }, TIMEOUT_MS * limitFactor)
  signal.addEventListener('abort', stopWaiting, { once: true })
  if (signal.aborted) stopWaiting()
  // From here on only a release ends it: when a change is stopped, its steps are stopped first.
  const settle = (lock: Lock, holder?: string): void => {
    clearTimeout(limit)
    signal.removeEventListener('abort', stopWaiting)
    taken.resolve(holder === undefined ? { lock, guard: '' } : { lock, guard: guardScript(owner, holder), holder })
  }
  let printed = ''
  let isHeld = false
  void hosts
    .exec(host, lockScript(owner, waitS), {
      timeoutMs: Number.POSITIVE_INFINITY,
      signal: AbortSignal.any([until, waiting.signal]),
      endsLast: true,
      onOutput: (stream, text) => {
        if (isHeld) return
        if (stream === 'stdout') printed += text
        const pid = /^(?:held|shared) (\d+)\n/.exec(printed)?.[1]
        if (pid === undefined) return
        isHeld = true
        settle({ kind: 'held', isReal: true }, pid)
      },
    })
    .then((ended) => {
      // The time limit stopped it, not the user.
      const isLate = isOverLimit && ended.outcome.kind === 'cancelled'
      const result: ScriptResult = isLate ? { ...ended, outcome: { kind: 'timeout' } } : ended
      const { outcome } = result
      if (isHeld) return lost.resolve(printable(formatOutcome(outcome)))
      if (outcome.kind === 'exit' && outcome.code === NO_FLOCK_CODE) return settle({ kind: 'held', isReal: false })
      if (outcome.kind === 'exit' && outcome.code === BUSY_CODE) {
        return settle({ kind: 'busy', owner: printable(printed.trim()) || 'unknown owner' })
      }
      settle({ kind: 'failed', reason: printable(reasonOfResult(result, formatOutcome)), outcome })
    })
  return { taken: taken.promise, lost: lost.promise }
}
