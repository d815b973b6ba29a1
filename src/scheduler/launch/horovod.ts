/**
 * Horovod (0.28): ranks begin by MPI where all hosts have a Horovod that was built with it, else by Gloo, where the bundles begin
 * their ranks themselves with the variables of horovodrun and the first one runs its rendezvous server. Neither needs keys.
 */
import { pythonWords } from '../../base/python-words.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { askPorts, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { withVariables } from './by-hand.ts'
import type { HandLine, LaunchedGang, Launcher, LaunchStep } from './launcher.ts'
import { ORDER } from './launcher.ts'
import { askMpi, MPI_OPTIONS, mpiByHand, mpiShape, mpiStep } from './mpi.ts'
import { askInet, innerGang } from './networks.ts'
import { asProgram, asRank } from './rank.ts'
import { beginOf } from './torchrun.ts'

export const horovod: Launcher = {
  name: 'horovod',
  summary: 'start ranks of Horovod by MPI, or by Gloo where Horovod was built without it',
  options: [
    {
      flags: 'controller <name>',
      summary: 'start ranks by mpi or gloo (default: mpi where Horovod was built with it)',
      values: /^(mpi|gloo)$/,
    },
    ...MPI_OPTIONS,
    ORDER,
  ],
  // By Gloo no bundle leads the others.
  shape(options, bundles, request, perHost) {
    const { leaders, ...shape } = mpiShape(options, bundles, request, perHost)
    return shape
  },
  ringDirection: () => 'next',
  next(gang, bundle) {
    const inner = innerGang(gang)
    if (typeof inner === 'string') return { kind: 'refuse', reason: inner }
    const step = nextQuestion(inner.gang, bundle, (index) => question(gang, index))
    if (step !== undefined) return step
    const lacking = (name: string) => gang.bundles.find(({ said }) => !said.controllers?.split(' ').includes(name))
    const { controller } = gang.spec.options
    if (controller !== 'gloo' && lacking('mpi') === undefined) return mpiStep(gang, bundle)
    const [name, without] =
      controller === 'mpi' ? (['MPI', lacking('mpi')] as const) : (['Gloo', lacking('gloo')] as const)
    if (without === undefined) return glooStep(inner.gang, bundle)
    const hint = `build it with HOROVOD_WITH_${name.toUpperCase()}=1`
    return { kind: 'refuse', reason: `Horovod on ${without.host} was built without ${name}; ${hint}` }
  },
  byHand(gang) {
    const isBuilt = gang.bundles.every(({ said }) => said.controllers?.includes('mpi') !== false)
    return gang.spec.options.controller === 'gloo' || !isBuilt ? horovodrun(gang) : mpiByHand(gang)
  },
}

/** Fact `controllers`: those that Horovod was built with; what MPI needs is asked only where it was. */
const question = (gang: LaunchedGang, index: number): string =>
  formatQuestion(
    "command -v horovodrun >/dev/null || refuse 'horovodrun is not in PATH; install horovod on this host, or use --from-env'",
    `b=$(horovodrun --check-build 2>/dev/null); h=\${b%%:*}; b=\${b#*Controllers}; b=\${b%%Tensor*} c=`,
    `case $b in *'[X] MPI'*) c=mpi;; esac; case $b in *'[X] Gloo'*) c="$c gloo";; esac`,
    `[ -n "$c" ] || refuse 'horovodrun --check-build names neither MPI nor Gloo'`,
    'tell controllers $c; tell horovod "$(echo "$h" | head -n 1 | head -c 100)"',
    `case $c in ${gang.spec.options.controller === 'gloo' ? 'none' : 'mpi*'})
${askMpi(gang, index).join('\n')};;
*)
${[ASK_SERVER, askInet(gang.spec.options, gang.bundles[index]?.address ?? ''), askPorts(1, gang.spec.ports, beginOf(gang))].join('\n')};;
esac`,
  )

const ASK_SERVER = `python3 ${pythonWords('import horovod.runner.http.http_server')} 2>/dev/null || refuse 'python3 cannot import horovod.runner; use --from-env for the environment of horovodrun'`

