/** Ray as an engine of the queue: in each round one program on the head starts, checks and stops jobs. Orders may be given twice. */
import { isIPv4 } from 'node:net'
import { printable } from '../../base/printable.ts'
import { readyLine } from '../../base/ready-line.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Declared } from '../kernel/area.ts'
import { type LogPiece, outputOn } from '../kernel/host-output.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { type Share, wantedNfs } from '../nfs/wanted.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import { inside, OPENER, placeScript, pythonScript, tokenScript } from './place.ts'
import { LIST_RAY } from './processes.ts'
import { declaredNodes, parseRoom, type RayRoom } from './room.ts'
import { section } from './section.ts'
import { proveRayStorage } from './storage.ts'
import { dashboardAddress, nodesOf, type RayWanted, wantedRay } from './wanted.ts'

/** An order for Ray; of `spec` only what Ray supports. */
type RayOrder = RayStart | { readonly kind: 'check' | 'stop'; readonly key: string; readonly awaits?: true }
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
    /** It asks Ray for GPUs itself, and its workers inherit the variables of the job. */
    readonly launch?: object
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
  // Ray places by itself and does not know directories of this machine.
  refuses: ['--on', '--per-host', '--preemptible', '--dry-run', '--copy-dir', '--from-env', '--silent', '--strict'],
  // Quoted twice, it stays below what one argument of a program may have.
  mostCommandBytes: 24 * 1024,
  isDeclared: (inventory: Inventory) => sectionOf(inventory, section) !== undefined,
  open(declared: Declared) {
    const wanted = wantedRay(declared)
    return wanted && openRay(wanted, wantedNfs(declared)?.shares)
  },
  takes: ['--needs', '--storage'],
  declaredNodes: (inventory: Inventory) => declaredNodes(inventory),
  nodeHosts: (inventory: Inventory) => declaredNodes(inventory).map(({ host }) => host),
}

export function openRay(wanted: RayWanted, shares: readonly Share[] = []) {
  return {
    locate: async () => `${wanted.head.host} (${wanted.head.address}:${wanted.port})`,
    round: (orders: readonly RayOrder[], hosts: OpsHosts, signal: AbortSignal, wantsRoom = false) =>
      round(wanted, orders, { hosts, signal, wantsRoom }),
    storageProblems: (path: string, nodes: readonly string[], hosts: OpsHosts, signal: AbortSignal) =>
      proveRayStorage(wanted, path, nodes, { hosts, signal, shares }),
    ...outputOn(wanted.head.host, (piece) => logScript(wanted, piece)),
  }
}

/** Never rejects. */
async function round(
  wanted: RayWanted,
  orders: readonly RayOrder[],
  { hosts, signal, wantsRoom }: { readonly hosts: OpsHosts; readonly signal: AbortSignal; readonly wantsRoom: boolean },
) {
  const { head } = wanted
  const requests = [...orders.map((order) => requestOf(order, wanted)), ...(wantsRoom ? [{ kind: 'room' }] : [])]
  const stdin = Buffer.from(JSON.stringify(requests))
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
  const said = new Map<string, Readonly<Record<string, string>>>()
  let trouble: string | undefined = "could not parse the head's answer"
  let room: RayRoom | undefined
  for (const line of text.split('\n')) {
    const [first = '', second = '', third = '', fourth = ''] = line.split(' ')
    const word = WORDS.find((known) => known === second)
    if (asked.has(first)) {
      if (second === 'exit' && /^\d{1,3}$/.test(third)) reports.set(first, Number(third))
      else if (word !== undefined) reports.set(first, word)
      else if (second === 'ready' && isNode(wanted, third)) said.set(first, { ready: '1', node: third, port: fourth })
    } else if (first === ROOM) room = parseRoom(wanted, asked, line.slice(ROOM.length + 1))
    else if (line === END) trouble = undefined
    else if (first === 'trouble') trouble = printable(line.slice('trouble '.length))
    else if (line === DOWN) {
      trouble = `Ray is not running on ${wanted.head.host}. Start it: muster ray up`
      // A GCS with external storage still has its jobs after a restart.
      if (wanted.variables.RAY_REDIS_ADDRESS === undefined)
        for (const { kind, key } of orders) if (kind !== 'start') reports.set(key, 'forgotten')
    }
  }
  return { trouble, reports, said, ...(room === undefined ? {} : { room }) }
}

