"""Trials of a Muster study for a Python program: write `import muster_study as optuna` instead of `import optuna`.

It needs Python 3.6 or later and nothing else. MUSTER_STUDY_SOCKET names the scheduler's socket; without it, the one below is used.
"""
import json
import os
import socket
import sys
import threading
import time
import traceback

SOCKET = os.environ.get("MUSTER_STUDY_SOCKET") or os.path.expanduser("~/.local/state/muster/jobs/default.sock")


def call(**request):
    """Sends one request and returns the answer; waits while the scheduler restarts."""
    is_told = False
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(SOCKET)
                line.sendall(json.dumps(request, default=float).encode() + b"\n")
                answer = line.makefile(encoding="utf-8").readline()
            if answer.endswith("\n"):
                return json.loads(answer)
        except OSError as error:
            if not is_told:
                print("waiting for the scheduler at", SOCKET, "-", error, file=sys.stderr)
            is_told = True
        time.sleep(1)


class TrialPruned(Exception):
    """Raise it where should_prune() is true."""


class Trial:
    def __init__(self, study, asked):
        self.study, self.number, self.params = study, asked["trial"], asked["parameters"]
        self.own = {"trial": asked["trial"], "token": asked["token"]}
        self.stop = None
        # The scheduler, also the next one, sees by this connection that the trial is being worked on.
        threading.Thread(target=call, kwargs=dict(self.own, hold=study), daemon=True).start()

    def chosen(self, name):
        if name not in self.params:
            raise ValueError("this trial of the study %s has no parameter %s: see --param of muster study create" % (self.study, name))
        return self.params[name]

    def suggest_float(self, name, *_, **__):
        return float(self.chosen(name))

    def suggest_int(self, name, *_, **__):
        return int(self.chosen(name))

    def suggest_categorical(self, name, choices):
        value = self.chosen(name)
        return next((one for one in choices if one == value or str(one) == str(value)), value)

    def report(self, value, step):
        self.stop = call(step=self.study, at=step, value=value, **self.own).get("stop")

    def should_prune(self):
        return self.stop is not None


def values_of(value):
    """Of what an objective returned: a number, a list of them, or a dict by the names of the metrics."""
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else [value]


def number_of(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


class FrozenTrial:
    """A trial that is over. `values` is empty if it has none."""

    def __init__(self, number, params, values):
        self.number, self.params, self.values = number, params, [number_of(value) for value in values]

    @property
    def value(self):
        if len(self.values) > 1:
            raise RuntimeError("it has several values: use values")
        return self.values[0] if self.values else None


class Study:
    def __init__(self, name):
        self.study_name = name
        self.is_stopped = False

    def asked(self, **request):
        answer = call(**request)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def optimize(self, objective, n_trials=None, timeout=None, callbacks=None, n_jobs=1, **_):
        """Runs trials until the study is over, or this program has run n_trials, or for timeout seconds."""
        if n_jobs != 1:
            print("n_jobs is ignored: start this program several times instead", file=sys.stderr)
        since = time.monotonic()
        count = 0
        self.is_stopped = False
        while not self.is_stopped and (n_trials is None or count < n_trials):
            if timeout is not None and time.monotonic() - since >= timeout:
                return
            asked = self.asked(ask=self.study_name)
            if "trial" not in asked:
                return
            trial = Trial(self.study_name, asked)
            values = []
            try:
                value = objective(trial)
                values = values_of(value)
                told = {"values": value}
            except TrialPruned:
                told = {"pruned": True}
            except Exception as error:
                traceback.print_exc()
                told = {"failed": repr(error)}
            self.asked(tell=self.study_name, host=socket.gethostname(), **trial.own, **told)
            count += 1
            for callback in callbacks or ():
                callback(self, FrozenTrial(trial.number, trial.params, values))

    def stop(self):
        """Ends optimize in this program after the trial that runs."""
        self.is_stopped = True

    @property
    def best_trials(self):
        """Of one metric the best trial, of several those of the Pareto front; of all programs."""
        return self.best()[0]

    @property
    def best_trial(self):
        found, directions = self.best()
        if len(directions) != 1:
            raise RuntimeError("the study %s has %d metrics: use best_trials" % (self.study_name, len(directions)))
        if not found:
            raise ValueError("no trial of the study %s is done yet" % self.study_name)
        return found[0]

    def best(self):
        answer = self.asked(best=self.study_name)
        found = [FrozenTrial(one["trial"], one["parameters"], one["values"]) for one in answer["best"]]
        return found, answer["directions"]

    @property
    def best_params(self):
        return self.best_trial.params

    @property
    def best_value(self):
        return self.best_trial.value


def create_study(study_name=None, direction=None, directions=None, **_):
    """The study with this name, which muster study create has made. Sampler, pruner and storage are the scheduler's."""
    name = study_name or os.environ.get("MUSTER_STUDY")
    if not name:
        raise ValueError("study_name is missing: name a study that muster study create has made, or set MUSTER_STUDY")
    study = Study(name)
    wanted = directions if directions is not None else direction and [direction]
    if wanted:
        made = study.best()[1]
        if list(wanted) != made:
            text = "the study %s was made with the directions %s, not %s: change one of them"
            raise ValueError(text % (name, made, list(wanted)))
    return study


load_study = create_study
