/** What Ray asks of a host before anything is started, and of a head that runs. As the login: what it owns is what it may stop. */
import type { Fact, FactSet } from '../kernel/fact.ts'
import { quote } from '../kernel/finding.ts'
import { type ClusterView, parseClusterView } from './cluster-view.ts'
import { type Listener, parseListeners } from './listeners.ts'
import { placeScript } from './place.ts'
import { processesFact, type RayProcess } from './processes.ts'
import { clusterProgram, installedProgram, reachProgram } from './python-scripts.ts'
import { tokenScript } from './token.ts'
import { dashboardAddress, nodeOf, nodesOf, type RayNode, type RayWanted } from './wanted.ts'

export type Installed =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'ray'
      readonly ray: string
      readonly python: string
      /** Modules without which a head has no dashboard. */
      readonly missing: readonly string[]
    }

export type Addresses = {
  /** IPv4, of all interfaces. */
  readonly own: readonly string[]
  /** The one at which SSH reached the host. */
  readonly ssh?: string
}

export type Space = {
  readonly uid: number
  readonly sharedBytes: number
  readonly tempUsedPercent: number
  readonly isTempWritable: boolean
}

/** Hosts to which no connection comes about, and whether it is their name that is unknown. */
export type Unreached = ReadonlyMap<string, 'silent' | 'unknown'>

export type RayFacts = {
  readonly installed: Installed
  readonly processes: readonly RayProcess[]
  readonly listeners: readonly Listener[]
  readonly addresses: Addresses
  readonly space: Space
  readonly unreached: Unreached
  /** Of the head alone. */
  readonly cluster: ClusterView
}

/** The first of the ports at which Ray's workers listen: what stands between hosts treats it like those after it. */
const WORKER_PORT = 10_002

function installedFact({ environment }: RayNode): Fact<Installed> {
  return {
    script: `${placeScript(environment)}
if [ -z "$ray" ]; then echo absent; else limited ${installedProgram}; fi`,
    parse(text) {
      if (text === 'absent') return { kind: 'absent' }
      const { ray, python, missing } = JSON.parse(text) as { ray: string; python: string; missing: readonly string[] }
      return ray === '' ? { kind: 'absent' } : { kind: 'ray', ray, python, missing }
    },
  }
}

const listenersFact: Fact<readonly Listener[]> = {
  script: `if command -v ss > /dev/null; then limited ss -H -l -t -n -p; else cat /proc/net/tcp /proc/net/tcp6; fi; echo end`,
  parse: (text) => (text.endsWith('end') ? parseListeners(text) : undefined),
}

const addressesFact: Fact<Addresses> = {
  script: `if command -v ip > /dev/null; then limited ip -o -4 addr show; else for a in $(hostname -I); do echo "inet $a/"; done; fi
set -- $SSH_CONNECTION; echo "ssh $3"`,
  parse(text) {
    const own = [...text.matchAll(/\binet (\d+\.\d+\.\d+\.\d+)\//g)].flatMap(([, address = '']) => address)
    const ssh = /^ssh (\d+\.\d+\.\d+\.\d+)$/m.exec(text)?.[1]
    return ssh === undefined ? { own } : { own, ssh }
  },
}

function spaceFact(directory: string): Fact<Space> {
  return {
    script: `d=${quote(directory)}
while [ ! -d "$d" ]; do d=\${d%/*}; d=\${d:-/}; done
[ -w "$d" ]; writable=$?
set -- $(df -P -k "$d" | tail -n 1); used=\${5%\\%}
set -- $(df -P -k /dev/shm | tail -n 1)
echo "$(id -u) $2 $used $writable"`,
    parse(text) {
      const match = /^(\d+) (\d+) (\d+) (\d+)$/.exec(text)
      if (match === null) return undefined
      const [uid = 0, shared = 0, used = 0, writable = 0] = match.slice(1).map(Number)
      return {
        uid,
        sharedBytes: shared * 1024,
        tempUsedPercent: used,
        isTempWritable: writable === 0,
      }
    },
  }
}

/** The head's port for workers, and the ports of workers for everybody: objects and tasks go straight between nodes. */
function unreachedFact(wanted: RayWanted, { host, environment }: RayNode): Fact<Unreached> {
  const others = nodesOf(wanted).filter((other) => other.host !== host)
  const places = others.map(
    ({ address, isHead }) => `${address}:${isHead ? wanted.port : (wanted.ports.workers?.[0] ?? WORKER_PORT)}`,
  )
  return {
    script: `${placeScript(environment)}
[ -n "$py" ] || py=$(command -v python3) || return 1
${reachProgram(places)}`,
    mayHang: true,
    parse(text) {
      if (!text.endsWith('end')) return undefined
      const pairs = [...text.matchAll(/(\d+):(silent|unknown)/g)].flatMap(([, index, how]) => {
        const other = others[Number(index)]
        return other === undefined ? [] : [[other.host, how === 'unknown' ? how : 'silent'] as const]
      })
      return new Map(pairs)
    },
  }
}

function clusterFact(wanted: RayWanted): Fact<ClusterView> {
  return {
    script: `${placeScript(wanted.head.environment)}
[ -n "$py" ] || py=$(command -v python3) || return 1
${tokenScript(wanted)}limited ${clusterProgram(dashboardAddress(wanted))}`,
    parse: parseClusterView,
  }
}

const NO_CLUSTER: Fact<ClusterView> = {
  script: ':',
  parse: () => ({ kind: 'silent', because: 'not asked' }),
}

export function rayFacts(wanted: RayWanted, host: string): FactSet<RayFacts> {
  const node = nodeOf(wanted, host) ?? wanted.head
  return {
    installed: installedFact(node),
    processes: processesFact,
    listeners: listenersFact,
    addresses: addressesFact,
    space: spaceFact(wanted.tempDirectory),
    unreached: unreachedFact(wanted, node),
    cluster: node.isHead ? clusterFact(wanted) : NO_CLUSTER,
  }
}
