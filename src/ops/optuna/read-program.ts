/**
 * Reads a study from a storage of Optuna, and changes nothing there. SQLite files and journals are read as they are, which needs
 * Python alone and works for every version of Optuna since 2.4; other databases through Optuna itself.
 */

/** Python 3.8 or later. Reads one request (JSON) on stdin and prints JSON lines; the request is in no command line, as a URL may hold a password. */
export const READ_OPTUNA_PROGRAM = `import hashlib, json, os, sys, time
want = json.loads(sys.stdin.buffer.read(8000000))
url, wanted, most_trials, most_bytes = want["url"], want.get("name"), want["trials"], want["bytes"]
known = set()
for first, last in want["done"]: known.update(range(first, min(last, most_trials) + 1))
known.update(range(min(want["from"], most_trials)))
known_steps = {int(number): step for number, step in want["steps"].items()}
MOST_STEPS, MOST_PARAMETERS, MOST_TEXT, MOST_JSON, MOST_LINE = 10000, 64, 200, 65536, 4000000
STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
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
def leave(code=0):
    sys.stdout.flush()
    os._exit(code)
def fail(kind, message="", **more):
    text = str(message)
    password = url.split("://", 1)[-1].rpartition("@")[0].partition(":")[2]
    if password: text = text.replace(password, "***")
    say(dict({"op": "error", "kind": kind, "message": text[:500]}, **more))
    leave()
def why(error):
    """Optuna and SQLAlchemy wrap what the database said."""
    while error.__cause__ is not None: error = error.__cause__
    return (str(error).strip() or type(error).__name__).split("\\n")[0]
def number_of(value):
    return repr(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
def text_of(value):
    return value if isinstance(value, str) else None
def parsed(text):
    if text is None or len(text) > MOST_JSON: return None
    try: return json.loads(text)
    except (ValueError, RecursionError): return None
def choice(value):
    if value is None or isinstance(value, bool): return [str(value)]
    if isinstance(value, int): return [str(value)] if abs(value) < 10 ** 30 else ["?"]
    if isinstance(value, float): return [repr(value)]
    if isinstance(value, str): return [value[:MOST_TEXT], 1]
    return [json.dumps(value)[:MOST_TEXT]]
distributions = {}
def distribution_id(text):
    """The number under which it was told; None: it cannot be read."""
    if text in distributions: return distributions[text]
    value = parsed(text)
    found = None
    try:
        kind, rest = value["name"], value["attributes"]
        if kind == "CategoricalDistribution": told = {"kind": "choice", "values": [choice(one) for one in rest["choices"][:1000]]}
        else:
            is_int = kind.startswith("Int")
            step = rest.get("step", rest.get("q"))
            log = bool(rest.get("log")) or "LogUniform" in kind
            if not (is_int or kind in ("FloatDistribution", "UniformDistribution", "LogUniformDistribution", "DiscreteUniformDistribution")): raise ValueError
            told = {"kind": "int" if is_int else "float", "low": number_of(rest["low"]), "high": number_of(rest["high"]), "step": number_of(step), "log": log}
        if len(distributions) < 10000:
            found = len(distributions)
            say(dict({"op": "distribution", "id": found}, **told))
    except (KeyError, TypeError, ValueError, AttributeError): pass
    distributions[text] = found
    return found
sign = None
def sign_of(paths):
    """Of files that nothing has written for a moment; ends if it is known."""
    global sign
    # What was read in an earlier answer may have changed since.
    if want["from"] > 0: return
    found, now = [], time.time()
    for path in paths:
        try: about = os.stat(path)
        except OSError: continue
        if abs(now - about.st_mtime) < 2: return
        found.append([about.st_ino, about.st_size, about.st_mtime_ns])
    sign = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    if sign == want.get("since"):
        say({"op": "same"})
        leave()
def say_study(name, directions, names, trials, began):
    """began: when its first trial did, by which another study of the same name is noticed."""
    say({"op": "study", "began": began, "since": sign, "name": name[:MOST_TEXT], "directions": directions[:16], "metrics": [str(one)[:MOST_TEXT] for one in names[:16]] if isinstance(names, list) else [], "trials": trials})
def say_trial(number, state, params, values, steps, started, ended, attributes):
    """params: (name, internal value, distribution as JSON); steps: (step, value)."""
    since = known_steps.get(number) if state in ("RUNNING", "WAITING") else None
    new = sorted((step, value) for step, value in steps if since is None or step > since)
    if len(new) > MOST_STEPS: new = new[:: -(-len(new) // MOST_STEPS)] + new[-1:]
    told = {name[:MOST_TEXT]: [distribution_id(text), number_of(value)] for name, value, text in params[:MOST_PARAMETERS]}
    say({"op": "trial", "number": number, "state": state, "params": told, "values": values[:16], "steps": new, "started": started, "ended": ended, "attributes": attributes})
def end(more=False):
    say({"op": "end", "more": more})
    leave()
def pick(names):
    """The index of the wanted study."""
    if wanted is not None:
        if wanted in names: return names.index(wanted)
        fail("no-study", names=[name[:MOST_TEXT] for name in names[:20]])
    if len(names) == 1: return 0
    fail("which" if names else "no-study", names=[name[:MOST_TEXT] for name in names[:20]])
OWN = ("muster:host", "muster:job", "muster:devices", "muster:reason", "muster:state")

def read_sqlite(path):
    import datetime, sqlite3
    from urllib.parse import quote
    if not os.path.isfile(path): fail("no-file", path)
    sign_of([path, path + "-wal", path + "-journal"])
    try: db = sqlite3.connect("file:" + quote(os.path.abspath(path)) + "?mode=ro", uri=True, timeout=5)
    except sqlite3.Error as error: fail("failed", error)
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    def rows(sql, *values):
        return db.execute(sql, values).fetchall()
    def columns(table):
        return {row[1] for row in rows("PRAGMA table_info(" + table + ")")}
    if not {"study_id", "study_name"} <= columns("studies") or "number" not in columns("trials"): fail("no-storage")
    studies = rows("SELECT study_id, substr(study_name, 1, 600) FROM studies ORDER BY study_id LIMIT 10000")
    study, name = studies[pick([str(row[1]) for row in studies])]
    if "objective" in columns("study_directions"):
        directions = [str(row[0])[:20] for row in rows("SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective LIMIT 16", study)]
    else: directions = [str(row[0])[:20] for row in rows("SELECT direction FROM studies WHERE study_id = ?", study)]
    names = rows("SELECT substr(value_json, 1, 65537) FROM study_system_attributes WHERE study_id = ? AND key = 'study:metric_names'", study)
    version = rows("SELECT substr(library_version, 1, 20) FROM version_info LIMIT 1") if columns("version_info") else []
    major = str(version[0][0]).split(".")[0] if version else ""
    # Optuna 5 stores UTC, and earlier ones the time of the machine.
    zone = datetime.timezone.utc if major.isdigit() and int(major) >= 5 else None
    def time_of(text):
        try: return int(datetime.datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)
        except (TypeError, ValueError, OverflowError, OSError): return None
    def typed(value, kind):
        return {"INF_POS": "inf", "INF_NEG": "-inf", "NAN": "nan"}.get(kind, "nan" if value is None else number_of(value))
    began = rows("SELECT datetime_start FROM trials WHERE study_id = ? AND number = 0 LIMIT 1", study)
    say_study(name, directions, parsed(names[0][0]) if names else None, rows("SELECT count(*) FROM trials WHERE study_id = ?", study)[0][0], time_of(began[0][0]) if began else None)
    value_type = "value_type" if "value_type" in columns("trial_values") else "'FINITE'"
    step_type = "intermediate_value_type" if "intermediate_value_type" in columns("trial_intermediate_values") else "'FINITE'"
    trials = [row for row in rows("SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials WHERE study_id = ? AND number >= 0 AND number < ? ORDER BY number LIMIT ?", study, most_trials, most_trials) if isinstance(row[1], int) and row[1] not in known]
    # Few at a time, as a reader holds up those that write.
    for first in range(0, len(trials), 400):
        part = trials[first : first + 400]
        ids = [row[0] for row in part]
        among = "trial_id IN (" + ",".join("?" * len(ids)) + ")"
        def gather(sql):
            found = {}
            for row in rows(sql.replace("AMONG", among), *ids): found.setdefault(row[0], []).append(row[1:])
            return found
        params = gather("SELECT trial_id, substr(param_name, 1, 200), param_value, substr(distribution_json, 1, 65537) FROM trial_params WHERE AMONG ORDER BY param_id LIMIT 400000")
        values = gather("SELECT trial_id, value, " + value_type + " FROM trial_values WHERE AMONG ORDER BY " + ("objective" if "objective" in columns("trial_values") else "trial_value_id") + " LIMIT 40000")
        steps = gather("SELECT trial_id, step, intermediate_value, " + step_type + " FROM trial_intermediate_values WHERE AMONG LIMIT 4000000")
        attributes = gather("SELECT trial_id, key, substr(value_json, 1, 2000) FROM trial_user_attributes WHERE AMONG AND key IN ('" + "','".join(OWN) + "')")
        for trial, number, state, started, ended in part:
            if state not in STATES: continue
            if size > most_bytes: end(True)
            say_trial(
                number, state, [(str(one), value, str(text)) for one, value, text in params.get(trial, [])],
                [typed(*pair) for pair in values.get(trial, [])],
                [(step, typed(value, kind)) for step, value, kind in steps.get(trial, []) if isinstance(step, int)],
                time_of(started), time_of(ended), {key: parsed(text) for key, text in attributes.get(trial, [])},
            )
    end()

def read_journal(path):
    import datetime
    if not os.path.isfile(path): fail("no-file", path)
    def time_of(text):
        try: return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)
        except (TypeError, ValueError, OverflowError, OSError): return None
    def value_text(value):
        return "nan" if value is None else number_of(value)
    studies, trials, next_study, lines = {}, [], 0, 0
    def apply(log):
        nonlocal next_study
        op = log["op_code"]
        if op == 0:
            name = str(log["study_name"])[:600]
            if any(study["name"] == name for study in studies.values()): return
            studies[next_study] = {"name": name, "directions": log["directions"], "names": None, "trials": 0}
            next_study += 1
        elif op == 1: studies.pop(log["study_id"], None)
        elif op == 3 and log["study_id"] in studies and "study:metric_names" in log["system_attr"]:
            studies[log["study_id"]]["names"] = log["system_attr"]["study:metric_names"]
        elif op == 4 and log["study_id"] in studies:
            study = studies[log["study_id"]]
            trial = None
            if study["trials"] < most_trials:
                values = log.get("values") or ([log["value"]] if log.get("value") is not None else [])
                trial = {"study": log["study_id"], "number": study["trials"], "state": log.get("state", 0), "values": values, "started": log.get("datetime_start"), "ended": log.get("datetime_complete"), "attributes": {}, "steps": {}, "params": {}}
                texts = log.get("distributions") or {}
                for name, value in list((log.get("params") or {}).items())[:MOST_PARAMETERS]: trial["params"][name] = (value, texts.get(name))
                for step, value in list((log.get("intermediate_values") or {}).items())[:MOST_STEPS]: trial["steps"][int(step)] = value
                note(trial, log.get("user_attrs") or {})
            study["trials"] += 1
            # Others are counted, as their numbers are.
            trials.append(trial)
        elif op >= 5 and op <= 9:
            trial = trials[log["trial_id"]] if 0 <= log["trial_id"] < len(trials) else None
            if trial is None or trial["state"] in (1, 2, 3): return
            if op == 5 and len(trial["params"]) < MOST_PARAMETERS: trial["params"][log["param_name"]] = (log["param_value_internal"], log["distribution"])
            elif op == 6:
                if log["state"] == 0 and trial["state"] == 0: return
                trial["state"] = log["state"]
                if log["state"] == 0: trial["started"] = log.get("datetime_start")
                else: trial["ended"] = log.get("datetime_complete")
                if log.get("values") is not None: trial["values"] = log["values"]
            elif op == 7 and len(trial["steps"]) < 10 * MOST_STEPS: trial["steps"][int(log["step"])] = log["intermediate_value"]
            elif op == 8: note(trial, log["user_attr"])
    def note(trial, attributes):
        for key in OWN:
            if key in attributes and len(json.dumps(attributes[key])) <= 2000: trial["attributes"][key] = attributes[key]
    sign_of([path])
    with open(path, "rb") as file:
        while True:
            line = file.readline(MOST_LINE)
            if not line: break
            if not line.endswith(b"\\n"):
                # It is being written, or too long to be Optuna's.
                while line and not line.endswith(b"\\n"): line = file.readline(MOST_LINE)
                continue
            lines += 1
            try: apply(json.loads(line))
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
                if lines == 1: fail("no-storage")
    ids = list(studies)
    if not ids: fail("no-storage" if lines == 0 and os.path.getsize(path) > 0 else "no-study", names=[])
    study = ids[pick([studies[one]["name"] for one in ids])]
    about = studies[study]
    directions = about["directions"] if isinstance(about["directions"], list) else []
    say_study(about["name"], [{1: "MINIMIZE", 2: "MAXIMIZE"}.get(one, "NOT_SET") for one in directions[:16]], about["names"], about["trials"], next((time_of(trial["started"]) for trial in trials if trial is not None and trial["study"] == study), None))
    for trial in trials:
        if trial is None or trial["study"] != study or trial["number"] in known or trial["state"] not in (0, 1, 2, 3, 4): continue
        if size > most_bytes: end(True)
        say_trial(
            trial["number"], STATES[trial["state"]], [(str(name), value, str(text)) for name, (value, text) in trial["params"].items()],
            [value_text(value) for value in trial["values"]] if isinstance(trial["values"], list) else [],
            [(step, value_text(value)) for step, value in trial["steps"].items()],
            time_of(trial["started"]), time_of(trial["ended"]), trial["attributes"],
        )
    end()

def read_others():
    import inspect, logging
    try: import optuna
    except ImportError as error: fail("no-optuna", error)
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    more = {"skip_table_creation": True} if "skip_table_creation" in inspect.signature(optuna.storages.RDBStorage).parameters else {}
    try:
        storage = optuna.storages.RDBStorage(url, **more)
        studies = storage.get_all_studies()
    except ImportError as error: fail("no-driver", error)
    except Exception as error: fail("failed", why(error))
    about = studies[pick([study.study_name for study in studies])]
    trials = storage.get_all_trials(about._study_id, deepcopy=False)
    names = about.system_attrs.get("study:metric_names")
    def time_of(value):
        return None if value is None else int(value.timestamp() * 1000)
    say_study(about.study_name, [one.name for one in about.directions], list(names) if names else None, len(trials), time_of(trials[0].datetime_start) if trials else None)
    def value_text(value):
        return "nan" if value is None else number_of(value)
    for trial in trials[:most_trials]:
        if trial.number in known: continue
        if size > most_bytes: end(True)
        params = []
        for name, value in trial.params.items():
            distribution = trial.distributions[name]
            params.append((name, distribution.to_internal_repr(value), optuna.distributions.distribution_to_json(distribution)))
        say_trial(
            trial.number, trial.state.name, params, [value_text(value) for value in trial.values or []],
            [(step, value_text(value)) for step, value in trial.intermediate_values.items()],
            time_of(trial.datetime_start), time_of(trial.datetime_complete), {key: trial.user_attrs[key] for key in OWN if key in trial.user_attrs and len(json.dumps(trial.user_attrs[key])) <= 2000},
        )
    end()

try:
    if url.startswith("sqlite:///"): read_sqlite(os.path.expanduser(url[len("sqlite:///"):].partition("?")[0]))
    elif url.startswith("journal:///"): read_journal(os.path.expanduser(url[len("journal:///"):]))
    else: read_others()
except MemoryError: fail("failed", "out of memory")
except Exception as error: fail("failed", why(error))
`
