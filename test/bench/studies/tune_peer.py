"""A study by Ray Tune on one node, of trials as in trial.py. Arguments: METHOD ACTORS SEED TRIALS VALUES AT_ONCE"""
import os
import sys

import ray
from ray import tune
from ray.tune.search.basic_variant import BasicVariantGenerator
from ray.tune.search.optuna import OptunaSearch

import trial

METHOD, REUSES, SEED, TRIALS, VALUES, AT_ONCE = sys.argv[1], sys.argv[2] == "reuse_actors", *map(int, sys.argv[3:])
PLACE = os.getcwd()


def train(config, log=os.path.join(PLACE, "times")):
    tune.report({"loss": trial.run(config["x"], log)})


ray.init(_node_ip_address="127.0.0.1", num_cpus=AT_ONCE, include_dashboard=False, log_to_driver=False)
search = BasicVariantGenerator(random_state=SEED) if METHOD == "random" else OptunaSearch(seed=SEED)
tuner = tune.Tuner(
    tune.with_resources(train, {"cpu": 1}),
    param_space={"x": tune.randint(1, VALUES + 1)},
    tune_config=tune.TuneConfig(
        metric="loss",
        mode="min",
        num_samples=TRIALS,
        search_alg=search,
        max_concurrent_trials=AT_ONCE,
        reuse_actors=REUSES,
    ),
    run_config=tune.RunConfig(name="study", storage_path=os.path.join(PLACE, "results"), verbose=0),
)
results = tuner.fit()
ray.shutdown()
if len(results) != TRIALS or results.num_errors:
    sys.exit("%d trials, %d of them failed" % (len(results), results.num_errors))
