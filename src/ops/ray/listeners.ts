/** Listening TCP sockets of a host, from `ss -H -l -t -n -p`, or from /proc/net/tcp without ss. Pure. */

export type ListeningSocket = {
  readonly port: number
  /** `0.0.0.0`, `*`, `::` for all; of /proc/net/tcp6 undefined. */
  readonly address?: string
  /** The program; undefined if the login may not see it. */
  readonly name?: string
  readonly pid?: number
}

export function parseListeners(text: string): readonly ListeningSocket[] {
  return text.split('\n').flatMap((line) => listenerOfSs(line) ?? listenerOfProc(line) ?? [])
}

function listenerOfSs(line: string): ListeningSocket | undefined {
  const match = /^LISTEN\s+\d+\s+\d+\s+(\S+):(\d+)\s+\S+\s*(.*)$/.exec(line)
  if (match === null) return undefined
  const [, address = '', port, rest = ''] = match
  const holder = /\("([^"]*)",pid=(\d+)/.exec(rest)
  return {
    port: Number(port),
    address: address.replace(/%.*$/, '').replace(/^\[(.*)\]$/, '$1'),
    ...(holder === null ? {} : { name: holder[1] ?? '', pid: Number(holder[2]) }),
  }
}

/** proc_pid_net(5): addresses in hexadecimal, little-endian; state 0A listens. */
function listenerOfProc(line: string): ListeningSocket | undefined {
  const match = /^\s*\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A /.exec(line)
  if (match === null) return undefined
  const [, address = '', port = ''] = match
  const bytes = address.match(/../g)?.map((pair) => Number.parseInt(pair, 16)) ?? []
  return {
    port: Number.parseInt(port, 16),
    ...(bytes.length === 4 ? { address: bytes.toReversed().join('.') } : {}),
  }
}

/** Whether it keeps a program from listening at `address` (`0.0.0.0` for all). */
export function takenBy(
  listeners: readonly ListeningSocket[],
  port: number,
  address: string,
): ListeningSocket | undefined {
  const everywhere = ['0.0.0.0', '*', '::', undefined]
  return listeners.find(
    (listener) =>
      listener.port === port &&
      (everywhere.includes(address) || everywhere.includes(listener.address) || listener.address === address),
  )
}
