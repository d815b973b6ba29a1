/** What Ray asks a host before anything starts, and a running head; as the login, which can stop only its own processes. */
import { shellQuote } from '../../base/shell-quote.ts'
import { clockFact } from '../kernel/clock.ts'
import type { Fact, FactSet, HostFacts } from '../kernel/fact.ts'
import { factInside, placeScript, TOKEN, tokenScript } from './place.ts'
import { type ListeningSocket, parseListeners, processesFact, type RayProcess } from './processes.ts'
import { type UnitState, unitFact } from './unit.ts'
import { type ClusterView, parseClusterView } from './usage.ts'
import { dashboardAddress, nodeOf, nodesOf, portsOf, type RayNode, type RayWanted } from './wanted.ts'

export type Installed =
  /** `hasPython`: what should have it is there. */
  | { readonly kind: 'absent'; readonly hasPython: boolean }
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
  /** What they reach without a router: `10.0.0.8/24`. */
  readonly networks: readonly string[]
  /** The one at which SSH reached the host. */
  readonly ssh?: string
}

export type DiskSpace = {
  readonly uid: number
  /** Free in /dev/shm. */
  readonly sharedBytes: number
  /** All that the host has. */
  readonly memoryBytes: number
  readonly tempUsedPercent: number
  readonly isTempWritable: boolean
}

/**
 * Why a connection fails: no answer in time, no route, the port is closed, or the name is unknown.
 */
export type Hindrance = 'silent' | 'noroute' | 'refused' | 'unknown'

/** Other hosts by name, and their ports to which connections fail. */
export type Unreached = ReadonlyMap<string, ReadonlyMap<number, Hindrance>>

export type RayFacts = {
  readonly installed: Installed
  readonly processes: readonly RayProcess[]
  readonly listeners: readonly ListeningSocket[]
  readonly addresses: Addresses
  readonly space: DiskSpace
  readonly unreached: Unreached
  /** What the host's clock says, in milliseconds since the epoch. */
  readonly clock: number
  readonly unit: UnitState
  /** Of the head alone. */
  readonly cluster: ClusterView
}

export type FactsOfHosts = ReadonlyMap<string, HostFacts<RayFacts>>

/** Characters of an answer of one line: a longer one is no answer. */
const MOST_ANSWER = 4096

function installedFact({ environment }: RayNode): Fact<Installed> {
  return {
    script: `${placeScript(environment)}
if [ -z "$ray" ]; then echo "absent$py"; else limited "$py" -c ${shellQuote(INSTALLED)}; fi`,
    parse(text) {
      if (text.startsWith('absent')) return { kind: 'absent', hasPython: text !== 'absent' }
      const [, ray, python = '', missing = ''] = /^ray=(\S*) python=(\S+)(.*)$/.exec(text.slice(0, MOST_ANSWER)) ?? []
      if (ray === undefined) return undefined
      return ray === ''
        ? { kind: 'absent', hasPython: true }
        : { kind: 'ray', ray, python, missing: missing.split(' ').filter(Boolean) }
    },
  }
}

const listenersFact: Fact<readonly ListeningSocket[]> = {
  script: `if command -v ss > /dev/null; then limited ss -H -l -t -n -p; else cat /proc/net/tcp /proc/net/tcp6; fi; echo end`,
  parse: (text) => (text.endsWith('end') ? parseListeners(text) : undefined),
}

const addressesFact: Fact<Addresses> = {
  script: `if command -v ip > /dev/null; then limited ip -o -4 addr show; else for a in $(hostname -I); do echo "inet $a"; done; fi
set -- $SSH_CONNECTION; echo "ssh $3"`,
  parse(text) {
    const found = [...text.matchAll(/\binet (\d+\.\d+\.\d+\.\d+)(\/\d+)?/g)]
    const own = found.flatMap(([, address = '']) => address)
    const networks = found.flatMap(([, address, prefix]) => (prefix === undefined ? [] : [`${address}${prefix}`]))
    const ssh = /^ssh (\d+\.\d+\.\d+\.\d+)$/m.exec(text)?.[1]
    return { own, networks, ...(ssh === undefined ? {} : { ssh }) }
  },
}

function spaceFact(directory: string): Fact<DiskSpace> {
  return {
    script: `d=${shellQuote(directory)}
while [ ! -d "$d" ]; do d=\${d%/*}; d=\${d:-/}; done
[ -w "$d" ]; writable=$?
set -- $(df -P -k "$d" | tail -n 1); used=\${5%\\%}
set -- $(df -P -k /dev/shm | tail -n 1)
echo "$(id -u) $4 $used $writable $(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)"`,
    parse(text) {
      const match = /^(\d+) (\d+) (\d+) (\d+) (\d+)$/.exec(text)
      if (match === null) return undefined
      const [uid = 0, shared = 0, used = 0, writable = 0, memory = 0] = match.slice(1).map(Number)
      return {
        uid,
        sharedBytes: shared * 1024,
        memoryBytes: memory * 1024,
        tempUsedPercent: used,
        isTempWritable: writable === 0,
      }
    },
  }
}

const HINDRANCES: ReadonlyMap<string, Hindrance> = new Map([
  ['s', 'silent'],
  ['n', 'noroute'],
  ['r', 'refused'],
  ['u', 'unknown'],
])

