/**
 * The program on the head that reports what a cluster does: a line of JSON each round, and empty lines between them as a sign of
 * life. A dead GCS or dashboard is reported within ROUND_S + 2 × LOOK_S, however long the interval is: the current round, the time
 * to the next check of the sockets, and that check.
 */
import { GUARD } from './inside.ts'
import { OPENER } from './token.ts'

/** All that a round asks. */
export const ROUND_S = 5
/** The interval between checks of the listening sockets, and the limit for one check. */
export const LOOK_S = 2

/** Of a node's summary only what is read, as that of a large cluster has megabytes. */
export const WATCH_PROGRAM = `import json, socket, sys, time
${OPENER}
${GUARD}
guard()
dashboard, interval, rounds, gcs = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
raylet, until = "", 0
def left(): return max(0.2, until - time.monotonic())
def reach(what, place):
    if not place: return
    host, _, port = place.rpartition(":")
    try: socket.create_connection((host.strip("[]"), int(port)), min(${LOOK_S}, left())).close()
    except OSError as error: raise Exception("its " + what + " does not answer at " + place + ": " + str(error))
def get(path):
    with opener.open("http://" + dashboard + path, timeout=left()) as reply: return json.loads(reply.read(64000000))
def nodes():
    global raylet
    body, raylet = get("/nodes?view=summary"), ""
    for node in body["data"]["summary"]:
        own = node.get("raylet", {})
        # A dashboard tells what it knew for seconds after the raylet has gone.
        if own.get("isHeadNode") and own.get("state") == "ALIVE" and own.get("nodeManagerPort"): raylet = own.get("nodeManagerAddress", "") + ":" + str(own["nodeManagerPort"])
        for key in list(node):
            if key not in ("ip", "cpu", "mem", "gpus", "raylet"): del node[key]
        for key in ("coreWorkersStats", "resourcesTotal", "labels"): own.pop(key, None)
        node["gpus"] = [{"utilizationGpu": gpu.get("utilizationGpu")} for gpu in node.get("gpus") or []]
    return body
def actors():
    body = get("/api/v0/actors?limit=10000")
    for actor in body["data"]["result"]["result"]:
        for key in list(actor):
            if key != "state": del actor[key]
    return body
def look():
    global until
    until = time.monotonic() + ${ROUND_S}
    out = {}
    try:
        reach("GCS", gcs)
        found = nodes()
        reach("raylet", raylet)
        out["nodes"] = found
    except Exception as error: out["error"] = str(getattr(error, "reason", error))
    else:
        for name, ask in (("groups", lambda: get("/api/v0/placement_groups?detail=1&limit=1000")), ("actors", actors), ("status", lambda: get("/api/cluster_status?format=1"))):
            try: out[name] = ask()
            except Exception: pass
    return out
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
def pause(is_well):
    global until
    end = time.monotonic() + interval
    while True:
        time.sleep(max(0, min(${LOOK_S}, end - time.monotonic())))
        if time.monotonic() >= end: return
        until = time.monotonic() + ${LOOK_S}
        try:
            for what, place in (("GCS", gcs), ("dashboard", dashboard), ("raylet", raylet)): reach(what, place)
        except Exception as error:
            say(json.dumps({"error": str(error)}) if is_well else "")
            is_well = False
        else: say("")
while True:
    out = look()
    say(json.dumps(out))
    rounds -= 1
    if rounds == 0: break
    pause("nodes" in out)
`
