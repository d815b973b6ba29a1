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

    def suggest_float(self, name, *_, **__):
        return float(self.params[name])

    def suggest_int(self, name, *_, **__):
        return int(self.params[name])

    def suggest_categorical(self, name, choices):
        value = self.params[name]
        return next((one for one in choices if one == value or str(one) == str(value)), value)

    def report(self, value, step):
        self.stop = call(step=self.study, at=step, value=value, **self.own).get("stop")

    def should_prune(self):
        return self.stop is not None


class Study:
    def __init__(self, name):
        self.name = name

    def optimize(self, objective, n_trials=None, **_):
        """Runs trials until the study is over, or this program has run n_trials."""
        while n_trials is None or n_trials > 0:
            asked = call(ask=self.name)
            if "trial" not in asked:
                if "error" in asked:
                    raise RuntimeError(asked["error"])
                return
            trial = Trial(self.name, asked)
            try:
                told = {"values": objective(trial)}
            except TrialPruned:
                told = {"pruned": True}
            except Exception as error:
                traceback.print_exc()
                told = {"failed": repr(error)}
            answer = call(tell=self.name, host=socket.gethostname(), **trial.own, **told)
            if "error" in answer:
                raise RuntimeError(answer["error"])
            n_trials = None if n_trials is None else n_trials - 1


def create_study(study_name=None, **_):
    return Study(study_name or os.environ["MUSTER_STUDY"])


load_study = create_study
