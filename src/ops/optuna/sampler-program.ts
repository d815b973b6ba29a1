/**
 * Optuna as one program on a host: it reads lines of JSON, suggests points, and keeps the study in memory alone. It runs with
 * Python 3 and Optuna 3 or newer, and ends with its stdin.
 */
import { pythonWords } from '../../base/python-words.ts'

/** It says that it is alive this often while it computes; and without a message for this long it ends, because the caller is gone. */
const ALIVE_S = 10
const IDLE_S = 3600
/** Trials from which a sampler that keeps its state in them gets it back. */
const MOST_REPLAYED = 1_000
const MOST_GRID = 100_000

/**
 * Reads `start`, `ask`, `repeat`, `take` and `tell`, and prints `hello`, `busy`, `ready`, `point` and `error`, each with what
 * `scheduler/jobs/sampler-line.ts` declares. Python 2 can parse it, too, and says that Optuna is missing.
 */
export const SAMPLER_PROGRAM = `import ast, inspect, json, math, os, re, sys, threading, time
out, nothing = os.fdopen(os.dup(1), "w"), os.open(os.devnull, os.O_WRONLY)
# What libraries print is not for the caller.
os.dup2(nothing, 1)
os.dup2(nothing, 2)
lock, busy, heard = threading.Lock(), [True], [time.time()]
def say(**fields):
    with lock:
        try:
            out.write(json.dumps(fields) + chr(10))
            out.flush()
        except (IOError, OSError): os._exit(0)
def live():
    while True:
        time.sleep(${ALIVE_S})
        if busy[0]: say(op="busy")
        elif time.time() - heard[0] > ${IDLE_S}: os._exit(0)
class Refused(Exception):
    def __init__(self, kind, message):
        Exception.__init__(self, message)
        self.kind = kind
def load():
    global optuna, State
    try: import optuna
    except ImportError as error:
        if getattr(error, "name", "optuna") == "optuna": raise Refused("no-optuna", sys.executable or "python")
        raise Refused("failed", "import optuna: " + str(error))
    if not hasattr(optuna.distributions, "FloatDistribution"):
        raise Refused("failed", "Optuna " + optuna.__version__ + " is too old; 3.0 or newer is needed")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    State = optuna.trial.TrialState
def distribution(one):
    kinds = optuna.distributions
    if one["kind"] == "choice": return kinds.CategoricalDistribution(one["values"])
    if one["kind"] == "int": return kinds.IntDistribution(one["low"], one["high"], step=one["step"])
    return kinds.FloatDistribution(float(one["low"]), float(one["high"]), log=one.get("log", False), step=one.get("step"))
def is_active(one, point):
    when = one.get("when")
    return when is None or point.get(when["name"]) in when["values"]
def read(one, text):
    return text if one["kind"] == "choice" else int(text) if one["kind"] == "int" else float(text)
def write(one, value):
    return value if one["kind"] == "choice" else str(int(value)) if one["kind"] == "int" else repr(float(value))
# The value of an option, by its annotation (also Optional) or the type of its default.
def option(name, text, one):
    try: value = ast.literal_eval(text)
    except (ValueError, SyntaxError): value = {"true": True, "false": False, "none": None}.get(text.lower(), text)
    words = set(re.findall("[A-Za-z]+", str(one.annotation))) - set(("None", "NoneType", "Optional", "Union", "typing", "class"))
    wanted = {"bool": bool, "int": int, "float": float}.get(words.pop()) if len(words) == 1 else type(one.default)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool): value = float(value)
    if wanted in (bool, int, float) and value is not None and type(value) is not wanted:
        raise Refused("options", "the option " + name + " must be " + {bool: "True or False", int: "a whole number", float: "a number"}[wanted])
    return value
def grid(parameters):
    space, count = {}, 1
    for one in parameters:
        if "when" in one or (one["kind"] == "float" and one.get("step") is None):
            raise Refused("options", "GridSampler needs a space without conditions, in which every number has a step")
        if one["kind"] == "choice": values = one["values"]
        else: values = [one["low"] + one["step"] * index for index in range(int(round((one["high"] - one["low"]) / one["step"])) + 1)]
        space[one["name"]], count = values, count * len(values)
        if count > ${MOST_GRID}: raise Refused("options", "GridSampler has more than ${MOST_GRID} combinations; --method grid has no limit")
    return space
class Study:
    def __init__(self, start):
        self.parameters, self.directions = start["parameters"], start["directions"]
        self.distributions = dict((one["name"], distribution(one)) for one in self.parameters)
        self.storage, trials = optuna.storages.InMemoryStorage(), start["trials"]
        sampler = self.sampler(start["sampler"], start["options"], start["seed"], len(trials))
        self.study = optuna.create_study(storage=self.storage, study_name="study", sampler=sampler, pruner=optuna.pruners.NopPruner(), directions=self.directions)
        self.id = self.storage.get_study_id_from_name("study")
        # Numbers of Optuna's trials by those of the caller.
        self.numbers, self.count, self.asked = {}, 0, {}
        samplers = optuna.samplers
        if isinstance(sampler, tuple(getattr(samplers, name) for name in ("TPESampler", "GPSampler", "RandomSampler", "BruteForceSampler", "GridSampler") if hasattr(samplers, name))): replayed = 0
        elif type(sampler).__name__ == "QMCSampler": replayed = len(trials)
        else: replayed = ${MOST_REPLAYED}
        for index, one in enumerate(trials):
            try: (self.replay if index >= len(trials) - replayed else self.add)(one)
            except (ValueError, KeyError): pass
    def sampler(self, name, options, seed, count):
        made = getattr(optuna.samplers, name, None)
        if not (inspect.isclass(made) and issubclass(made, optuna.samplers.BaseSampler)):
            known = sorted(each for each in dir(optuna.samplers) if each.endswith("Sampler") and not each.startswith("Base"))
            raise Refused("no-sampler", "Optuna " + optuna.__version__ + " has no " + name + "; it has " + ", ".join(known))
        given, known = {}, {}
        for each, one in inspect.signature(made.__init__).parameters.items():
            code = any(word in str(one.annotation) for word in ("Callable", "Sampler", "Crossover", "Strategy"))
            if each not in ("self", "seed", "search_space") and not code and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY): known[each] = one
        has = inspect.signature(made.__init__).parameters
        for each, text in options.items():
            if each not in known: raise Refused("options", name + " has no option " + each + "; it has " + (", ".join(sorted(known)) or "none"))
            given[each] = option(each, text, known[each])
        # Begun again it must not draw what it drew before; only a sequence continues where it was.
        if "seed" in has: given["seed"] = (seed if name == "QMCSampler" else seed + count) % 2 ** 32
        if "search_space" in has: given["search_space"] = grid(self.parameters)
        if name == "TPESampler":
            given.setdefault("constant_liar", True)
            if len(self.directions) == 1 and not any("when" in one for one in self.parameters): given.setdefault("multivariate", True)
        return made(**given)
    def outcome(self, one):
        state, values, steps = one["state"], one.get("values"), one.get("steps") or []
        numbers = [float("nan") if value is None else float(value) for value in values or []]
        if state == "open": return State.RUNNING, None, {}
        if state == "pruned" and len(self.directions) == 1:
            return State.PRUNED, None, dict((int(step), float(value)) for step, value in steps if value is not None)
        if state == "done" and len(numbers) == len(self.directions) and not any(math.isnan(value) for value in numbers):
            return State.COMPLETE, numbers, {}
        return State.FAIL, None, {}
    def add(self, one):
        state, values, steps = self.outcome(one)
        own = dict((each["name"], each) for each in self.parameters)
        params = dict((name, read(own[name], text)) for name, text in one["point"].items())
        self.study.add_trial(optuna.trial.create_trial(state=state, values=values, params=params, intermediate_values=steps,
            distributions=dict((name, self.distributions[name]) for name in params)))
        self.numbers[one["number"]] = self.count
        self.count += 1
    # As if the sampler had suggested it, so that it finds its state.
    def replay(self, one):
        trial, point = self.suggest()
        self.place(trial, point, one["number"], one["point"])
        if one["state"] != "open": self.tell(one)
    def suggest(self):
        trial, point = self.study.ask(), {}
        self.count = trial.number + 1
        for one in self.parameters:
            if not is_active(one, point): continue
            if one["kind"] == "choice": value = trial.suggest_categorical(one["name"], one["values"])
            elif one["kind"] == "int": value = trial.suggest_int(one["name"], one["low"], one["high"], step=one["step"])
            else: value = trial.suggest_float(one["name"], float(one["low"]), float(one["high"]), step=one.get("step"), log=one.get("log", False))
            point[one["name"]] = write(one, value)
        return trial, point
    # The trial becomes the caller's, with the caller's point.
    def place(self, trial, suggested, number, point):
        if set(point) != set(suggested):
            self.finish(trial.number, State.FAIL, None)
            return self.add({"number": number, "point": point, "state": "open"})
        at = self.storage.get_trial_id_from_study_id_trial_number(self.id, trial.number)
        for one in self.parameters:
            name = one["name"]
            if name in point and point[name] != suggested[name]:
                made = self.distributions[name]
                self.storage.set_trial_param(at, name, made.to_internal_repr(read(one, point[name])), made)
        self.numbers[number] = trial.number
    def finish(self, number, state, values):
        try: self.study.tell(number, values, state)
        # The state is stored before a sampler says that it has tried all.
        except Exception: pass
    def tell(self, one):
        number = self.numbers.get(one["number"])
        if number is None: return self.add(one)
        state, values, steps = self.outcome(one)
        at = self.storage.get_trial_id_from_study_id_trial_number(self.id, number)
        if self.storage.get_trial(at).state != State.RUNNING: return
        for step, value in steps.items(): self.storage.set_trial_intermediate_value(at, step, value)
        self.finish(number, state, values)
    def ask(self, id):
        trial, point = self.suggest()
        self.asked[id] = (trial, point)
        say(op="point", id=id, point=point)
    def repeat(self, id, values):
        if id not in self.asked: return
        state, values, _ = self.outcome({"state": "done", "values": values})
        self.finish(self.asked[id][0].number, state, values)
        self.ask(id)
    def take(self, one):
        if one["id"] not in self.asked: return
        trial, point = self.asked.pop(one["id"])
        self.place(trial, point, one["number"], one["point"])
def run():
    load()
    say(op="hello")
    lines, study = getattr(sys.stdin, "buffer", sys.stdin), None
    while True:
        busy[0], heard[0] = False, time.time()
        line = lines.readline()
        if not line.endswith(b"\\n"): return
        busy[0] = True
        one = json.loads(line.decode("utf-8"))
        op = one["op"]
        if op == "start":
            study = Study(one)
            say(op="ready", optuna=optuna.__version__)
        elif op == "ask": study.ask(one["id"])
        elif op == "repeat": study.repeat(one["id"], one["values"])
        elif op == "take": study.take(one)
        elif op == "tell": study.tell(one)
beat = threading.Thread(target=live)
beat.daemon = True
beat.start()
try: run()
except Refused as error: say(op="error", kind=error.kind, message=str(error)[:2000])
except BaseException as error: say(op="error", kind="failed", message=(type(error).__name__ + ": " + str(error))[:2000])
out.flush()
os._exit(0)
`

/**
 * For a shell that reads its program from stdin; nothing more may be written to it before the program has said `hello`.
 * `setUp`: lines for sh that make `python3` that of an environment.
 */
export const samplerScript = (setUp: string): string => `exec 2>&1
trap 'echo "{\\"op\\":\\"error\\",\\"kind\\":\\"no-environment\\"}"' EXIT
${setUp}
trap - EXIT
python=$(command -v python3 || command -v python) || { echo '{"op":"error","kind":"no-python"}'; exit 1; }
export OMP_NUM_THREADS="\${OMP_NUM_THREADS:-2}"
"$python" ${pythonWords(SAMPLER_PROGRAM)}; exit
`
