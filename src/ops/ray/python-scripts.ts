/**
 * Small Python programs that facts of Ray are asked with: Python is there wherever Ray is, curl and ss are not. Only read. All
 * hosts run them at once, and a head while it starts: they load little.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { TOKEN } from './token.ts'

/**
 * Versions and what the dashboard needs, without loading Ray, which takes a second, and without asking Python's packages, which
 * takes a tenth. What lies in the working directory counts for no program of Ray.
 */
const INSTALLED = `import sys
sys.path[:] = filter(None, sys.path)
import os
from importlib.util import find_spec
def has(name):
    try: return find_spec(name).origin is not None
    except Exception: return False
def version():
    for place in sys.path:
        try: names = os.listdir(place)
        except OSError: continue
        for name in names:
            if not (name.startswith("ray-") and name.endswith(".dist-info")): continue
            with open(os.path.join(place, name, "METADATA"), encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if line.startswith("Version:"): return line[8:].strip()
    from importlib.metadata import version
    return version("ray")
try: ray = version()
except Exception: ray = ""
needed = ["aiohttp", "aiohttp_cors", "grpc", "opencensus", "prometheus_client", "pydantic"]
print(" ".join(["ray=" + ray, "python=" + ".".join(map(str, sys.version_info[:3]))] + [n for n in needed if not has(n)]))`

/** Some questions to the dashboard; no proxy stands between a head and itself. */
const CLUSTER = `import json, sys
from http.client import HTTPConnection
${TOKEN}
way = HTTPConnection(sys.argv[1], timeout=2)
answered = False
class Refused(Exception): pass
def get(path):
    try:
        way.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
        reply = way.getresponse()
        body = reply.read(8000000)
    except Exception:
        way.close()
        raise
    if reply.status != 200: raise Refused(reply.status)
    return json.loads(body)
try:
    out = {"version": get("/api/version")}
    answered = True
    out["nodes"] = get("/api/v0/nodes?detail=1&limit=1000")
    try: out["metadata"] = get("/api/v0/cluster_metadata")
    except Exception: pass
    try: out["authentication"] = get("/api/authentication_mode")
    except Exception: pass
except Refused as error:
    why = {401: "it asks for a token that this login has not", 403: "it takes another token than this login has"}
    out = {"error": why.get(error.args[0], "HTTP %d" % error.args[0]), "answered": True}
except ValueError: out = {"error": "its answer is not JSON", "answered": True}
except Exception as error: out = {"error": str(error), "answered": answered}
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

/** Without the packages of the environment, which these do not need. */
const BARE = '"$py" -I -S -c'

export const installedProgram = `"$py" -c ${shellQuote(INSTALLED)}`

export function clusterProgram(dashboard: string): string {
  return `${BARE} ${shellQuote(CLUSTER)} ${shellQuote(dashboard)}`
}

export function reachProgram(places: readonly string[]): string {
  return `${BARE} ${shellQuote(REACH)} ${places.map(shellQuote).join(' ')}`
}