/** A service can only answer on a node; which address a node announces may be left to its host. */
function isNode(wanted: RayWanted, address: string): boolean {
  return isIPv4(address) && nodesOf(wanted).some(({ ip }) => ip === undefined || ip === address)
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

/** Ray's own is 3 s between TERM and KILL; other jobs have 10. */
const STOP_WAIT = { RAY_JOB_STOP_WAIT_TIME_S: '10' }

function requestOf(order: RayOrder, wanted: RayWanted): object {
  if (order.kind !== 'start') return order
  const { kind, key, environment, spec } = order
  const { bundles: count, request } = spec
  const own = count === 1 ? singleJob(order) : { entrypoint: gangEntrypoint(order, wanted) }
  const variables = {
    ...STOP_WAIT,
    ...(count === 1 && request.gpuCount === 0 && spec.launch === undefined ? { CUDA_VISIBLE_DEVICES: '' } : {}),
    ...environment,
  }
  return { kind, key, count, job: { ...own, submission_id: key, runtime_env: { env_vars: variables } } }
}

/** Of each bundle by Ray's names; `memory` in bytes. */
function amountsOf({ request }: RayStart['spec']) {
  const { cpuMilli, gpuCount, gpuMilli, memoryBytes: memory } = request
  return { CPU: cpuMilli / 1000, GPU: (gpuCount * gpuMilli) / 1000, memory }
}

/** A port of its own for each job, as several may run on a node. */
const FIRST_PORT = 20_000
const PORTS = 10_000

function singleJob({ key, spec }: RayStart): object {
  const { command, directory } = spec
  const bundle = amountsOf(spec)
  const go = directory === undefined ? 'cd' : `cd ${shellQuote(directory)}`
  const line = `: muster ${key}
echo ${shellQuote(OUTPUT_MARK)}
export ROCR_VISIBLE_DEVICES="\${CUDA_VISIBLE_DEVICES-}" MUSTER_RANK=0 MUSTER_WORLD_SIZE=1 MUSTER_HOSTS="$(hostname)"
export RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MUSTER_ADDRESSES=127.0.0.1 MASTER_ADDR=127.0.0.1
export MASTER_PORT=$((${FIRST_PORT} + MUSTER_JOB % ${PORTS}))
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

/** Ray answers with the whole log; where only its end is wanted, the end of a long answer is all that is kept. */
const LOG_PROGRAM = `import json, re, sys
${OPENER}
address, key, mark, rank, start, most = sys.argv[1:]
def ask(path): return opener.open("http://" + address + "/api/jobs/" + key + path, timeout=15)
def get(path):
    with ask(path) as reply: return json.loads(reply.read(64000000))
def end_of(path, kept):
    with ask(path) as reply:
        data = reply.read(kept)
        if len(data) < kept: return json.loads(data)["logs"], False
        for chunk in iter(lambda: reply.read(1000000), b""): data = (data + chunk)[-kept:]
    # A JSON text can be cut after so many bytes without a backslash, and before a backslash that follows another byte.
    begin = re.search(rb"[^\\\\]{7}|[^\\\\](?=\\\\)", data).end()
    return json.loads((b'"' + data[begin:data.rindex(b'"')] + b'"').decode(errors="replace")), True
text, is_cut = (get("/logs")["logs"], False) if int(start) >= 0 else end_of("/logs", 8 * int(most) + 200000)
text = text or ""
if not is_cut:
    # Ray's own line may come after the first ones of the job.
    text = text.replace("Running entrypoint for job " + key + ": " + str(get("").get("entrypoint")) + "\\n", "", 1)
    _, found, text = text.partition(mark + "\\n")
    if not found: text = ""
if rank != "":
    prefix = "[" + rank + "] "
    text = "".join(line[len(prefix):] for line in re.findall("[^\\n]*\\n|[^\\n]+", text) if line.startswith(prefix))
sys.stdout.buffer.write(text.encode(errors="replace")[int(start):][:int(most)])`

function logScript(wanted: RayWanted, { key, rank, fromByte, mostBytes }: LogPiece): string {
  const words = [dashboardAddress(wanted), key, OUTPUT_MARK, String(rank ?? ''), String(fromByte), String(mostBytes)]
  const script = `${pythonScript(wanted, wanted.head)}exec "$py" -c ${shellQuote(LOG_PROGRAM)} ${words.map(shellQuote).join(' ')}`
  return inside(wanted, wanted.head, script)
}

/**
 * The program of a job whose bundles are a placement group of Ray: it makes the group, waits until all of it is placed, runs the
 * command once in each bundle with the variables of its rank, and prints what they print, a line `[RANK] …` each. The first
 * rank that fails ends the others. Its argument is one JSON object.
 */

/** Stands between what Ray says of a job and what the job prints. */
export const OUTPUT_MARK = '--- output ---'

/** When a worker is gone, a guard that is no child of it stops the processes that it started. */
export const GANG_PROGRAM = `import json, os, subprocess, sys, threading
import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
order = json.loads(sys.argv[1])
lock = threading.Lock()
def say(rank, data):
    with lock:
        sys.stdout.buffer.write(b"[%d] " % rank + data + b"\\n")
        sys.stdout.buffer.flush()
class Rank:
    def where(self):
        import socket
        with socket.create_server(("", 0)) as found: port = found.getsockname()[1]
        return ray.util.get_node_ip_address(), port
    def run(self, command, directory, environment, gpu_count):
        devices = ",".join(str(one) for one in ray.get_gpu_ids()) if gpu_count else ""
        whole = {**os.environ, "CUDA_VISIBLE_DEVICES": devices, "ROCR_VISIBLE_DEVICES": devices, **environment}
        inner, outer = os.pipe()
        process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=os.path.expanduser(directory or "~"), env=whole, start_new_session=True)
        guard = 'read x || { kill -TERM -$0 2>/dev/null && sleep 10 && kill -KILL -$0 2>/dev/null; }'
        subprocess.run(["/bin/sh", "-c", 'exec 3<&0; setsid /bin/sh -c "$1" "$0" <&3 3<&- >/dev/null 2>&1 &', str(process.pid), guard], stdin=inner)
        os.close(inner)
        rest = b""
        for chunk in iter(lambda: process.stdout.read1(65536), b""):
            # Ray, too, shows a line for each part of a progress bar.
            *lines, rest = (rest + chunk).replace(b"\\r\\n", b"\\n").replace(b"\\r", b"\\n").split(b"\\n")
            if len(rest) > 65536: lines, rest = lines + [rest], b""
            if lines: yield lines
        if rest: yield [rest]
        code = process.wait()
        os.write(outer, b"x\\n")
        yield code if code >= 0 else 128 - code
ray.init(log_to_driver=False, logging_level="ERROR")
print(order["mark"], flush=True)
group = placement_group([order["bundle"]] * order["count"], strategy=order["strategy"], name=order["key"])
ray.get(group.ready())
def rank(index):
    given = order["bundle"]
    return ray.remote(Rank).options(num_cpus=given.get("CPU", 0), num_gpus=given.get("GPU", 0), memory=given.get("memory") or None, max_restarts=0, scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)).remote()
