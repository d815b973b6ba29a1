/** Reads the directory of a Ray Tune experiment (needs Python alone, and unpickles nothing), and changes nothing there. */

/** As READ_OPTUNA_PROGRAM. Where nothing has changed since `want.since`, it only says so. */
export const READ_EXPERIMENT_PROGRAM = `import hashlib, json, os, stat, sys
want = json.loads(sys.stdin.buffer.read(8000000))
place, since, metrics, most_trials, most_bytes = os.path.expanduser(want["url"]), want.get("since"), want["metrics"], want["trials"], want["bytes"]
known = set()
for first, last in want["done"]: known.update(range(first, min(last, most_trials) + 1))
MOST_STATE, MOST_RESULTS, MOST_LINE, MOST_STEPS, MOST_PARAMETERS, MOST_TEXT = 512 << 20, 16 << 20, 1 << 20, 2000, 64, 200
# What Ray itself reports beside what a trial does.
OWN = {"timestamp", "checkpoint_dir_name", "should_checkpoint", "done", "training_iteration", "trial_id", "date", "time_this_iter_s", "time_total_s", "pid", "hostname", "node_ip", "config", "time_since_restore", "iterations_since_restore", "experiment_tag", "timesteps_total", "episodes_total"}
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
except Exception: pass
size = 0
def say(line):
    global size
    text = json.dumps(line) + "\\n"
    size += len(text)
    sys.stdout.write(text)
def leave():
    sys.stdout.flush()
    os._exit(0)
def fail(kind, message=""):
    say({"op": "error", "kind": kind, "message": str(message)[:500]})
    leave()
def opened(path):
    """A file that is one: no pipe, and no link out of the directory."""
    real = os.path.realpath(path)
    if not real.startswith(os.path.realpath(place) + os.sep): raise OSError("it leads out of the directory")
    handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(handle).st_mode): return os.fdopen(handle, "rb")
    os.close(handle)
    raise OSError("no file")
def number_of(value):
    return repr(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
def value_of(value):
    if value is None or isinstance(value, bool): return [str(value)]
    if isinstance(value, int): return [str(value), 0] if abs(value) < 10 ** 15 else [repr(float(value)), 1]
    if isinstance(value, float): return [repr(value), 1]
    return [(value if isinstance(value, str) else json.dumps(value))[:MOST_TEXT]]
def flat(config, path="", depth=0):
    found = {}
    for name, value in config.items() if isinstance(config, dict) else []:
        own = (path + "/" if path else "") + str(name)
        if isinstance(value, dict) and value and depth < 8 and "_type" not in value: found.update(flat(value, own, depth + 1))
        elif not (isinstance(value, dict) and "_type" in value): found[own[:MOST_TEXT]] = value_of(value)
        if len(found) > 10 * MOST_PARAMETERS: break
    return found
def millis(seconds):
    return int(seconds * 1000) if isinstance(seconds, (int, float)) and 0 < seconds < 1e12 else None
def path_in(config, path):
    for name in path.split("/"):
        if not isinstance(config, dict) or name not in config: return None
        config = config[name]
    return config
def metric_in(line, name):
    return number_of(line[name] if name in line else path_in(line, name))
def lines_of(directory):
    """Of result.json, else of progress.csv, the latest."""
    try:
        with opened(os.path.join(directory, "result.json")) as file:
            bytes_of = os.fstat(file.fileno()).st_size
            if bytes_of > MOST_RESULTS:
                file.seek(bytes_of - MOST_RESULTS)
                file.readline(MOST_LINE)
            while True:
                line = file.readline(MOST_LINE)
                if not line: return
                try: value = json.loads(line)
                except (ValueError, RecursionError): continue
                if isinstance(value, dict): yield value
    except OSError: pass
    try:
        import csv, io
        with opened(os.path.join(directory, "progress.csv")) as file:
            text = file.read(MOST_RESULTS).decode("utf-8", "replace")
    except OSError: return
    for row in csv.DictReader(io.StringIO(text)):
        line = {}
        for name, value in row.items():
            try: line[name] = int(value) if name == "training_iteration" else float(value)
            except (TypeError, ValueError): line[name] = value
        yield line
def thinned(steps):
    return steps if len(steps) <= MOST_STEPS else steps[:: -(-len(steps) // MOST_STEPS)] + steps[-1:]
def runs_of(directory, names):
    """Stretches of results with the same configuration: a trial of a population is given another one from time to time."""
    runs, before = [], None
    for line in lines_of(directory):
        key = json.dumps(line.get("config"), sort_keys=True) if "config" in line else before
        if not runs or key != before:
            if len(runs) >= 1000: break
            runs.append({"params": flat(line.get("config")), "steps": [], "values": [], "started": None, "ended": None, "host": None})
        before, run = key, runs[-1]
        step = line.get("training_iteration")
        if names and isinstance(step, int):
            value = metric_in(line, names[0])
            if value is not None: run["steps"].append([step, value])
        run["values"] = [metric_in(line, name) for name in names]
        at, took = line.get("timestamp"), line.get("time_this_iter_s")
        run["ended"] = millis(at) or run["ended"]
        if run["started"] is None and millis(at): run["started"] = millis(at - (took if isinstance(took, (int, float)) else 0))
        run["host"] = str(line.get("hostname") or "")[:MOST_TEXT] or None
    for run in runs: run["steps"] = thinned(run["steps"])
    return runs
def counter(tag, trial):
    head = str(tag).split("_")[0]
    if head.isdigit(): return int(head[:15])
    tail = str(trial).rpartition("_")[2]
    return int(tail[:15]) if tail.isdigit() else 10 ** 15

def read():
    try: states = sorted(name for name in os.listdir(place) if name.startswith("experiment_state-") and name.endswith(".json"))
    except OSError as error: fail("no-file", error)
    if not states: fail("no-storage")
    try:
        with opened(os.path.join(place, states[-1])) as file:
            about = os.fstat(file.fileno())
            if about.st_size > MOST_STATE: fail("too-large")
            state = json.loads(file.read(MOST_STATE + 1))
    except (OSError, ValueError, RecursionError) as error: fail("failed", error)
    found = []
    for entry in (state.get("trial_data") or state.get("checkpoints") or [])[: 10 * most_trials]:
        pair = entry if isinstance(entry, list) else [entry]
        try:
            trial = json.loads(pair[0]) if isinstance(pair[0], str) else pair[0]
            running = json.loads(pair[1]) if len(pair) > 1 and isinstance(pair[1], str) else trial
            tag = str(trial.get("experiment_tag") or "")[:MOST_TEXT]
            directory = str(trial.get("relative_logdir") or os.path.basename(str(trial.get("logdir") or "")))
            found.append({"key": (counter(tag, trial.get("trial_id")), str(trial.get("trial_id"))), "trial": trial, "running": running, "tag": tag, "directory": os.path.join(place, directory)})
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError): continue
    found.sort(key=lambda one: one["key"])
    population = []
    try:
        with opened(os.path.join(place, "pbt_global.txt")) as file:
            for line in file.read(MOST_RESULTS).split(b"\\n")[:100000]:
                try: target, source, at, source_at, old, new = json.loads(line)
                except (ValueError, TypeError, RecursionError): continue
                population.append([str(target)[:MOST_TEXT], str(source)[:MOST_TEXT], at if isinstance(at, int) else None, source_at if isinstance(source_at, int) else None, flat(new)])
    except OSError: pass
    sign = [states[-1], about.st_mtime_ns, len(population)]
    for one in found[:most_trials]:
        if one["trial"].get("status") in ("TERMINATED", "ERROR"): continue
        try:
            result = os.stat(os.path.join(one["directory"], "result.json"))
            sign.append([result.st_size, result.st_mtime_ns])
        except OSError: sign.append(None)
    sign = hashlib.sha256(json.dumps(sign).encode()).hexdigest()
    if sign == since:
        say({"op": "same"})
        leave()
    names = metrics
    if not names:
        own = (state.get("runner_data") or {}).get("_metric")
        if isinstance(own, str) and own != "_default_anonymous_metric": names = [own[:MOST_TEXT]]
    if not names:
        for one in found:
            last = one["running"].get("last_result")
            names = [name[:MOST_TEXT] for name, value in (last if isinstance(last, dict) else {}).items() if name not in OWN and number_of(value) is not None][:1]
            if names: break
    say({"op": "study", "name": os.path.basename(os.path.normpath(place))[:MOST_TEXT], "directions": ["NOT_SET" for _ in names], "metrics": names, "trials": len(found), "since": sign if want["from"] == 0 else None, "began": millis(found[0]["running"].get("start_time")) if found else None})
    for line in population: say({"op": "population", "target": line[0], "source": line[1], "at": line[2], "sourceAt": line[3], "params": line[4]})
    for number, one in enumerate(found[:most_trials]):
        # The numbers of a population shift when it grows.
        if not population and (number in known or number < want["from"]): continue
        if size > most_bytes and not population:
            say({"op": "end", "more": True})
            leave()
        trial, running = one["trial"], one["running"]
        last = running.get("last_result") if isinstance(running.get("last_result"), dict) else {}
        searched = [str(name)[:MOST_TEXT] for name in (trial.get("evaluated_params") or {})][:MOST_PARAMETERS]
        error = ""
        if trial.get("status") == "ERROR":
            try:
                with opened(os.path.join(one["directory"], "error.txt")) as file: error = ([line for line in file.read(100000).decode("utf-8", "replace").split("\\n") if line.strip()] or [""])[-1][:MOST_TEXT]
            except OSError: pass
        say({
            "op": "trial", "number": number, "tag": one["tag"], "state": str(trial.get("status"))[:20], "params": flat(trial.get("config")), "first": flat(trial.get("_Trial__unresolved_config")), "searched": searched,
            "values": [metric_in(last, name) for name in names], "valued": flat(last.get("config")), "runs": runs_of(one["directory"], names), "error": error,
            "started": millis(running.get("start_time")), "host": str(last.get("hostname") or "")[:MOST_TEXT] or None,
            "ended": millis(running.get("last_result_time")),
        })
    say({"op": "end", "more": False})
    leave()
try: read()
except MemoryError: fail("failed", "out of memory")
except Exception as error: fail("failed", type(error).__name__ + ": " + str(error))
`
