/** Ray as an engine of the queue: in each round one program on the head starts, checks and stops jobs. Orders may be given twice. */
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Declared } from '../kernel/area.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import { GANG_PROGRAM, OUTPUT_MARK } from './gang-program.ts'
import { inside } from './inside.ts'
import { placeName, placeScript } from './place.ts'
import { LIST_RAY } from './processes.ts'
import { END, NOTHING_LISTENS, ROUND_PROGRAM } from './round-program.ts'
import { section } from './section.ts'
import { OPENER, tokenScript } from './token.ts'
import { dashboardAddress, nodesOf, type RayWanted, wantedRay } from './wanted.ts'

/** An order for Ray; of `spec` only what Ray supports. */
type RayOrder = RayStart | { readonly kind: 'check' | 'stop'; readonly key: string }
type RayStart = {
  readonly kind: 'start'
  readonly key: string
  readonly environment: Readonly<Record<string, string>>
  readonly spec: {
    readonly command: string
    readonly directory?: string
    readonly request: {
      readonly cpuMilli: number
      readonly memoryBytes: number
      readonly gpuCount: number
      readonly gpuMilli: number
    }
    readonly bundles: number
    readonly strategy: string
  }
}

const ROUND_MS = 150_000

/** What the head prints instead of answers if the cluster does not run there. */
const DOWN = 'down'

/** For `--engine ray` (cli/job/engines.ts). */
export const RAY_ENGINE = {
  name: 'ray',
  // Few, so that the order of the queue matters.
  mostWaiting: 8,
  pollMs: { soon: 100, late: 2_000 },
  summary: 'the Ray cluster of hosts.yaml does',
  docs: 'docs/ray.md',
  // Ray places by itself and knows neither metrics nor directories of this machine.
  refuses: ['--on', '--per-host', '--preemptible', '--dry-run', '--copy-dir', '--from-env', '--metric'],
  // Quoted twice, it stays below what one argument of a program may have.
  mostCommandBytes: 24 * 1024,
  isDeclared: (inventory: Inventory) => sectionOf(inventory, section) !== undefined,
  open(declared: Declared) {
    const wanted = wantedRay(declared)
    return wanted && openRay(wanted)
  },
}

export function openRay(wanted: RayWanted) {
  return {
    round: (orders: readonly RayOrder[], hosts: OpsHosts, signal: AbortSignal) => round(wanted, orders, hosts, signal),
    /** The host and script that print a piece of a bundle's output. */
    log: (piece: LogPiece) => ({ host: wanted.head.host, script: logScript(wanted, piece) }),
  }
}

/** Never rejects. */
async function round(wanted: RayWanted, orders: readonly RayOrder[], hosts: OpsHosts, signal: AbortSignal) {
  const { head } = wanted
  const stdin = Buffer.from(JSON.stringify(orders.map((order) => requestOf(order, wanted))))
  const result = await hosts.exec(head.host, inside(wanted, head, roundScript(wanted), 'whole', ABSENT), {
    stdin,
    timeoutMs: ROUND_MS,
    signal,
  })
  const { outcome, stdout } = result
  if (isSuccess(outcome)) return parseRound(wanted, orders, Buffer.from(stdout).toString())
  return { trouble: printable(reasonOfResult(result, formatOutcome)), reports: new Map<string, RayReport>() }
}

const WORDS = ['waiting', 'running', 'unable', 'barred', 'lost', 'forgotten', 'refused', 'cancelled'] as const

type RayReport = number | (typeof WORDS)[number]

/** The lines of ROUND_PROGRAM. A head reports only jobs that it was asked about. */
function parseRound(wanted: RayWanted, orders: readonly RayOrder[], text: string) {
  const asked = new Set(orders.map(({ key }) => key))
  const reports = new Map<string, RayReport>()
  let trouble: string | undefined = "could not parse the head's answer"
  for (const line of text.split('\n')) {
    const [first = '', second = '', third = ''] = line.split(' ')
    const word = WORDS.find((known) => known === second)
    if (asked.has(first)) {
      if (second === 'exit' && /^\d{1,3}$/.test(third)) reports.set(first, Number(third))
      else if (word !== undefined) reports.set(first, word)
    } else if (line === END) trouble = undefined
    else if (first === 'trouble') trouble = printable(line.slice('trouble '.length))
    else if (line === DOWN) {
      trouble = `Ray is not running on ${wanted.head.host}. Start it: muster ray up`
      // A GCS with external storage still has its jobs after a restart.
      if (wanted.variables.RAY_REDIS_ADDRESS === undefined)
        for (const { kind, key } of orders) if (kind !== 'start') reports.set(key, 'forgotten')
    }
  }
  return { trouble, reports }
}

/** In a container that is missing or stopped the cluster does not run; if Docker does not answer, that is unknown. */
const ABSENT = (
  name: string,
) => `case $(dock container inspect --format '{{.State.Running}}' ${shellQuote(name)} 2>&1) in
  false | *[Nn]'o such container'*) echo ${DOWN}; exit 0;;
esac`

