/**
 * The program that carries out a round of orders on the head, through the dashboard's REST interface, as loading Ray's client
 * takes seconds. It reads a JSON list of orders from stdin and prints one line for each that it knows something about:
 * `KEY exit CODE` or `KEY WORD` (words: EngineReport of the queue), and at the end `end`, or `trouble WHY`.
 * https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html
 */
import { OPENER } from './token.ts'

/** Exit code if nothing listens at the dashboard or the GCS. */
export const NOTHING_LISTENS = 7
/** The last line of a whole answer. */
export const END = 'end'
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
export const ROUND_PROGRAM = `import json, socket, subprocess, sys, time
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
waiting = []
def one(order):
    key, found = order["key"], job(order["key"])
    if found is None: return {"stop": "barred", "check": "forgotten"}.get(order["kind"]) or submit(order)
    if order["kind"] == "stop" and found["status"] in ("PENDING", "RUNNING"):
        if found["status"] == "PENDING": waiting.append(key)
        ask("/api/jobs/" + key + "/stop", {})
    return state(order, found)
def head_ip():
    nodes = ask("/api/v0/nodes?detail=1&limit=1000")["data"]["result"]["result"]
    return next(node["node_ip"] for node in nodes if node.get("is_head_node") and node.get("state") == "ALIVE")
def end_waiting():
    if not waiting: return
    place = head_ip() + ":" + port
    subprocess.run([sys.executable, "-c", KILL, place, *waiting], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=${KILL_S})
def each(orders):
    for order in orders:
        if time.monotonic() > until: return
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
