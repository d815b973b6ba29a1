/** Writes a study into a storage of Optuna, by Optuna itself. */

/**
 * Python 3.8 or later, Optuna 3 or later. Reads JSON lines on stdin: the study, then its trials; the URL is in no command line, as
 * it may hold a password. Everything is checked before the first trial is written; a study that was begun is deleted again if
 * writing fails.
 */
export const EXPORT_OPTUNA_PROGRAM = `import datetime, json, os, sys, warnings
def say(line):
    sys.stdout.write(json.dumps(line) + "\\n")
    sys.stdout.flush()
def fail(kind, message="", **more):
    text, password = str(message), about["url"].split("://", 1)[-1].rpartition("@")[0].partition(":")[2]
    if password: text = text.replace(password, "***")
    say(dict({"op": "error", "kind": kind, "message": text[:500]}, **more))
    os._exit(0)
def why(error):
    """Optuna and SQLAlchemy wrap what the database said."""
    while error.__cause__ is not None: error = error.__cause__
    return (str(error).strip() or type(error).__name__).split("\\n")[0]
lines = sys.stdin.buffer
about = json.loads(lines.readline())
url, name = about["url"], about["name"]
warnings.simplefilter("ignore")
try: import optuna
except ImportError as error: fail("no-optuna", error)
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
optuna.logging.set_verbosity(optuna.logging.CRITICAL)
def choice(text):
    for kind in (int, float):
        try:
            if str(kind(text)) == text and text not in ("inf", "nan"): return kind(text)
        except ValueError: pass
    return text
def distribution(one):
    if one["kind"] == "choice": return CategoricalDistribution([choice(text) for text in one["values"]])
    if one["kind"] == "int": return IntDistribution(int(one["low"]), int(one["high"]), step=int(one["step"]))
    step = one.get("step")
    return FloatDistribution(float(one["low"]), float(one["high"]), step=None if step is None else float(step), log=bool(one.get("log")))
def time_of(millis):
    return None if millis is None else datetime.datetime.fromtimestamp(millis / 1000)
def value_of(one, text):
    return choice(text) if one["kind"] == "choice" else int(text) if one["kind"] == "int" else float(text)
try:
    spaces = {one["name"]: one for one in about["parameters"]}
    distributions = {key: distribution(one) for key, one in spaces.items()}
    trials = []
    for line in lines:
        told = json.loads(line)
        numbers = [float(value) for value in told["values"]] if told["values"] is not None else None
        point = {key: value_of(spaces[key], text) for key, text in told["point"].items()}
        trial = optuna.trial.create_trial(
            state=optuna.trial.TrialState[told["state"]], params=point, distributions={key: distributions[key] for key in point},
            values=numbers, intermediate_values={int(step): float(value) for step, value in told["steps"]}, user_attrs=told["attributes"],
        )
        started, ended = time_of(told["started"]), time_of(told["ended"])
        if started or ended: trial.datetime_start = started or ended
        trial.datetime_complete = ended
        if hasattr(trial, "_validate"): trial._validate()
        trials.append(trial)
except Exception as error: fail("failed", type(error).__name__ + ": " + str(error))
journal = None
try:
    if url.startswith("journal:///"):
        path = os.path.expanduser(url[len("journal:///"):])
        try: from optuna.storages.journal import JournalFileBackend as File
        except ImportError: from optuna.storages import JournalFileStorage as File
        storage = optuna.storages.JournalStorage(File(path))
    else:
        if url.startswith("sqlite:///"): url = "sqlite:///" + os.path.expanduser(url[len("sqlite:///"):])
        storage = optuna.storages.RDBStorage(url)
except ImportError as error: fail("no-driver", error)
except Exception as error: fail("failed", why(error))
try:
    if name in [study.study_name for study in storage.get_all_studies()]:
        if not about["replace"]: fail("exists")
        optuna.delete_study(study_name=name, storage=storage)
    study = optuna.create_study(study_name=name, storage=storage, directions=about["directions"])
    try:
        if hasattr(study, "set_metric_names"): study.set_metric_names(about["metrics"])
        study.set_user_attr("muster:study", about["study"])
        for count, trial in enumerate(trials):
            study.add_trial(trial)
            if count % 500 == 499: say({"op": "written", "trials": count + 1})
    except BaseException:
        optuna.delete_study(study_name=name, storage=storage)
        raise
except Exception as error: fail("failed", why(error))
say({"op": "end", "trials": len(trials), "optuna": optuna.__version__})
`
