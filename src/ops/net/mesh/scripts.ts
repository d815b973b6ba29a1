/** The commands of a measurement. A server serves one client at one address, and ends by itself if none comes. */
import { isIPv6 } from 'node:net'
import { shellQuote } from '../../../base/shell-quote.ts'
import { amountOf } from '../amount.ts'
import type { MeshFacts } from './host-facts.ts'
import type { MeasureOptions, NetTool } from './link.ts'

/** The limit for connecting. */
export const CONNECT_S = 3
/** Added to the time of the measurement: for the client to connect and for both to end. */
const SLACK_S = 20

export const PROBE_S = 10

const PATHS = 'export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin"'

export function limitSeconds({ seconds }: MeasureOptions): number {
  return seconds + SLACK_S
}

/** A server waits while the step before its own ends, at worst at its limit. */
export const serverSeconds = (options: MeasureOptions): number => 2 * limitSeconds(options) + 10

export type ServerAddress = { readonly address: string; readonly port: number; readonly facts: MeshFacts }

/** Prints `Server listening` when it does, and reports in bits a second (iperf 2) or thousands of them (iperf3). `isLive`: once a second. */
export function serverScript(
  tool: Exclude<NetTool, 'ssh'>,
  place: ServerAddress,
  options: MeasureOptions & { readonly isLive?: boolean },
): string {
  const { address, port, facts } = place
  const at = `-p ${port} -B ${shellQuote(address)}${options.isLive === true ? ' -i 1' : ''}`
  const limit = limited(facts, serverSeconds(options))
  if (tool === 'iperf3') {
    const idle = hasIdleTimeout(facts.iperf3) ? ` --idle-timeout ${serverSeconds(options)}` : ''
    return `${PATHS}\nexec ${limit}iperf3 -s -1 ${at}${idle} -f k --forceflush`
  }
  const kind = options.udpBitsPerSecond === undefined ? ` -P ${options.streams}` : ' -u'
  return `${PATHS}\nexec ${limit}iperf -s ${at}${kind}${isIPv6(address) ? ' -V' : ''} -f b`
}

export type ClientAddresses = ServerAddress & { readonly ownAddress: string }

export function clientScript(tool: Exclude<NetTool, 'ssh'>, place: ClientAddresses, options: MeasureOptions): string {
  const { address, port, ownAddress, facts } = place
  const { seconds, streams, udpBitsPerSecond } = options
  const to = `-c ${shellQuote(address)} -p ${port} -B ${shellQuote(ownAddress)} -t ${seconds} -P ${streams}`
  const limit = limited(facts, limitSeconds(options))
  const udp = udpBitsPerSecond === undefined ? '' : ` -u -b ${Math.round(udpBitsPerSecond / streams)}`
  if (tool === 'iperf3')
    return `${PATHS}\nexec ${limit}iperf3 ${to}${udp} -i 0 -J --connect-timeout ${CONNECT_S * 1000}`
  return `${PATHS}\nexec ${limit}iperf ${to}${udp}${isIPv6(address) ? ' -V' : ''} -e -f b`
}

/** A few packets of iperf 2 over UDP; the answer of the server takes milliseconds, and its absence some seconds. */
export function probeScript({ address, port, ownAddress, facts }: ClientAddresses): string {
  const to = `-c ${shellQuote(address)} -p ${port} -B ${shellQuote(ownAddress)}${isIPv6(address) ? ' -V' : ''}`
  // With smaller packets the server of 2.1.8 aborts; the client never ends with -n below their size.
  return `${PATHS}\nexec ${limited(facts, PROBE_S)}iperf ${to} -u -l 1470 -n 1470 -f b 2>&1`
}

export type SshTarget = { readonly user: string; readonly address: string; readonly port: number }

/** TCP and the cipher reach full speed in this time, which is not counted. */
export const SSH_WARM_UP_S = 1

/** The parts of a run that are counted by themselves, in seconds: two where it is long enough. */
export function sshParts(seconds: number): readonly number[] {
  const half = Math.floor(seconds / 2)
  return seconds < 4 ? [seconds] : [half, seconds - half]
}