/** Without the environment any Python asks the dashboard; without Python the process list decides. */
function roundScript(wanted: RayWanted): string {
  const { head, port } = wanted
  const words = [dashboardAddress(wanted), String(port), head.ip ?? '']
  return `${placeScript(head.environment)}
[ -n "$py" ] || py=$(command -v python3)
${tokenScript(wanted, head)}code=${NOTHING_LISTENS}
[ -z "$py" ] || { "$py" -c ${shellQuote(ROUND_PROGRAM)} ${words.map(shellQuote).join(' ')}; code=$?; }
[ "$code" -eq ${NOTHING_LISTENS} ] || exit "$code"
${LIST_RAY}
case "$(list_ray | grep ' gcs_server ' | tr '\\n' ' ')" in
  *" --gcs_server_port=${port} "*) echo 'trouble Ray runs, and its dashboard does not answer';;
  *) echo ${DOWN};;
esac`
}

function headScript(wanted: RayWanted): string {
  const { environment } = wanted.head
  return `${placeScript(environment)}
[ -n "$py" ] || { echo ${shellQuote(`there is no ray in ${placeName(environment)}`)} >&2; exit 1; }
${tokenScript(wanted, wanted.head)}`
}

/** Ray's own is 3 s between TERM and KILL; other jobs have 10. */
const STOP_WAIT = { RAY_JOB_STOP_WAIT_TIME_S: '10' }

function requestOf(order: RayOrder, wanted: RayWanted): object {
  if (order.kind !== 'start') return order
  const { kind, key, environment, spec } = order
  const { bundles: count, request } = spec
  const own = count === 1 ? singleJob(order) : { entrypoint: gangEntrypoint(order, wanted) }
  const variables = {
    ...STOP_WAIT,
    ...(count === 1 && request.gpuCount === 0 ? { CUDA_VISIBLE_DEVICES: '' } : {}),
    ...environment,
  }
  return { kind, key, count, job: { ...own, submission_id: key, runtime_env: { env_vars: variables } } }
}

/** Of each bundle by Ray's names; `memory` in bytes. */
function amountsOf({ request }: RayStart['spec']) {
  const { cpuMilli, gpuCount, gpuMilli, memoryBytes: memory } = request
  return { CPU: cpuMilli / 1000, GPU: (gpuCount * gpuMilli) / 1000, memory }
}

function singleJob({ key, spec }: RayStart): object {
  const { command, directory } = spec
  const bundle = amountsOf(spec)
  const go = directory === undefined ? 'cd' : `cd ${shellQuote(directory)}`
  const line = `: muster ${key}
echo ${shellQuote(OUTPUT_MARK)}
export ROCR_VISIBLE_DEVICES="\${CUDA_VISIBLE_DEVICES-}" MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_HOSTS="$(hostname)"
export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
${go} && exec /bin/sh -c ${shellQuote(command)}`
  return {
    entrypoint: line,
    entrypoint_num_cpus: bundle.CPU,
    entrypoint_num_gpus: bundle.GPU,
    ...(bundle.memory > 0 ? { entrypoint_memory: bundle.memory } : {}),
  }
}

function gangEntrypoint({ key, environment, spec }: RayStart, wanted: RayWanted) {
  const { command, directory, bundles: count, strategy } = spec
  const given = Object.entries(amountsOf(spec)).filter(([, amount]) => amount > 0)
  // Ray takes no bundle of nothing.
  const amounts = given.length === 0 ? { CPU: 0.001 } : Object.fromEntries(given)
  const order = {
    key,
    command,
    directory: directory ?? null,
    environment,
    bundle: amounts,
    count,
    strategy,
    mark: OUTPUT_MARK,
    names: Object.fromEntries(nodesOf(wanted).map(({ address, host }) => [address, host])),
  }
  return `: muster ${key}: ${count} bundles
exec python -u -c ${shellQuote(GANG_PROGRAM)} ${shellQuote(JSON.stringify(order))}`
}

const LOG_PROGRAM = `import json, sys
${OPENER}
address, key, mark, rank, start, most = sys.argv[1:]
def get(path):
    with opener.open("http://" + address + "/api/jobs/" + key + path, timeout=15) as reply: return json.loads(reply.read(64000000))
text = get("/logs")["logs"] or ""
# Ray's own line may come after the first ones of the job.
text = text.replace("Running entrypoint for job " + key + ": " + str(get("").get("entrypoint")) + "\\n", "", 1)
_, found, text = text.partition(mark + "\\n")
if not found: text = ""
if rank != "":
    prefix = "[" + rank + "] "
    text = "".join(line[len(prefix):] for line in text.splitlines(True) if line.startswith(prefix))
sys.stdout.buffer.write(text.encode(errors="replace")[int(start):][:int(most)])`

type LogPiece = {
  readonly key: string
  /** Of a gang; undefined: of a job of one bundle. */
  readonly rank: number | undefined
  /** Of what the job printed; negative: from its end. */
  readonly fromByte: number
  readonly mostBytes: number
}

function logScript(wanted: RayWanted, { key, rank, fromByte, mostBytes }: LogPiece): string {
  const words = [dashboardAddress(wanted), key, OUTPUT_MARK, String(rank ?? ''), String(fromByte), String(mostBytes)]
  const script = `${headScript(wanted)}exec "$py" -c ${shellQuote(LOG_PROGRAM)} ${words.map(shellQuote).join(' ')}`
  return inside(wanted, wanted.head, script)
}
