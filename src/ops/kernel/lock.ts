/**
 * One bring-up at a time on a host: a process there holds a lock of the kernel (flock(2) on /run, which every login may open
 * and which is no file of anybody) for as long as its owner's connection lives. An owner that died holds nothing.
 */
import { printable } from '../../base/printable.ts'
import { formatOutcome } from '../run/outcome.ts'
import { quote } from './finding.ts'
import { type OpsHosts, reasonOfResult } from './host-port.ts'

export type Lock =
  /** `isReal`: false where the host has no flock(1), and nothing is held. */
  | { readonly kind: 'held'; readonly isReal: boolean }
  /** Words about who holds it; printable. */
  | { readonly kind: 'busy'; readonly owner: string }
  | { readonly kind: 'failed'; readonly reason: string }

const BUSY_CODE = 75
const NO_FLOCK_CODE = 76
/** For an owner that is just leaving. */
const WAIT_S = 3
const TIMEOUT_MS = 30_000

/** The owner's words stand in the argument list of the holder, where whoever finds the lock taken reads them. */
function lockScript(owner: string): string {
  return `command -v flock > /dev/null || exit ${NO_FLOCK_CODE}
exec /bin/sh -c '
exec 9< /run || exit 1
if ! flock -w ${WAIT_S} 9; then
  for f in /proc/[0-9]*/cmdline; do
    tr "\\\\000" "\\\\n" < $f 2> /dev/null | grep -A 1 "^muster-lock-holder$" | sed -n 2p
  done | grep -v -F -x "$1" | head -n 1
  exit ${BUSY_CODE}
fi
echo held
while :; do sleep 3600 9<&-; done
' muster-lock-holder ${quote(owner)}`
}

/** Takes the lock of a host and keeps it until `signal`. `owner`: who, for others. `limitFactor`: for hosts that are slow. */
export async function lockHost(
  hosts: OpsHosts,
  host: string,
  owner: string,
  signal: AbortSignal,
  limitFactor = 1,
): Promise<Lock> {
  const { promise, resolve } = Promise.withResolvers<Lock>()
  const waiting = new AbortController()
  const limit = setTimeout(() => waiting.abort(), TIMEOUT_MS * limitFactor)
  const held = AbortSignal.any([signal, waiting.signal])
  let printed = ''
  void hosts
    .exec(host, lockScript(owner), {
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
      resolve({ kind: 'failed', reason: printable(reasonOfResult(result, formatOutcome)) })
    })
  return await promise
}