/**
 * Prints how many bytes arrived in each part of the time after the first byte; it exits as ssh does. It asks no questions: an
 * unknown host key or a missing login fails.
 */
export function sshScript({ user, address, port }: SshTarget, { seconds }: MeasureOptions): string {
  const options = `-o BatchMode=yes -o ConnectTimeout=${CONNECT_S} -o Compression=no -o LogLevel=ERROR -o ControlPath=none`
  const login = `${options} -p ${port} -l ${shellQuote(user)} -- ${shellQuote(address)}`
  const counts = sshParts(seconds).map((part) => `timeout ${part} cat | wc -c`)
  return `${PATHS}
counts=$(dd if=/dev/zero bs=65536 2>/dev/null | ssh ${login} 'head -c 1 > /dev/null; timeout ${SSH_WARM_UP_S} cat > /dev/null; ${counts.join('; ')}')
code=$?
for n in $counts; do echo "arrived $n"; done
exit $code`
}

/** For each target `ping INDEX MIN MEAN MAX`, `loss INDEX PERCENT` and `whole INDEX yes|no` (a packet of the full size passes undivided). */
export function pingScript(targets: readonly { readonly address: string; readonly mtuBytes?: number }[]): string {
  const lines = targets.map(({ address, mtuBytes }, index) => {
    const headers = isIPv6(address) ? 48 : 28
    return `look ${index} ${shellQuote(address)} ${mtuBytes === undefined ? 0 : mtuBytes - headers} &`
  })
  return `${PATHS}
look() {
  said=$(ping -n -q -c 5 -i 0.2 -w 3 "$2" 2>/dev/null || ping -q -c 3 -w 3 "$2" 2>/dev/null)
  printf '%s\\n' "$said" | sed -n "s|.*[^0-9.]\\([0-9.]*\\)% packet loss.*|loss $1 \\1|p; s|.*= *\\([0-9.]*\\)/\\([0-9.]*\\)/\\([0-9.]*\\).*|ping $1 \\1 \\2 \\3|p"
  case $said in *" 100% packet loss"*) return;; esac
  [ "$3" -gt 0 ] && ping -M do -c 1 -w 1 -s 8 "$2" >/dev/null 2>&1 || return
  if ping -M do -c 2 -i 0.2 -w 2 -s "$3" "$2" >/dev/null 2>&1; then echo "whole $1 yes"; else echo "whole $1 no"; fi
}
${lines.join('\n')}
wait`
}

function limited({ hasTimeout }: MeshFacts, seconds: number): string {
  return hasTimeout ? `timeout ${seconds} ` : ''
}

/** Since 3.10. */
function hasIdleTimeout(version = ''): boolean {
  return Number(/^3\.(\d+)/.exec(version)?.[1] ?? 0) >= 10
}

export type PingResult = {
  readonly from: string
  readonly to: string
  /** Undefined: no answer; perhaps only pings are blocked. */
  readonly minMs?: number
  readonly meanMs?: number
  /** 0 to 1 */
  readonly lostFraction: number
  /** False: a packet of the MTU of both cards does not pass unfragmented. */
  readonly isWhole?: boolean
}

export function parsePings(text: string, from: string, targets: readonly string[]): readonly PingResult[] {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/))
  return targets.flatMap((to, index) => {
    const find = (key: string) => lines.find(([word, number]) => word === key && number === String(index))
    const lost = amountOf(find('loss')?.[2])
    if (lost === undefined) return []
    const [minMs, meanMs] = [2, 3].map((word) => amountOf(find('ping')?.[word]))
    const whole = find('whole')
    return [
      {
        from,
        to,
        lostFraction: Math.min(1, lost / 100),
        ...(minMs === undefined || meanMs === undefined ? {} : { minMs, meanMs }),
        ...(whole === undefined ? {} : { isWhole: whole[2] === 'yes' }),
      },
    ]
  })
}