ranks = [rank(index) for index in range(order["count"])]
places = ray.get([one.where.remote() for one in ranks])
names = [order["names"].get(ip, ip) for ip, _ in places]
ended = threading.Event()
codes = {}
def follow(index):
    environment = {**order["environment"], "MUSTER_RANK": str(index), "MUSTER_WORLD_SIZE": str(len(ranks)), "MUSTER_HOSTS": ",".join(names), "MUSTER_ADDRESSES": ",".join(ip for ip, _ in places), "RANK": str(index), "WORLD_SIZE": str(len(ranks)), "LOCAL_RANK": str(sum(ip == places[index][0] for ip, _ in places[:index])), "MASTER_ADDR": places[0][0], "MASTER_PORT": str(places[0][1])}
    try:
        for reference in ranks[index].run.options(num_returns="streaming").remote(order["command"], order["directory"], environment, order["bundle"].get("GPU", 0)):
            value = ray.get(reference)
            if isinstance(value, int): codes.setdefault(index, value)
            else:
                for line in value: say(index, line)
    except Exception as error:
        if not ended.is_set(): say(index, ("muster: " + str(error).strip().split("\\n")[-1]).encode())
        codes.setdefault(index, 1)
    if codes[index] != 0 or len(codes) == len(ranks): ended.set()