function unreachedFact(wanted: RayWanted, { host, environment }: RayNode): Fact<Unreached> {
  const others = nodesOf(wanted).filter((other) => other.host !== host)
  const ways = others.flatMap((other) => portsOf(wanted, other).map((port) => ({ other, port })))
  return {
    script: `${placeScript(environment)}
[ -n "$py" ] || py=$(command -v python3) || return 1
${BARE} ${shellQuote(REACH)} ${ways.map(({ other, port }) => shellQuote(`${other.address}:${port}`)).join(' ')}`,
    mayHang: true,
    parse(text) {
      if (!text.endsWith('end')) return undefined
      const unreached = new Map<string, Map<number, Hindrance>>()
      for (const [, index, how = ''] of text.matchAll(/(\d{1,6}):([snru])/g)) {
        const way = ways[Number(index)]
        if (way === undefined) continue
        const ports = unreached.get(way.other.host) ?? new Map<number, Hindrance>()
        unreached.set(way.other.host, ports.set(way.port, HINDRANCES.get(how) ?? 'silent'))
      }
      return unreached
    },
  }
}

function clusterFact(wanted: RayWanted): Fact<ClusterView> {
  return {
    script: `${placeScript(wanted.head.environment)}
[ -n "$py" ] || py=$(command -v python3) || return 1
${tokenScript(wanted, wanted.head)}limited ${clusterProgram(dashboardAddress(wanted))}`,
    parse: parseClusterView,
  }
}

const NO_CONTAINER = `echo '{"error": "its container is not running"}'`

const NO_CLUSTER: Fact<ClusterView> = {
  script: ':',
  parse: () => ({ kind: 'silent', because: 'not asked' }),
}

export function rayFacts(wanted: RayWanted, host: string): FactSet<RayFacts> {
  const node = nodeOf(wanted, host) ?? wanted.head
  return {
    installed: factInside(wanted, node, installedFact(node), 'echo absent'),
    processes: factInside(wanted, node, processesFact),
    listeners: factInside(wanted, node, listenersFact),
    addresses: addressesFact,
    space: factInside(wanted, node, spaceFact(wanted.tempDirectory)),
    unreached: factInside(wanted, node, unreachedFact(wanted, node)),
    clock: clockFact,
    unit: unitFact(wanted),
    cluster: node.isHead ? factInside(wanted, node, clusterFact(wanted), NO_CONTAINER) : NO_CLUSTER,
  }
}

/**
 * Small Python programs that facts of Ray are asked with: Python is there wherever Ray is, curl and ss are not. Only read. All
 * hosts run them at once, and a head while it starts: they load little.
 */

/**
 * Versions and what the dashboard needs, without loading Ray, which takes a second, and without asking Python's packages, which
 * takes a tenth. What lies in the working directory counts for no program of Ray.
 */
const INSTALLED = `import sys
sys.path[:] = filter(None, sys.path)
import os
from importlib.util import find_spec
def has(name):
    try: return find_spec(name).origin is not None
    except Exception: return False
def version():
    for place in sys.path:
        try: names = os.listdir(place)
        except OSError: continue
        for name in names:
            if not (name.startswith("ray-") and name.endswith(".dist-info")): continue
            with open(os.path.join(place, name, "METADATA"), encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if line.startswith("Version:"): return line[8:].strip()
    from importlib.metadata import version
    return version("ray")
try: ray = version()
except Exception: ray = ""
needed = ["aiohttp", "aiohttp_cors", "grpc", "opencensus", "prometheus_client", "pydantic"]
print(" ".join(["ray=" + ray, "python=" + ".".join(map(str, sys.version_info[:3]))] + [n for n in needed if not has(n)]))`

/** Some questions to the dashboard; no proxy stands between a head and itself. */
const CLUSTER = `import json, sys
from http.client import HTTPConnection
${TOKEN}
way = HTTPConnection(sys.argv[1], timeout=2)
answered = False
class Refused(Exception): pass
def get(path):
    try:
        way.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
        reply = way.getresponse()
        body = reply.read(8000000)
    except Exception:
        way.close()
        raise
    if reply.status != 200: raise Refused(reply.status)
    return json.loads(body)
try:
    out = {"version": get("/api/version")}
    answered = True
    out["nodes"] = get("/api/v0/nodes?detail=1&limit=1000")
    try: out["metadata"] = get("/api/v0/cluster_metadata")
    except Exception: pass
    try: out["authentication"] = get("/api/authentication_mode")
    except Exception: pass
except Refused as error:
    why = {401: "it asks for a token that this login has not", 403: "it takes another token than this login has"}
    out = {"error": why.get(error.args[0], "HTTP %d" % error.args[0]), "answered": True}
except ValueError: out = {"error": "its answer is not JSON", "answered": True}
except Exception as error: out = {"error": str(error), "answered": answered}
print(json.dumps(out))`

/**
 * Tries TCP to many places at once, and prints the numbers of those to which no connection came about, with a letter for the
 * reason: refused, unknown name, silence, no route. For a second after a link is restored, connections still fail with the answer
 * to the ARP requests of before, so no route is believed the second time.
 */
const REACH = `import socket, sys, threading, time
lost = {}
until = time.monotonic() + 2
def attempt(number, host, port, again=True):
    try:
        socket.create_connection((host, int(port)), max(0.2, until - time.monotonic())).close()
        lost.pop(number, None)
    except ConnectionRefusedError: lost[number] = "r"
    except socket.gaierror: lost[number] = "u"
    except (socket.timeout, TimeoutError): lost.setdefault(number, "s")
    except Exception:
        lost[number] = "n"
        if again: attempt(number, host, port, False)
threads = []
for number, place in enumerate(sys.argv[1:]):
    host, _, port = place.rpartition(":")
    threads.append(threading.Thread(target=attempt, args=(number, host, port), daemon=True))
for thread in threads: thread.start()
for thread in threads: thread.join(2.5)
print(" ".join("%d:%s" % pair for pair in sorted(dict(lost).items())) + " end")`

/** Without the packages of the environment, which these do not need. */
const BARE = '"$py" -I -S -c'

export function clusterProgram(dashboard: string): string {
  return `${BARE} ${shellQuote(CLUSTER)} ${shellQuote(dashboard)}`
}
