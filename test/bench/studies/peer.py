"""Optuna without Muster: as workers with one storage, and as one process that is told values."""
import json
import sys
import time

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)


def storage_of(kind, path):
    if kind == "sqlite":
        return optuna.storages.RDBStorage("sqlite:///" + path)
    journal = optuna.storages.journal
    return optuna.storages.JournalStorage(journal.JournalFileBackend(path))


def sampler_of(name, seed):
    if name == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, constant_liar=name == "constant_liar")


def create(kind, path):
    optuna.create_study(storage=storage_of(kind, path), study_name="study")


def work(kind, path, sampler, seed, trials, values, log):
    """One of several workers, each of which runs the same number of trials."""
    study = optuna.load_study(study_name="study", storage=storage_of(kind, path), sampler=sampler_of(sampler, int(seed)))

    def objective(trial):
        x = trial.suggest_int("x", 1, int(values))
        with open(log, "a") as file:
            file.write("%d\n" % x)
        time.sleep(0.15)
        return (x - 7) ** 2

    study.optimize(objective, n_trials=int(trials))


def points(seed, parameters):
    """Prints a point in a line for `ask`, and reads values as `NUMBER VALUE`."""
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=int(seed)))
    for line in sys.stdin:
        if line != "ask\n":
            number, value = line.split()
            study.tell(int(number), float(value))
            continue
        trial, point = study.ask(), {}
        for one in json.loads(parameters):
            name, when = one["name"], one.get("when")
            if when is not None and point.get(when["name"]) not in when["values"]:
                continue
            if one["kind"] == "choice":
                point[name] = trial.suggest_categorical(name, one["values"])
            elif one["kind"] == "int":
                point[name] = trial.suggest_int(name, one["low"], one["high"], step=one["step"])
            else:
                step, log = one.get("step"), one.get("log", False)
                point[name] = trial.suggest_float(name, one["low"], one["high"], step=step, log=log)
        print(json.dumps(dict((name, str(value)) for name, value in point.items())), flush=True)


{"create": create, "work": work, "points": points}[sys.argv[1]](*sys.argv[2:])
