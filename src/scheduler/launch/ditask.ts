/**
 * DI-engine's ditask (0.5): one process for each worker, as on Kubernetes. Their message bus loses messages without a word, and a
 * worker that cannot listen, or reach a peer at its start, goes on alone and ends with 0; so its words are watched.
 */

import { MusterError } from '../../base/errors.ts'
import { pythonWords } from '../../base/python-words.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { askPorts, askProgram, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { bundleLine } from './by-hand.ts'
import { ditaskInGang } from './ditask-gang.ts'
import { HOST_ROLE, type LaunchedGang, type Launcher, type LaunchSpec } from './launcher.ts'
import { severalRanks } from './rank.ts'
import { parseRole } from './roles.ts'
import { beginOf } from './torchrun.ts'

/** Host and port. */
export const REDIS = /^([A-Za-z0-9.:-]{1,253}):(\d{1,5})$/

export const ditask: Launcher = {
  name: 'ditask',
  summary: 'start DI-engine workers on a message bus',
  options: [
    {
      flags: 'topology <name>',
      summary: 'connect the workers as star (default), mesh or alone',
      values: /^(star|mesh|alone)$/,
    },
    { flags: 'workers <n>', summary: 'start N workers in each bundle (default: 1)', values: /^[1-9]\d{0,2}$/ },
    {
      flags: 'role <name=count>',
      summary:
        'start COUNT bundles whose workers have the label NAME; NAME=COUNT:gpu=1,cpu=4 for requests of their own',
      isRepeatable: true,
    },
    { flags: 'redis <host:port>', summary: 'send messages through this Redis server', values: REDIS },
    { flags: 'ditask <path>', summary: 'use this program in place of ditask' },
  ],
  inserts: { hint: 'Write options of ditask alone.' },
  shape(options, bundles, request) {
    const { role, redis, topology } = options
    if (redis !== undefined && topology !== undefined)
      throw new MusterError('usage', '--redis needs no --topology: all workers are connected to the server')
    const roles = role?.split(' ').map((text) => parseRole(text, request)) ?? [
      { name: HOST_ROLE, count: bundles, request },
    ]
    return { roles, ranks: workersOf(options) }
  },
  next(gang, bundle) {
    const { bundles, spec } = gang
    const { redis } = spec.options
    const question = (index: number) =>
      formatQuestion(
        askProgram(spec.options.ditask ?? 'ditask'),
        redis === undefined
          ? askPorts(workersOf(spec.options), spec.ports, beginOf(gang) + 16 * index)
          : askRedis(redis),
      )
    const step = nextQuestion(gang, bundle, question)
    if (step !== undefined) return step
    const nodes = redis === undefined ? addressesOf(gang) : []
    const silent = nodes.indexOf(undefined)
    if (silent >= 0)
      return {
        kind: 'refuse',
        reason: `${bundles[Math.floor(silent / workersOf(spec.options))]?.host}: it told too few free ports`,
      }
    const own = Array.from({ length: workersOf(spec.options) }, (_, local) => bundle * workersOf(spec.options) + local)
    const lines = own.map((rank, local) => {
      const line = lineOf(gang, bundle, rank, nodes)
      const watched = redis === undefined ? heard(line) : `exec ${line}`
      return { rank, local, command: `sh -c ${shellQuote(watched)}` }
    })
    return { kind: 'start', command: severalRanks(lines, bundles.length * own.length), environment: {} }
  },
  inGang: ditaskInGang,
  byHand(gang) {
    const nodes = addressesOf(gang)
    const each = workersOf(gang.spec.options)
    return nodes.map((_, rank) => {
      const bundle = Math.floor(rank / each)
      return bundleLine(gang, bundle, {}, lineOf(gang, bundle, rank, nodes))
    })
  },
}

const workersOf = ({ workers = '1' }: LaunchSpec['options']): number => Number(workers)

/** Of all workers, by rank; undefined: its host told too few ports. */
const addressesOf = ({ bundles, spec }: LaunchedGang): readonly (string | undefined)[] =>
  bundles.flatMap(({ address, said }) => {
    const ports = portsOf(said)
    const host = address.includes(':') ? `[${address}]` : address
    return Array.from({ length: workersOf(spec.options) }, (_, index) =>
      ports[index] === undefined ? undefined : `tcp://${host}:${ports[index]}`,
    )
  })

function lineOf(
  { bundles, command, spec }: LaunchedGang,
  bundle: number,
  rank: number,
  nodes: readonly (string | undefined)[],
): string {
  const { topology = 'star', redis, ditask: program = 'ditask' } = spec.options
  const role = bundles[bundle]?.role ?? HOST_ROLE
  const peers =
    topology === 'star' ? nodes.slice(0, Math.min(rank, 1)) : topology === 'mesh' ? nodes.slice(0, rank) : []
  const [, redisHost = '', redisPort = ''] = REDIS.exec(redis ?? '') ?? []
  const [, address = '', port = ''] = /^tcp:\/\/(.+):(\d+)$/.exec(nodes[rank] ?? '') ?? []
  const bus =
    redis === undefined
      ? ['--address', address, '--ports', port, '--topology', 'alone']
      : ['--mq-type', 'redis', '--redis-host', redisHost, '--redis-port', redisPort]
  const words = [
    ...['--parallel-workers', '1', '--node-ids', String(rank), ...bus],
    ...(peers.length === 0 ? [] : ['--attach-to', peers.join()]),
    ...(role === HOST_ROLE ? [] : ['--labels', role]),
  ]
  return `${shellQuote(program)} ${words.map(shellQuote).join(' ')} ${command}`
}

/**
 * Runs a worker and fails it as soon as it says that it could not listen or dial (a refused connection is tried again), or when it
 * ends without having listened.
 */
const heard = (line: string): string => `e=$MUSTER_DIRECTORY/rank.$RANK; [ "$RANK" != 0 ] || e=$MUSTER_DIRECTORY/err
deaf() { grep '^pynng\\.exceptions\\.' "$e" | grep -v -m 1 ConnectionRefused; }
${line} & p=$!
trap 'kill -TERM $p' TERM INT HUP
{ while sleep 1 && kill -0 $p; do ! deaf || kill -TERM $p; done; } >/dev/null 2>&1 &
while wait $p; c=$?; [ $c -gt 128 ] && kill -0 $p; do :; done 2>/dev/null
x=$(deaf) && { echo "BusError: this worker hears no other one: $x" >&2; exit 1; }
[ $c != 0 ] || grep -q 'NNG listen on' "$e" || { echo "BusError: this worker ended without listening" >&2; exit 1; }
exit $c`

const askRedis = (redis: string): string => {
  const [, host = '', port = ''] = REDIS.exec(redis) ?? []
  const program = `import socket,sys
try: socket.create_connection((sys.argv[1],int(sys.argv[2])),4).close()
except OSError as e: print(e)`
  return `e=$(python3 ${pythonWords(program)} ${shellQuote(host)} ${port}); [ -z "$e" ] || refuse "cannot reach Redis at ${host} port ${port}: $e"`
}
