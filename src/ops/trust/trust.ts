/**
 * Trust: the hosts of a mesh log in to each other without a password. Keys are created on the hosts and stay there; public keys and
 * host keys travel over the connections that Muster has authenticated, never through ssh-keyscan.
 */
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type AreaFacts, defineArea, type HostExec } from '../kernel/area.ts'
import type { Finding } from '../kernel/finding.ts'
import { reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome } from '../run/outcome.ts'
import { type TrustFacts, trustFacts } from './facts.ts'
import { type Member, planTrust, type TrustWanted, trustWantedOf } from './plan.ts'

/** Below sshd's MaxStartups (10), with room for others. */
const LOGINS_AT_ONCE = 4
const TRIES = 4
const TIMEOUT_MS = 120_000
const LOGIN = [
  'ssh -n -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=15',
  '-o ServerAliveInterval=10 -o ServerAliveCountMax=2 -o ControlPath=none -o LogLevel=ERROR',
].join(' ')

export async function verifyTrust(
  members: readonly Member[],
  areaFacts: AreaFacts<TrustFacts>,
  hostExec: HostExec,
): Promise<readonly Finding[]> {
  const reached = members.filter(({ name }) => areaFacts.facts.has(name))
  const found = await Promise.all(
    reached.map(async ({ name: host }, index) => {
      // Each starts with its neighbour, so that no host is the first target of all.
      const peers = [...reached.slice(index + 1), ...reached.slice(0, index)].map(({ name }) => name)
      if (peers.length === 0) return []
      const result = await hostExec.exec(host, loginScript(peers), { timeoutMs: TIMEOUT_MS })
      const answers = answersOf(Buffer.from(result.stdout).toString())
      return peers.flatMap((peer): Finding[] => {
        const answer = answers.get(peer) ?? reasonOfResult(result, formatOutcome)
        if (answer === 'ok') return []
        const cause = `cannot log in to ${peer}`
        const hint = /Permission denied/.test(answer)
          ? `Check the permissions of the home directory and ~/.ssh on ${peer}, and AuthorizedKeysFile in its sshd_config.`
          : undefined
        const detail = printable(answer)
        return [{ host, gravity: 'blocker', id: 'login', cause, detail, ...(hint === undefined ? {} : { hint }) }]
      })
    }),
  )
  return found.flat()
}

/**
 * Prints `PEER ok`, or `PEER` and the last message of ssh. All others may log in to a slow host at once, which then rejects some
 * before authentication (MaxStartups), or keeps them waiting until ssh gives up silently: these try again.
 */
function loginScript(peers: readonly string[]): string {
  return `try() {
  tries=1
  until said=$(${LOGIN} "$1" true 2>&1); do
    case $said in
      '' | *kex_exchange_identification* | *'Connection closed by'* | *'Connection reset by'*) [ $tries -lt ${TRIES} ];;
      *) false;;
    esac || { printf '%s %.300s\\n' "$1" "$(printf '%s' "\${said:-it ended without a message}" | tail -n 1)"; return; }
    sleep $tries; tries=$((tries + 1))
  done
  echo "$1 ok"
}
count=0
for peer in ${peers.map(shellQuote).join(' ')}; do
  try "$peer" &
  count=$((count + 1))
  [ $((count % ${LOGINS_AT_ONCE})) -ne 0 ] || wait
done
wait`
}

function answersOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split('\n').flatMap((line) => {
      const at = line.indexOf(' ')
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1).trim()] as const] : []
    }),
  )
}

export { left } from './left.ts'

export const area = defineArea<TrustWanted, TrustFacts>({
  name: 'trust',
  wantedOf: trustWantedOf,
  hostsOf: ({ members, unusable }) => [...members.map(({ name }) => name), ...unusable.keys()],
  factsOf: () => trustFacts,
  plan: planTrust,
  verify: ({ members }, areaFacts, hostExec) => verifyTrust(members, areaFacts, hostExec),
})
