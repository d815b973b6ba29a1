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
            *lines, rest = (rest + chunk).split(b"\\n")
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
    environment = {**order["environment"], "MUSTER_RANK": str(index), "MUSTER_WORLD_SIZE": str(len(ranks)), "MUSTER_HOSTS": ",".join(names), "RANK": str(index), "WORLD_SIZE": str(len(ranks)), "LOCAL_RANK": str(sum(ip == places[index][0] for ip, _ in places[:index])), "MASTER_ADDR": places[0][0], "MASTER_PORT": str(places[0][1])}
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