threads = [threading.Thread(target=follow, args=(index,), daemon=True) for index in range(len(ranks))]
for thread in threads: thread.start()
ended.wait()
bad = [code for code in codes.values() if code != 0]
for one in ranks: ray.kill(one)
sys.stdout.flush()
os._exit(bad[0] if bad else 0)
`

/**
 * The program that carries out a round of orders on the head, through the dashboard's REST interface, as loading Ray's client
 * takes seconds. It reads a JSON list of orders from stdin and prints one line for each that it knows something about:
 * `KEY exit CODE` or `KEY WORD` (words: EngineReport of the queue), and at the end `end`, or `trouble WHY`.
 * https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html
 */

/** Exit code if nothing listens at the dashboard or the GCS. */
export const NOTHING_LISTENS = 7
/** The last line of a whole answer. */
export const END = 'end'
/** Begins the line about nodes: a JSON object. */
const ROOM = 'room'
/** A longer one is left out, so that the whole answer is below what is kept of a script's output. */
const MOST_ROOM = 500_000
/** The limit for all orders together; the rest is asked again in the next round. */
const BUDGET_S = 75
const REQUEST_S = 15
/** Loading Ray takes seconds, and much longer on a busy host. */
const KILL_S = 40

/**
 * Ray's own way to stop a job asks its supervisor, an actor that takes what the job takes. One that waits for resources hears
 * nothing until it has them, so it is killed; Ray then fails the job. Nothing of the job has begun by then, and if it did in
 * that moment, it ends with its supervisor. The names are those of ray/dashboard/modules/job/common.py.
 */
const KILL_SUPERVISORS = `import ray, sys
ray.init(address=sys.argv[1], namespace="SUPERVISOR_ACTOR_RAY_NAMESPACE", log_to_driver=False, logging_level="ERROR")
for key in sys.argv[2:]:
    try: ray.kill(ray.get_actor("_ray_internal_job_actor_" + key))
    except ValueError: pass
`

/** Its arguments: the dashboard, the port of the GCS, and its address where that is known. */
export const ROUND_PROGRAM = `import json, re, socket, subprocess, sys, time
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request
${OPENER}
dashboard, port, ip = sys.argv[1:]
until = time.monotonic() + ${BUDGET_S}
KILL = ${JSON.stringify(KILL_SUPERVISORS)}
class RoundEnd(Exception): pass
def text_of(error): return error.read(2000).decode(errors="replace").strip()
def words_of(error):
    if isinstance(error, HTTPError): return "Ray answers with HTTP %d %s" % (error.code, text_of(error).split("\\n")[-1][:200])
    return "Ray does not answer: " + str(getattr(error, "reason", error)).split("\\n")[0][:200]
def ask(path, body=None, timeout=${REQUEST_S}):
    data = None if body is None else json.dumps(body).encode()
    try:
        with opener.open(Request("http://" + dashboard + path, data=data, headers={"Content-Type": "application/json"}), timeout=timeout) as reply: return json.loads(reply.read(8000000))
    except HTTPError as error:
        if error.code in (401, 403): raise RoundEnd(words_of(error))
        raise
def is_closed(host, port):
    try: socket.create_connection((host, int(port)), 2).close()
    except ConnectionRefusedError: return True
    except OSError: pass
    return False
