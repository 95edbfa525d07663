"""The sampler inside Ray Tune, as docs/howto/optuna.md has it; opt-in: Ray is no dependency."""

from __future__ import annotations

import os
import sys

import pytest
from hub_packages import loaded

from advisor import Sampling

ReplayProblem = loaded("benchmarks/grpo_replay").Problem
AdvisorSampler = loaded("samplers/grpo_advisor").AdvisorSampler
STARTUP = loaded("samplers/grpo_advisor").STARTUP
QUICK = Sampling(chains=2, draws=300, tune=400)
TRIALS = STARTUP + 2


@pytest.mark.evidence
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
def test_ray_tune_takes_the_sampler(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray[tune]'")
    pytest.importorskip("ray.tune.search.optuna", reason="pip install 'ray[tune]' optuna")
    from ray import cloudpickle, tune
    from ray.tune.search.optuna import OptunaSearch

    problem = ReplayProblem("mod_m")
    sampler = AdvisorSampler(problem.run, steps=problem.steps, sampling=QUICK, seed=0)

    def train_run(config):
        for reward in problem.rewards(config):
            tune.report({"reward": reward})

    space = problem.search_space
    rate = space["learning_rate"]
    monkeypatch.setenv("RAY_CHDIR_TO_TRIAL_DIR", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    # A worker cannot import what the test loaded from a file.
    cloudpickle.register_pickle_by_value(sys.modules[ReplayProblem.__module__])
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        results = tune.Tuner(
            train_run,
            param_space={
                "learning_rate": tune.loguniform(rate.low, rate.high),
                "group_size": tune.choice(list(space["group_size"].choices)),
                "minibatches_per_refresh": tune.choice(
                    list(space["minibatches_per_refresh"].choices)
                ),
            },
            tune_config=tune.TuneConfig(
                search_alg=OptunaSearch(sampler=sampler),
                metric="reward",
                mode="max",
                num_samples=TRIALS,
                max_concurrent_trials=1,
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        ).fit()
    finally:
        ray.shutdown()
    assert len(results) == TRIALS
    assert not results.errors
    for result in results:
        assert result.metrics["training_iteration"] == problem.steps
        assert result.metrics["reward"] == problem.rewards(result.config)[-1]
    assert sampler._fitted is not None, "the model was never asked"
    known, posterior = sampler._fitted
    assert len(known) == TRIALS - 1
    assert posterior is not None
