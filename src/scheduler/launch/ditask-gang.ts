/**
 * ditask in the bundles of a gang that an engine starts: where they are is known only then, so a program in each bundle writes the
 * addresses of all workers. DI-engine's own parser for Slurm gets names such as n[08-11] or gpu5,n1 wrong.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { type GangOnEngine, HOST_ROLE } from './launcher.ts'
import { findPython } from './torchrun.ts'

/** A line for sh that each bundle runs. */
export function ditaskInGang({ command, spec, roles }: GangOnEngine): string {
  const { topology = 'star', workers = '1', redis = '', ditask: program = 'ditask' } = spec.options
  const labels = roles.flatMap(({ name, count }) => Array<string>(count).fill(name === HOST_ROLE ? '' : name))
  const words = [program, workers, topology, spec.ports.join('-'), redis, labels.join(), command]
  return `${findPython(program)}
exec "$MUSTER_PYTHON" -c ${shellQuote(PROGRAM)} ${words.map(shellQuote).join(' ')}`
}

/** Names of pods are known some time after the pods; names of hosts always are. */
const POD_NAMES_S = 120
const NAMES_S = 10
const STOP_S = 5

/**
 * Starts the workers of a bundle, and fails it as soon as one says that it could not listen or dial (a refused connection is tried
 * again), when one ends without having listened, or is killed. In pods ditask reads DI_NODES and DI_RANK itself, unless pods share
 * an address. It has no single quotes: it is quoted several times.
 */