def check():
    try: ask("/api/version", timeout=5)
    except RoundEnd: raise
    except Exception as error:
        if isinstance(getattr(error, "reason", error), ConnectionRefusedError) and all(is_closed(host, port) for host in ("127.0.0.1", ip) if host): sys.exit(${NOTHING_LISTENS})
        raise RoundEnd(words_of(error))
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
    if status == "STOPPED": return "cancelled"
    if status == "FAILED":
        code = found.get("driver_exit_code")
        if code is not None: return "exit %d" % (code if code >= 0 else 128 - code)
        # Ray gives up on what has waited for its resources for a quarter of an hour.
        return "unable" if "failed to start within" in str(found.get("message")) else "lost"
    if status == "RUNNING" and (order["kind"] != "start" or order["count"] == 1 or is_placed(order["key"])): return "running"
    return "waiting"
def submit(order):
    try: ask("/api/jobs/", order["job"])
    except HTTPError as error:
        # Of an error of its agent Ray tells the code in the text.
        if error.code < 500: return "refused"
        text, found = text_of(error), job(order["key"])
        if found is not None: return state(order, found)
        if "failed with status code 4" in text: return "refused"
        raise
    return "waiting"
waiting, jobs = [], {}
def tell_ready(key):
    # Without an answer it is asked again in the next round.
    try: found = re.search(r"^${readyLine('([0-9.]{7,15})', '([0-9]{1,5})')}$", ask("/api/jobs/" + key + "/logs")["logs"] or "", re.M)
    except RoundEnd: raise
    except Exception: return
    if found: print(key, "ready", *found.groups(), flush=True)
def one(order):
    key, found = order["key"], job(order["key"])
    if found and found.get("job_id"): jobs[found["job_id"]] = key
    if found is None: return {"stop": "barred", "check": "forgotten"}.get(order["kind"]) or submit(order)
    if order["kind"] == "stop" and found["status"] in ("PENDING", "RUNNING"):
        if found["status"] == "PENDING": waiting.append(key)
        ask("/api/jobs/" + key + "/stop", {})
    if found["status"] == "RUNNING" and order.get("awaits"): tell_ready(key)
    return state(order, found)
def head_ip():
    nodes = ask("/api/v0/nodes?detail=1&limit=1000")["data"]["result"]["result"]
    return next(node["node_ip"] for node in nodes if node.get("is_head_node") and node.get("state") == "ALIVE")
def end_waiting():
    if not waiting: return
    place = head_ip() + ":" + port
    subprocess.run([sys.executable, "-c", KILL, place, *waiting], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=${KILL_S})
def room():
    body = ask("/nodes?view=summary")["data"]
    nodes, logical, held, taken = [], body.get("nodeLogicalResources", {}), {}, {}
    for group in ask("/api/v0/placement_groups?detail=1&limit=1000")["data"]["result"]["result"]:
        if group.get("state") == "REMOVED": continue
        key, bundles = jobs.get(group.get("creator_job_id")), [one for one in group.get("bundles") or [] if one.get("node_id")]
        if key: taken[key] = taken.get(key, 0) + len(bundles)
        for one in bundles:
            own = held.setdefault(one["node_id"], {})
            for name, amount in (one.get("unit_resources") or {}).items(): own[name] = own.get(name, 0) + amount
    for node in body["summary"]:
        own = node.get("raylet", {})
        if own.get("state") == "ALIVE": nodes.append({"ip": own.get("nodeManagerAddress") or node.get("ip"), "text": logical.get(own.get("nodeId"), ""), "held": held.get(own.get("nodeId"), {})})
    text = json.dumps({"nodes": nodes, "taken": taken})
    if len(text) < ${MOST_ROOM}: print("${ROOM}", text)
def each(orders):
    for order in orders:
        if time.monotonic() > until: return
        if order["kind"] == "room":
            # Without it jobs that need it wait.
            try: room()
            except RoundEnd: raise
            except Exception: pass
            continue
        # What goes wrong with one says nothing about the others, unless Ray itself is gone.
        try: print(order["key"], one(order), flush=True)
        except RoundEnd: raise
        except Exception: check()
try:
    check()
    each(json.load(sys.stdin))
    try: end_waiting()
    except RoundEnd: raise
    except Exception: pass
    print("${END}")
except RoundEnd as end: print("trouble", end)
`
