/** Jobs of a queue that Ray runs: one program on the head a round starts, checks and ends them. Every order may be given twice. */

import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome } from '../run/outcome.ts'
import { GANG_PROGRAM, OUTPUT_MARK } from './gang-program.ts'
import { inside } from './inside.ts'
import { placeName, placeScript } from './place.ts'
import { LIST_RAY } from './processes.ts'
import { NOTHING_LISTENS, ROUND_PROGRAM } from './round-program.ts'
import { OPENER, tokenScript } from './token.ts'
import { dashboardAddress, nodesOf, type RayWanted } from './wanted.ts'

/** Of each bundle by Ray's names; `memory` in bytes. */
export type BundleAmounts = { readonly CPU: number; readonly GPU: number; readonly memory: number }

export type RoundOrder =
  | {
      readonly kind: 'start'
      readonly key: string
      readonly command: string
      readonly directory: string | undefined
      readonly environment: Readonly<Record<string, string>>
      readonly bundle: BundleAmounts
      readonly count: number
      readonly strategy: string
    }
  | { readonly kind: 'look' | 'stop'; readonly key: string }

export type Round =
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'trouble'; readonly reason: string }

const ROUND_MS = 150_000

/** What the head prints instead of answers where nothing of the cluster runs there. */
const DOWN = 'down'

/** The lines of ROUND_PROGRAM, only of what was asked. Never rejects. */
export async function askForRound(
  wanted: RayWanted,
  orders: readonly RoundOrder[],
  { hosts, signal }: { readonly hosts: OpsHosts; readonly signal: AbortSignal },
): Promise<Round> {
  const { head } = wanted
  const stdin = Buffer.from(JSON.stringify(orders.map((order) => requestOf(order, wanted))))
  const result = await hosts.exec(head.host, inside(wanted, head, roundScript(wanted), 'whole', ABSENT), {
    stdin,
    timeoutMs: ROUND_MS,
    signal,
  })
  const { outcome, stdout } = result
  if (outcome.kind === 'exit' && outcome.code === 0) {
    return { kind: 'answer', text: linesFor(wanted, orders, Buffer.from(stdout).toString()).join('\n') }
  }
  return { kind: 'trouble', reason: printable(reasonOfResult(result, formatOutcome)) }
}

/** A container that is not there, or does not run, has nothing of the cluster; Docker may also not tell. */
const ABSENT = (
  name: string,
) => `case $(dock container inspect --format '{{.State.Running}}' ${shellQuote(name)} 2>&1) in
  false | *[Nn]'o such container'*) echo ${DOWN}; exit 0;;
esac`

/** Without its environment, which may have gone with it, any Python asks; without any, the list of processes tells. */
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

/** A head speaks about the jobs that it was asked about, and about no other place of the queue. */
function linesFor(wanted: RayWanted, orders: readonly RoundOrder[], text: string): readonly string[] {
  const asked = new Set(orders.map(({ key }) => key))
  return text.split('\n').flatMap((line) => {
    const [first = ''] = line.split(' ', 1)
    if (asked.has(first) || line === 'host 0 0') return line
    if (first === 'trouble') return printable(line)
    if (line !== DOWN) return []
    const trouble = `trouble Ray does not run on ${wanted.head.host}. Start it: muster ray up`
    // A GCS that keeps what it knows elsewhere knows it again once it is back.
    if (wanted.variables.RAY_REDIS_ADDRESS !== undefined) return trouble
    return [trouble, ...orders.flatMap(({ kind, key }) => (kind === 'start' ? [] : `${key} forgotten`))]
  })
}

function headScript(wanted: RayWanted): string {
  const { environment } = wanted.head
  return `${placeScript(environment)}
[ -n "$py" ] || { echo ${shellQuote(`there is no ray in ${placeName(environment)}`)} >&2; exit 1; }
${tokenScript(wanted, wanted.head)}`
}

/** Ray's own is 3 s between TERM and KILL; other jobs have 10. */
const STOP_WAIT = { RAY_JOB_STOP_WAIT_TIME_S: '10' }

function requestOf(order: RoundOrder, wanted: RayWanted): object {
  if (order.kind !== 'start') return order
  const { kind, key, count, environment, bundle } = order
  const own = count === 1 ? singleJob(order) : { entrypoint: gangEntrypoint(order, wanted) }
  const variables = {
    ...STOP_WAIT,
    ...(count === 1 && bundle.GPU === 0 ? { CUDA_VISIBLE_DEVICES: '' } : {}),
    ...environment,
  }
  return { kind, key, count, job: { ...own, submission_id: key, runtime_env: { env_vars: variables } } }
}

type Start = Extract<RoundOrder, { kind: 'start' }>

function singleJob({ key, command, directory, bundle }: Start): object {
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

function gangEntrypoint({ key, command, directory, environment, bundle, count, strategy }: Start, wanted: RayWanted) {
  const given = Object.entries(bundle).filter(([, amount]) => amount > 0)
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

export type LogPiece = {
  readonly key: string
  /** Of a gang; undefined: of a job of one bundle. */
  readonly rank: number | undefined
  /** Of what the job printed; negative: from its end. */
  readonly fromByte: number
  readonly mostBytes: number
}

/** A script for the head that prints a piece of what a job has printed. */
export function logPieceScript(wanted: RayWanted, { key, rank, fromByte, mostBytes }: LogPiece): string {
  const words = [dashboardAddress(wanted), key, OUTPUT_MARK, String(rank ?? ''), String(fromByte), String(mostBytes)]
  const script = `${headScript(wanted)}exec "$py" -c ${shellQuote(LOG_PROGRAM)} ${words.map(shellQuote).join(' ')}`
  return inside(wanted, wanted.head, script)
}