const PROGRAM = `import ipaddress, os, re, signal, socket, subprocess, sys, threading, time

program, each, topology, ports, redis, labels, command = sys.argv[1:]
each = int(each)
env = os.environ
rank, size = int(env["RANK"]), int(env["WORLD_SIZE"])
names = (env.get("MUSTER_ADDRESSES") or env["MUSTER_HOSTS"]).split(",")
hosts = env.get("MUSTER_HOSTS", "").split(",")
in_pod = "JOB_COMPLETION_INDEX" in env
lock = threading.Lock()
children = []
heard = []
state = {"code": 0, "last": ""}

def fail(why, code=1):
    with lock:
        if state["code"]:
            return
        where = " on " + hosts[rank] if len(hosts) == size else ""
        why = "rank %d%s: %s" % (rank, where, why[:300])
        print("muster:", why, file=sys.stderr, flush=True)
        try:
            with open(env["MUSTER_WHY"], "a") as file:
                if file.tell() == 0:
                    file.write(why + "\\n")
        except (KeyError, OSError):
            pass
        # Last: the main thread ends the program as soon as there is a code.
        state["code"] = code
    stop()

def stop(number=signal.SIGTERM):
    for child in children:
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass

def interrupt(number, _):
    state["code"] = state["code"] or 128 + number

def refuse(why):
    fail(why)
    sys.exit(1)

def resolve(name):
    end = time.monotonic() + (${POD_NAMES_S} if in_pod else ${NAMES_S})
    while True:
        try:
            return socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]
        except (OSError, UnicodeError) as error:
            if time.monotonic() > end:
                refuse("cannot resolve %s: %s" % (name, error))
        if state["code"]:
            sys.exit(state["code"])
        time.sleep(0.5)

def route(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))
            return probe.getsockname()[0]
        except OSError as error:
            refuse("no route to %s: %s" % (address, error))

def bus():
    if len(names) != size:
        refuse("the engine told %d addresses, not %d" % (len(names), size))
    found = {}
    for name in names:
        if name not in found:
            found[name] = resolve(name)
    own = found[names[rank]]
    others = [found[name] for name in names if not ipaddress.ip_address(found[name]).is_loopback]
    # Often a host resolves its own name to itself alone.
    if others and ipaddress.ip_address(own).is_loopback:
        own = route(others[0])
    found[names[rank]] = own
    return [found[name] for name in names]

def workers():
    total = size * each
    if redis:
        host, port = redis.rsplit(":", 1)
        words = ["--mq-type", "redis", "--redis-host", host, "--redis-port", port]
        return [["--parallel-workers", "1", "--node-ids", str(rank * each + i)] + words for i in range(each)]
    nodes = bus()
    first, last = map(int, ports.split("-"))
    room = last - first + 1 - total
    if room < 0:
        refuse("%d workers need as many ports; ports of launch in hosts.yaml has %d" % (total, room + total))
    # Jobs that follow each other have other ports.
    first += int(env.get("MASTER_PORT", "0")) * total % (room + 1)
    own = nodes[rank]
    is_known = in_pod and len(set(nodes)) == size
    begin = first if is_known else first + rank * each
    for port in range(begin, begin + each):
        try:
            socket.create_server((own, port), family=socket.AF_INET6 if ":" in own else socket.AF_INET).close()
        except OSError as error:
            refuse("cannot listen at %s port %d: %s" % (own, port, os.strerror(error.errno)))
    nodes = ["[%s]" % node if ":" in node else node for node in nodes]
    env.update(DI_RANK=str(rank), DI_NODES=",".join(nodes))
    if is_known:
        words = ["--platform", "k8s", "--topology", topology, "--parallel-workers", str(each), "--ports", str(first)]
        return [words]
    links = ["tcp://%s:%d" % (nodes[i // each], first + i) for i in range(total)]
    lines = []
    for i in range(rank * each, rank * each + each):
        peers = links[: min(i, 1)] if topology == "star" else links[:i] if topology == "mesh" else []
        words = ["--parallel-workers", "1", "--node-ids", str(i), "--topology", "alone"]
        words += ["--address", nodes[rank], "--ports", str(first + i)]
        lines.append(words + (["--attach-to", ",".join(peers)] if peers else []))
    return lines

def watch(pipe):
    for line in iter(lambda: pipe.readline(65536), b""):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        text = "".join(c if c.isprintable() else " " for c in line[:600].decode(errors="replace")).strip()
        if "NNG listen on" in text:
            heard.append(1)
        if re.match(r"pynng\\.exceptions\\.", text) and "ConnectionRefused" not in text:
            fail("BusError: this worker hears no other one: " + text)
        if re.match(r"[A-Za-z_][\\w.]*(Error|Exception|Interrupt|Exit|Failure)(:|$)", text):
            state["last"] = text

def attend(child, watcher):
    code = child.wait()
    # What it started may still hold the pipe.
    watcher.join(${STOP_S})
    if code < 0:
        fail("its worker was killed by signal %d" % -code, 128 - code)
    elif code:
        fail(state["last"] or "its worker failed: exit %d" % code, code)

for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
    signal.signal(number, interrupt)
label = labels.split(",")[rank]
lines = workers()
attending = []
for i, words in enumerate(lines):
    if label:
        words += ["--labels", label]
    own = dict(env, PYTHONUNBUFFERED=env.get("PYTHONUNBUFFERED", "1"))
    if len(lines) == each:
        own.update(RANK=str(rank * each + i), WORLD_SIZE=str(size * each), LOCAL_RANK=str(i))
    line = "program=$1; shift; exec \\"$program\\" \\"$@\\" " + command
    child = subprocess.Popen(["sh", "-c", line, "sh", program] + words, env=own, stderr=subprocess.PIPE, start_new_session=True)
    children.append(child)
    watcher = threading.Thread(target=watch, args=(child.stderr,), daemon=True)
    watcher.start()
    attending.append(threading.Thread(target=attend, args=(child, watcher), daemon=True))
for thread in attending:
    thread.start()
while not state["code"] and any(thread.is_alive() for thread in attending):
    for thread in attending:
        thread.join(0.2)
if state["code"]:
    stop()
    end = time.monotonic() + ${STOP_S}
    while time.monotonic() < end and any(child.poll() is None for child in children):
        time.sleep(0.1)
    stop(signal.SIGKILL)
elif not redis and len(heard) < each:
    fail("BusError: this worker ended without listening")
sys.stderr.flush()
os._exit(state["code"])
`
