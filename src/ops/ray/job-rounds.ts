/**
 * Jobs of a queue that Ray runs: one program on the head a round, which begins, looks at and ends them through the dashboard's
 * REST interface (loading Ray's client takes seconds), and answers with a line each. Every order may be given twice.
 * https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html
 */
import { printable } from '../../base/printable.ts'
import { quote } from '../kernel/finding.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome } from '../run/outcome.ts'
import { GANG_PROGRAM, OUTPUT_MARK } from './gang-program.ts'
import { inside } from './inside.ts'
import { placeName, placeScript } from './place.ts'
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

const PROGRAM = `import json, sys
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request
${OPENER}
base = "http://" + sys.argv[1]
def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with opener.open(Request(base + path, data=data, headers={"Content-Type": "application/json"}), timeout=15) as reply: return json.loads(reply.read(8000000))
def job(key):
    try: return ask("/api/jobs/" + key)
    except HTTPError as error:
        if error.code == 404: return None
        raise
def is_placed(key):
    found = ask("/api/v0/placement_groups?filter_keys=name&filter_predicates=%3D&filter_values=" + quote(key))["data"]["result"]["result"]
    return any(group.get("state") == "CREATED" for group in found)
def state(order, found):
    status = found["status"]
    if status == "SUCCEEDED": return "exit 0"
    if status == "STOPPED": return "exit 143"
    if status == "FAILED":
        code = found.get("driver_exit_code")
        return "gone" if code is None else "exit %d" % (code if code >= 0 else 128 - code)
    if status == "RUNNING" and (order["kind"] != "start" or order["count"] == 1 or is_placed(order["key"])): return "begun"
    return "none"
def one(order):
    key, found = order["key"], job(order["key"])
    if found is None:
        if order["kind"] == "stop": return "exit barred"
        if order["kind"] == "look": return "forgotten"
        try: ask("/api/jobs/", order["job"])
        except HTTPError as error:
            if error.code >= 500 or error.code in (401, 403): raise
            return "refused"
        return "none"
    if order["kind"] == "stop" and found["status"] in ("PENDING", "RUNNING"): ask("/api/jobs/" + key + "/stop", {})
    return state(order, found)
try:
    for order in json.load(sys.stdin): print(order["key"], one(order), flush=True)
    print("host 0 0")
except HTTPError as error: print("trouble Ray answers with HTTP", error.code, error.read(2000).decode(errors="replace").strip().split("\\n")[-1][:200])
except Exception as error: print("trouble Ray does not answer:", str(getattr(error, "reason", error)).split("\\n")[0])
`

const ROUND_MS = 120_000

/** The lines: `KEY none | begun | exit CODE | exit barred | gone | forgotten | refused`, `trouble WHY`. Never rejects. */
export async function askForRound(
  wanted: RayWanted,
  orders: readonly RoundOrder[],
  { hosts, signal }: { readonly hosts: OpsHosts; readonly signal: AbortSignal },
): Promise<Round> {
  const { head } = wanted
  const script = `${headScript(wanted)}exec "$py" -c ${quote(PROGRAM)} ${quote(dashboardAddress(wanted))}`
  const stdin = Buffer.from(JSON.stringify(orders.map((order) => requestOf(order, wanted))))
  const result = await hosts.exec(head.host, inside(wanted, head, script, 'whole'), {
    stdin,
    timeoutMs: ROUND_MS,
    signal,
  })
  const { outcome, stdout } = result
  if (outcome.kind === 'exit' && outcome.code === 0) return { kind: 'answer', text: Buffer.from(stdout).toString() }
  return { kind: 'trouble', reason: printable(reasonOfResult(result, formatOutcome)) }
}

function headScript(wanted: RayWanted): string {
  const { environment } = wanted.head
  return `${placeScript(environment)}
[ -n "$py" ] || { echo ${quote(`there is no ray in ${placeName(environment)}`)} >&2; exit 1; }
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
  const go = directory === undefined ? 'cd' : `cd ${quote(directory)}`
  const line = `: muster ${key}
echo ${quote(OUTPUT_MARK)}
export ROCR_VISIBLE_DEVICES="\${CUDA_VISIBLE_DEVICES-}" MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_HOSTS="$(hostname)"
export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
${go} && exec /bin/sh -c ${quote(command)}`
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
exec python -u -c ${quote(GANG_PROGRAM)} ${quote(JSON.stringify(order))}`
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
  const script = `${headScript(wanted)}exec "$py" -c ${quote(LOG_PROGRAM)} ${words.map(quote).join(' ')}`
  return inside(wanted, wanted.head, script)
}
