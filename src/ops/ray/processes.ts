/**
 * The Ray processes of a host, out of what /proc tells. Ray's own `ray stop` looks for words anywhere in command lines, of all
 * clusters; here a process counts by the path of a program of Ray among its first words, and belongs to a cluster by a whole
 * argument with its address.
 */
import { READ_STAT } from '../../base/proc-stat.ts'
import type { Fact } from '../kernel/fact.ts'

/** `helper`: monitors, dashboard, agents, workers that have not taken their title yet. */
export type RayRole = 'gcs' | 'raylet' | 'helper'

export type RayProcess = {
  readonly pid: number
  readonly uid: number
  readonly role: RayRole
  /** The file name of its program: `monitor.py`. */
  readonly program: string
  /** `IP:PORT` of its cluster's GCS; of a GCS made of its own arguments. */
  readonly cluster: string
  readonly nodeIp?: string
  /** What a raylet hands out, by Ray's names. */
  readonly resources: Readonly<Record<string, number>>
}

/** Extended regular expressions, as strings of awk: in literals mawk takes no slash. */
const PROGRAM =
  '/ray/.*/(gcs_server|raylet|monitor[.]py|log_monitor[.]py|dashboard[.]py|agent[.]py|agent/main[.]py|default_worker[.]py|setup_worker[.]py)$'
const CLIENT_SERVER = 'ray.util.client.server'
const ARGUMENT = '^--(gcs-address|address|gcs_server_port|node-ip-address|node_ip_address|static_resource_list)='

/**
 * The shell function `list_ray`: a line for each, `PID TICKS UID PROGRAM ARGUMENT…`; ticks since the machine's start tell a process
 * from a later one with its pid (proc_pid_stat(5)). The rest of the command lines, tens of kilobytes, stays on the host.
 */
export const LIST_RAY = `${READ_STAT}list_ray() {
  for f in $(grep -l -a -e --gcs_server_port= -e --gcs-address= -e ${CLIENT_SERVER} /proc/[0-9]*/cmdline 2> /dev/null); do
    d=\${f%/cmdline}
    uid=$(stat -c %u "$d" 2> /dev/null) && read_stat "$d/stat" || continue
    set -- \${s##*) }
    [ "$1" != Z ] || continue
    said=$(tr ' \\000' '_\\n' 2> /dev/null < "$f" | awk '
      NR <= 5 && program == "" && ($0 ~ "${PROGRAM}" || $0 == "${CLIENT_SERVER}") { program = $0; sub(".*/", "", program) }
      $0 ~ "${ARGUMENT}" && length($0) < 2000 { words = words " " $0 }
      END { if (program != "") print program words }')
    [ -z "$said" ] || echo "\${d#/proc/} \${20} $uid $said"
  done
}`

export const processesFact: Fact<readonly RayProcess[]> = {
  script: `${LIST_RAY}\nlist_ray\necho end`,
  parse: (text) => (text.endsWith('end') ? text.split('\n').flatMap((line) => processOf(line) ?? []) : undefined),
}

function processOf(line: string): RayProcess | undefined {
  const match = /^(\d+) \d+ (\d+) (\S+) (.*)$/.exec(line)
  if (match === null) return undefined
  const [, pid, uid, program = '', rest = ''] = match
  const words = rest.split(' ')
  const value = (...names: readonly string[]) =>
    names.flatMap((name) => words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? [])[0]
  const nodeIp = value('node_ip_address', 'node-ip-address')
  const role = program === 'gcs_server' ? 'gcs' : program === 'raylet' ? 'raylet' : 'helper'
  const cluster = role === 'gcs' ? `${nodeIp ?? ''}:${value('gcs_server_port') ?? ''}` : value('gcs-address', 'address')
  if (cluster === undefined) return undefined
  return {
    pid: Number(pid),
    uid: Number(uid),
    role,
    program,
    cluster,
    resources: parseResources(value('static_resource_list') ?? ''),
    ...(nodeIp === undefined ? {} : { nodeIp }),
  }
}

/** `node:10.0.0.8,1.0,CPU,16,GPU,0,memory,2400` */
function parseResources(list: string): Record<string, number> {
  const words = list.split(',')
  const pairs = words.flatMap((name, index) => {
    const amount = Number(words[index + 1])
    return index % 2 === 0 && name !== '' && Number.isFinite(amount) ? [[name, amount] as const] : []
  })
  return Object.fromEntries(pairs)
}

/** The processes of the cluster with this GCS. Its port alone says nothing: containers have ports of their own. */
export function processesOf(processes: readonly RayProcess[], ip: string, port: number): readonly RayProcess[] {
  return processes.filter(({ cluster }) => cluster === `${ip}:${port}`)
}

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
