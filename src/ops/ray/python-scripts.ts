/** Small Python programs that facts of Ray are asked with: Python is there wherever Ray is, curl and ss are not. Only read. */
import { quote } from '../kernel/finding.ts'
import { OPENER } from './token.ts'

/** Versions and what the dashboard needs, without loading Ray: a tenth of a second instead of a whole one. */
const INSTALLED = `import json, sys
from importlib.metadata import version
from importlib.util import find_spec
def has(name):
    try: return find_spec(name).origin is not None
    except Exception: return False
try: ray = version("ray")
except Exception: ray = ""
needed = ["aiohttp", "aiohttp_cors", "grpc", "opencensus", "prometheus_client", "pydantic"]
print(json.dumps({"ray": ray, "python": ".".join(map(str, sys.version_info[:3])), "missing": [n for n in needed if not has(n)]}))`

/** Some questions to the dashboard; no proxy stands between a head and itself. */
const CLUSTER = `import json, sys
from urllib.error import HTTPError
${OPENER}
base = "http://" + sys.argv[1]
answered = False
def get(path):
    with opener.open(base + path, timeout=2) as reply:
        return json.loads(reply.read(8000000))
try:
    out = {"version": get("/api/version")}
    answered = True
    out["nodes"] = get("/api/v0/nodes?detail=1&limit=1000")
    try: out["metadata"] = get("/api/v0/cluster_metadata")
    except Exception: pass
    try: out["authentication"] = get("/api/authentication_mode")
    except Exception: pass
except HTTPError as error:
    why = {401: "it asks for a token that this login has not", 403: "it takes another token than this login has"}
    out = {"error": why.get(error.code, "HTTP " + str(error.code)), "answered": True}
except ValueError: out = {"error": "its answer is not JSON", "answered": True}
except Exception as error: out = {"error": str(getattr(error, "reason", error)), "answered": answered}
print(json.dumps(out))`

/**
 * Tries TCP to many places at once, and prints the numbers of those to which no connection came about, with a letter for the
 * reason: refused, unknown name, silence, no route.
 */
const REACH = `import socket, sys, threading
lost = {}
def attempt(number, host, port):
    try: socket.create_connection((host, int(port)), 2).close()
    except ConnectionRefusedError: lost[number] = "r"
    except socket.gaierror: lost[number] = "u"
    except (socket.timeout, TimeoutError): lost[number] = "s"
    except Exception: lost[number] = "n"
threads = []
for number, place in enumerate(sys.argv[1:]):
    host, _, port = place.rpartition(":")
    threads.append(threading.Thread(target=attempt, args=(number, host, port), daemon=True))
for thread in threads: thread.start()
for thread in threads: thread.join(2.5)
print(" ".join("%d:%s" % pair for pair in sorted(lost.items())) + " end")`

export const installedProgram = `"$py" -c ${quote(INSTALLED)}`

export function clusterProgram(dashboard: string): string {
  return `"$py" -c ${quote(CLUSTER)} ${quote(dashboard)}`
}

export function reachProgram(places: readonly string[]): string {
  return `"$py" -c ${quote(REACH)} ${places.map(quote).join(' ')}`
}
