"""Runs the program of `watch` in a time that only passes where it would wait, on a head of which something is gone from a moment on.

Reads a JSON object: the program, the cases. Prints for each how long it took to tell, and the longest time without a sign of life.
"""
import io, json, socket, sys, time, urllib.request
from urllib.error import URLError

PORTS = {"gcs": 6333, "dashboard": 8265, "raylet": 40001}
GOES_ON_S = 30


class Over(BaseException):
    pass


class World:
    now = 0.0
    case = {}

    def spend(self, seconds):
        self.now += seconds
        if self.now > self.case["goneAt"] + GOES_ON_S: raise Over

    def asks(self, name, timeout, error):
        case = self.case
        if self.now < case["goneAt"] or name not in case["gone"]: return
        if case["hangs"]: self.spend(timeout)
        raise error("timed out" if case["hangs"] else "refused")


world = World()


class Connection:
    def close(self): pass


def connect(address, timeout):
    name = next(name for name, port in PORTS.items() if port == address[1])
    world.asks(name, timeout, OSError)
    return Connection()


class Opener:
    addheaders = []

    def open(self, url, timeout):
        world.asks("dashboard", timeout, URLError)
        # It knows the nodes by heart, and has to ask the GCS for the rest.
        if "/nodes?" not in url and "gcs" in world.case["gone"] and world.now >= world.case["goneAt"]:
            world.spend(timeout)
            raise URLError("timed out")
        lag = world.case["lagS"]
        world.spend(min(lag, timeout))
        if lag > timeout: raise URLError("timed out")
        head = {"isHeadNode": True, "state": "ALIVE", "nodeManagerAddress": "10.0.0.1", "nodeManagerPort": PORTS["raylet"]}
        return io.BytesIO(json.dumps({"data": {"summary": [{"raylet": head}], "result": {"result": []}}}).encode())


class Said:
    lines = []

    def write(self, text): self.lines.append((world.now, text.strip()))

    def flush(self): pass


order = json.load(sys.stdin)
time.monotonic, time.sleep = lambda: world.now, world.spend
socket.create_connection = connect
urllib.request.build_opener = lambda *_: Opener()
stdout, sys.stdout = sys.stdout, Said()
results = []
for case in order["cases"]:
    world.now, world.case, Said.lines = 0.0, case, []
    sys.argv = ["-c", "127.0.0.1:8265", str(case["intervalS"]), "0", "10.0.0.1:6333"]
    try: exec(order["program"], {})
    except Over: pass
    told = [at for at, text in Said.lines if at >= case["goneAt"] and '"error"' in text]
    early = [at for at, text in Said.lines if at < case["goneAt"] and '"error"' in text]
    times = [0.0] + [at for at, _ in Said.lines]
    results.append({"toldS": told[0] - case["goneAt"] if told else GOES_ON_S, "early": len(early), "longestSilenceS": max(b - a for a, b in zip(times, times[1:]))})
stdout.write(json.dumps(results))
