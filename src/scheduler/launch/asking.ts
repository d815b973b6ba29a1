/**
 * Questions for the host of a bundle before its command begins: parts of one POSIX sh program that prints `NAME VALUE` for each
 * fact and `refuse SENTENCE` for what makes the start pointless. They change nothing.
 */
import { pythonWords } from '../../base/python-words.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { LaunchedGang, LaunchStep } from './launcher.ts'
import { hostFacts } from './preflight.ts'

/** Told last of all: a program that was cut off has answered nothing. */
export const ANSWERED = 'answered'

export function formatQuestion(...parts: readonly string[]): string {
  return [
    `tell() { printf '%s\\n' "$*"; }`,
    'refuse() { tell refuse "$@"; exit; }',
    ...parts,
    `tell ${ANSWERED} 1`,
  ].join('\n')
}

/** Fact `card`: the network card that has this address; none where it is a name. */
export const askCard = (address: string): string =>
  `c=$(ip -o addr show to ${shellQuote(address)} 2>/dev/null) && [ -n "$c" ] && { set -- $c; tell card "\${2%%@*}"; }`

export const askProgram = (program: string): string =>
  `command -v ${shellQuote(program)} >/dev/null || refuse ${shellQuote(`${program} is not in PATH`)}`

/**
 * Fact `port` (or several, separated by spaces): ports of the range on which nothing listens. The search begins at another port
 * for each job, so that jobs that begin together do not find the same.
 */
export function askPorts(count: number, [first, last]: readonly [number, number], begin: number): string {
  const size = last - first + 1
  return [
    // proc_net(5): local address, remote address, state 0A: listening.
    `t=" $(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r n l r s x; do [ "$s" = 0A ] && echo "$((0x\${l##*:}))"; done | tr '\\n' ' ')"`,
    `i=0 f= n=0; while [ $i -lt ${size} ] && [ $n -lt ${count} ]; do q=$((${first} + (${begin % size} + i) % ${size})); i=$((i+1))`,
    'case "$t" in *" $q "*) ;; *) f="$f $q"; n=$((n+1));; esac; done',
    `[ $n -eq ${count} ] || refuse ${shellQuote(`fewer than ${count} free ports from ${first} to ${last}`)}`,
    'tell port $f',
  ].join('\n')
}

/** What bundles of a gang have to say alike: a sentence when they do not. */
export function differsIn(gang: LaunchedGang, fact: string, title: string): string | undefined {
  const hosts = Map.groupBy(gang.bundles, ({ said }) => said[fact] ?? '')
  if (hosts.size < 2) return undefined
  const words = [...hosts].map(
    ([value, bundles]) => `${value || 'nothing'} on ${[...new Set(bundles.map(({ host }) => host))].join(' ')}`,
  )
  return `${title} differs: ${words.join(', ')}`
}

/** Seconds for a connection within the gang, and for the host that waits for it. */
const REACH_S = 4
const LISTEN_S = 12
/** Seconds that a refused connection is tried again: a scheduler that takes over has to start, and to ask the host to listen again. */
const REFUSED_S = 10

/**
 * The step of a bundle until all have answered `question` and all that listen are reached by the others; then undefined. `portOf`: of
 * a bundle that listens; by itself only the first one does, at its first port.
 */
export function nextQuestion(
  gang: LaunchedGang,
  bundle: number,
  question: (bundle: number) => string,
  portOf = (index: number) => (index === 0 ? portsOf(gang.bundles[0]?.said)[0] : undefined),
): LaunchStep | undefined {
  const { bundles } = gang
  const asked = bundles[bundle]
  const own = asked?.said ?? {}
  if (own.refuse !== undefined) return { kind: 'refuse', reason: `${bundles[bundle]?.host}: ${own.refuse}` }
  if (own[ANSWERED] === undefined && asked !== undefined)
    return { kind: 'ask', name: ANSWERED, program: `${hostFacts(gang, asked)}\n${question(bundle)}` }
  if (bundles.some(({ said }) => said[ANSWERED] === undefined)) return { kind: 'wait' }
  const listeners = bundles.flatMap(({ host, address, said }, index) => {
    const port = portOf(index)
    return port === undefined ? [] : [{ index, host, address, said, port }]
  })
  if (listeners.length === 0 || bundles.length === 1) return undefined
  const mine = listeners.find(({ index }) => index === bundle)
  const hear = mine && {
    kind: 'ask' as const,
    name: 'listening',
    program: listen(mine.address, mine.port, bundles.length - 1),
  }
  if (hear !== undefined && own.listening === undefined) return hear
  const isCaller = (index: number) => listeners.some((one) => one.index !== index)
  if (isCaller(bundle) && own.reached === undefined)
    return listeners.some(({ said }) => said.listening === undefined)
      ? { kind: 'wait' }
      : { kind: 'ask', name: 'reached', program: reach(listeners.filter(({ index }) => index !== bundle)) }
  const isReached = bundles.every(({ said }, index) => !isCaller(index) || said.reached !== undefined)
  if (isReached && listeners.every(({ said }) => said.heard !== undefined)) return undefined
  // Where another scheduler took over, nobody may be listening any more: its shells ask again, and no shell asks twice.
  return hear !== undefined && own.heard === undefined ? hear : { kind: 'wait' }
}

/** Of the fact `port`, as far as they can be ports. */
export function portsOf(said: Readonly<Record<string, string>> | undefined): readonly number[] {
  const words = said?.port?.split(' ') ?? []
  return words.every((word) => /^[1-9]\d{0,4}$/.test(word) && Number(word) < 65_536) ? words.map(Number) : []
}

/** Python is there wherever a launcher is. The others close first, or the port could not be bound for a while; `heard`: it is free again. */
const listen = (address: string, port: number, count: number): string =>
  `exec python3 ${pythonWords(`import errno,socket,sys
a,p,n=sys.argv[1:]
def server(a): return socket.create_server((a,int(p)),family=socket.AF_INET6 if ":" in a else socket.AF_INET)
try:
  try: s=server(a)
  except socket.gaierror: s=server("")
  except OSError as e:
    if e.errno!=errno.EADDRNOTAVAIL: raise
    s=server("")
except OSError as e: sys.exit(print("refuse cannot listen at",a,"port",p+":",e))
s.settimeout(${LISTEN_S})
print("listening 1",flush=True)
try:
  for _ in range(int(n)):
    c=s.accept()[0]
    c.settimeout(${LISTEN_S})
    c.recv(1)
    c.close()
except OSError: pass
s.close()
print("heard 1",flush=True)`)} ${shellQuote(address)} ${port} ${count}`

type Place = { readonly host: string; readonly address: string; readonly port: number }

const reach = (places: readonly Place[]): string =>
  `exec python3 ${pythonWords(`import socket,sys,time
w=sys.argv[1:]
end=time.monotonic()+${REFUSED_S}
def reach(a,p):
  while True:
    try: return socket.create_connection((a,int(p)),${REACH_S}).close()
    except ConnectionRefusedError:
      if time.monotonic()>end: raise
      time.sleep(.2)
for h,a,p in zip(w[::3],w[1::3],w[2::3]):
  try: reach(a,p)
  except OSError as e: sys.exit(print("refuse cannot reach",h,"at",a,"port",p+":",e))
print("reached 1")`)} ${places.map(({ host, address, port }) => `${shellQuote(host)} ${shellQuote(address)} ${port}`).join(' ')}`
