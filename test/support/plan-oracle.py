"""Answers from the released packages: JSON from stdin to the last line of stdout."""

import json
import os
import shutil
import sys
import tempfile
import time


def rllib(configs):
    from ray.rllib.algorithms.ppo import PPO, PPOConfig

    answers = []
    for values in configs:
        config = PPOConfig().environment("CartPole-v1")
        if values.get("enable_rl_module_and_learner") is False:
            config.api_stack(enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False)
        values = {key: value for key, value in values.items() if key != "enable_rl_module_and_learner"}
        request = PPO.default_resource_request(config.update_from_dict(values))
        answers.append({"bundles": request.bundles, "strategy": request.strategy})
    return answers


def train(configs):
    from ray.train import ScalingConfig

    answers = []
    for values in configs:
        try:
            config = ScalingConfig(**values)
            answers.append([config._resources_per_worker_not_none] * config.num_workers)
        except ValueError:
            answers.append(None)
    return answers


def vllm(questions):
    """Runs vLLM's own function, taken out of its file, beside a Ray that only notes what it is asked for."""
    import ast
    import importlib.util
    import os
    import types

    file = os.path.join(importlib.util.find_spec("vllm").submodule_search_locations[0], "v1/engine/utils.py")
    tree = ast.parse(open(file).read())
    helpers = [
        n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("_") and not n.decorator_list
    ]
    wanted = next(
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "create_dp_placement_groups"
    )
    wanted.decorator_list, wanted.returns = [], None
    for function in helpers:
        function.returns = None
        for argument in function.args.args:
            argument.annotation = None
    for argument in wanted.args.args:
        argument.annotation = None
    anything = types.SimpleNamespace
    asked = []
    state = types.ModuleType("ray._private.state")
    ray = types.ModuleType("ray")
    ray.util = anything(placement_group=lambda **group: asked.append(group) or group)
    sys.modules.update({"ray": ray, "ray._private": types.ModuleType("ray._private"), "ray._private.state": state})
    names = {
        "envs": anything(VLLM_RAY_DP_PLACEMENT_NODE_IPS=""),
        "logger": anything(info=lambda *_: None, warning=lambda *_: None),
        "current_platform": anything(ray_device_key="GPU"),
        "PlacementGroup": object,
    }
    exec(compile(ast.Module(helpers + [wanted], []), file, "exec"), names)
    answers = []
    for question in questions:
        asked.clear()
        nodes = {
            f"id{i}": {f"node:n{i}": 1.0, "CPU": 64.0, **({"GPU": float(free)} if free else {})}
            for i, free in enumerate(question["free"])
        }
        state.available_resources_per_node = lambda nodes=nodes: nodes
        names["envs"].VLLM_RAY_DP_PACK_STRATEGY = question["pack"]
        config = anything(
            data_parallel_master_ip="n0",
            data_parallel_size=question["dp"],
            data_parallel_size_local=question["local"],
            world_size=question["world"],
            all2all_backend="naive",
        )
        try:
            names["create_dp_placement_groups"](anything(parallel_config=config))
            error = False
        except (AssertionError, ValueError):
            error = True
        hosts = [sorted({int(k[6:]) for b in g["bundles"] for k in b if k.startswith("node:")}) for g in asked]
        answers.append({"fails": error, "hosts": hosts})
    return answers


def groups(question):
    """Starts nodes with declared GPUs, and takes each list of groups one after the other until one waits."""
    # Paths of sockets may not be long. Ray writes the address of a cluster below the second one, and does not make it.
    directory = tempfile.mkdtemp(prefix="muster-plan-", dir="/tmp")
    os.environ["RAY_TMPDIR"] = directory
    os.makedirs(os.path.join(directory, "ray"))
    import ray
    from ray.cluster_utils import Cluster
    from ray.util import placement_group, remove_placement_group

    cluster = Cluster()
    try:
        for gpus in question["hosts"]:
            cluster.add_node(num_cpus=16, num_gpus=gpus, object_store_memory=80 * 2**20, temp_dir=directory, include_dashboard=False)
        ray.init(address=cluster.address, logging_level="ERROR")
        answers = []
        for plan in question["plans"]:
            taken, count = [], 0
            for group in plan:
                one = placement_group(group["bundles"], strategy=group["strategy"])
                taken.append(one)
                if not one.wait(timeout_seconds=10):
                    break
                count += 1
            answers.append(count)
            for one in taken:
                remove_placement_group(one)
            # Until all is free again.
            deadline = time.monotonic() + 60
            while ray.available_resources().get("GPU", 0) < sum(question["hosts"]):
                if time.monotonic() > deadline:
                    raise RuntimeError("Ray did not give back the GPUs of removed groups")
        return answers
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    answer = {"rllib": rllib, "train": train, "vllm": vllm, "groups": groups}[sys.argv[1]](json.load(sys.stdin))
    print(json.dumps(answer), flush=True)