function horovodrun(gang: LaunchedGang): readonly HandLine[] {
  const hosts = gang.bundles.map(({ address, ranks }) => `${address}:${ranks}`).join()
  const card = gang.bundles[0]?.said.card
  const words = `--gloo${card === undefined ? '' : ` --network-interface ${shellQuote(card)}`} -np ${sizeOf(gang)} -H ${shellQuote(hosts)}`
  // It gives its own variables to all ranks.
  const command = withVariables(
    { ...gang.spec.environment, ...gang.environment },
    `horovodrun ${words} ${asProgram(gang.command)}`,
  )
  return [{ host: gang.bundles[0]?.host ?? '', command }]
}

const sizeOf = ({ bundles }: LaunchedGang): number => bundles.reduce((sum, { ranks }) => sum + ranks, 0)

/** Serves until it is ended; prints `up` or `failed`. Its arguments: address, port, `NAME:RANKS` of each bundle, ranks. */
const RENDEZVOUS = `import sys
try:
  from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
  from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer
  address, port, hosts, size = sys.argv[1:]
  server = RendezvousHTTPServer((address, int(port)), RendezvousHandler, 0)
  server.init(get_host_assignments(parse_hosts(hosts), int(size)))
except BaseException:
  print("failed", flush=True)
  raise
print("up", flush=True)
server.serve_forever()`

/** Of a bundle, for the rendezvous alone. */
const nameOf = (bundle: number): string => `host${bundle}`

function glooStep(gang: LaunchedGang, bundle: number): LaunchStep {
  const { bundles, command } = gang
  const [first] = bundles
  const own = bundles[bundle]
  const [port] = portsOf(first?.said)
  if (first === undefined || own === undefined || port === undefined)
    return { kind: 'refuse', reason: `${first?.host}: it told no port` }
  // The others begin when the server listens.
  if (bundle > 0 && first.said.rendezvous === undefined) return { kind: 'wait' }
  const size = sizeOf(gang)
  const before = bundles.slice(0, bundle).reduce((sum, { ranks }) => sum + ranks, 0)
  const hosts = bundles.map(({ ranks }, index) => `${nameOf(index)}:${ranks}`).join()
  const server = [first.address, port, hosts, size].map((word) => shellQuote(String(word))).join(' ')
  const ranks = Array.from({ length: own.ranks }, (_, local) => {
    const cross = bundles.filter(({ ranks }) => ranks > local)
    const variables = {
      RANK: before + local,
      LOCAL_RANK: local,
      CROSS_RANK: cross.indexOf(own),
      CROSS_SIZE: cross.length,
    }
    const words = Object.entries(variables).map(([name, value]) => `HOROVOD_${name}=${value}`)
    return `( export ${words.join(' ')}; ${asRank(command)}; echo $? >&8 ) &`
  })
  const card = /^[\w.:-]{1,15}$/.exec(own.said.card ?? '')?.[0]
  return {
    kind: 'start',
    command: `e=$MUSTER_DIRECTORY/ends; mkfifo "$e" && exec 8<>"$e" || exit
s=
${
  bundle > 0
    ? ''
    : `python3 ${pythonWords(RENDEZVOUS)} ${server} >&8 & s=$!
read -r l <&8; [ "$l" = up ] || { wait $s; exit 1; }
echo "rendezvous 1" >"$MUSTER_SAY"
`
}${ranks.join('\n')}
n=${own.ranks} c=0
while [ $n -gt 0 ] && [ $c = 0 ] && read -r c <&8; do n=$((n-1)); done
[ -z "$s" ] || kill $s
exit $c`,
    environment: {
      HOROVOD_SIZE: String(size),
      HOROVOD_LOCAL_SIZE: String(own.ranks),
      HOROVOD_HOSTNAME: nameOf(bundle),
      HOROVOD_GLOO_RENDEZVOUS_ADDR: first.address,
      HOROVOD_GLOO_RENDEZVOUS_PORT: String(port),
      HOROVOD_CONTROLLER: 'gloo',
      HOROVOD_CPU_OPERATIONS: 'gloo',
      ...(card === undefined ? {} : { HOROVOD_GLOO_IFACE: card }),
    },
  }
}
