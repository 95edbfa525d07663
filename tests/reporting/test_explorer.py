"""The page's own arithmetic, run by Node, against the package's."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import advisor.reporting.page
from advisor.advice import CostModel, Recommendation
from advisor.forecast.forecaster import Forecaster, Target
from advisor.forecast.interval import interval_of
from advisor.forecast.predictive import final_reward, outcome_paths
from advisor.forecast.survival import stability
from advisor.model.posterior import Posterior
from advisor.reporting.page.explorer import DRAWS, explorer_data, page_forecaster
from advisor.runs.settings import Settings

from .conftest import PILOTS, settings

Build = Callable[..., Any]
SCRIPT = Path(advisor.reporting.page.__file__).parent / "assets" / "forecast.js"
DRIVER = """
const Forecast = require(process.argv[1]);
const { model, asked } = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const loaded = Forecast.load(model);
console.log(JSON.stringify(asked.map((one) => Forecast.evaluate(loaded, one, one.times))));
"""
WITHIN = 1e-6


def by_page(model: dict[str, Any], asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    done = subprocess.run(
        [node, "-e", DRIVER, str(SCRIPT)],
        input=json.dumps({"model": model, "asked": asked}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def by_package(
    posterior: Posterior, advice: Recommendation, asked: dict[str, Any]
) -> dict[str, Any]:
    target = advice.target
    of = Target(target.task, target.model, asked["parameters"], target.start_reward)
    forecaster = Forecaster(posterior, of, draws=DRAWS, seed=advice.seed)
    changed = {k: v for k, v in asked.items() if k not in ("parameters", "times")}
    plan = advice.settings.model_copy(update=changed)
    steps = asked["planned_steps"]
    draws = forecaster.outcome(plan, [steps])[:, 0]
    final = interval_of(final_reward(forecaster, plan, steps))
    found, paid = stability(forecaster, plan, steps), advice.cost_model(plan, steps)
    curve = forecaster.outcome(plan, asked["times"])
    paths = outcome_paths(forecaster, plan, asked["times"])
    return {
        "reward": draws.mean(),
        "rewardLow": final.low,
        "rewardHigh": final.high,
        "stable": found.probability,
        "least": found.least,
        "refresh": found.refresh,
        "tolerance": found.tolerance,
        "fluctuation": found.fluctuation,
        "completions": paid.completions,
        "gpuHours": paid.gpu_hours,
        "curve": [
            {"step": step, "mean": own.mean(), "low": np.quantile(path, 0.1),
             "high": np.quantile(path, 0.9)}
            for step, own, path in zip(asked["times"], curve.T, paths.T, strict=True)
        ],
    }  # fmt: skip


def questions(model: dict[str, Any], count: int = 25, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        one = {name: values[rng.integers(len(values))] for name, values in model["choices"].items()}
        asked.append({**one, "times": [0, one["planned_steps"] // 3, one["planned_steps"]]})
    return asked


def assert_same(page: Any, package: Any) -> None:
    if isinstance(package, dict):
        for name, value in package.items():
            assert_same(page[name], value)
    elif isinstance(package, list):
        for one, other in zip(page, package, strict=True):
            assert_same(one, other)
    elif package is None:
        assert page is None
    else:
        assert page == pytest.approx(package, abs=WITHIN, rel=1e-9)


PLANS: dict[str, dict[str, Any]] = {
    "constant": {},
    "warm-up and cosine": {"schedule": "cosine", "warmup_steps": 7},
    "linear": {"schedule": "linear"},
    "no importance ratio": {"importance_ratio": False},
    "no momentum": {"momentum": 0.0},
    "late samples": {"lag": 3.0, "momentum": 0.95},
}


@pytest.mark.parametrize("plan", PLANS)
def test_page_and_package_agree(posterior: Posterior, advice: Recommendation, plan: str) -> None:
    own = Settings.model_validate({**advice.settings.model_dump(), **PLANS[plan]})
    asked_of = advice.model_copy(update={"settings": own})
    model = explorer_data(posterior, asked_of)
    asked = questions(model)
    lengths = [one["planned_steps"] > model["constants"]["supported"] for one in asked]
    assert any(lengths) and not all(lengths)  # noqa: PT018
    for page, one in zip(by_page(model, asked), asked, strict=True):
        assert_same(page, by_package(posterior, asked_of, one))


def test_prompts_have_a_slider_where_the_answer_chose_among_them(
    posterior: Posterior, advice: Recommendation
) -> None:
    own = advice.settings.prompts_per_step
    for offered in ({}, {"prompts_per_step": (own,)}):
        kept = advice.model_copy(update={"choices": {**advice.choices, **offered}})
        assert "prompts_per_step" not in explorer_data(posterior, kept)["choices"]
    offered = {"prompts_per_step": (own / 4, 4 * own)}
    told = advice.model_copy(update={"choices": {**advice.choices, **offered}})
    model = explorer_data(posterior, told)
    assert model["choices"]["prompts_per_step"] == [own / 4, own, 4 * own]
    asked = questions(model, seed=2)
    for page, one in zip(by_page(model, asked), asked, strict=True):
        assert_same(page, by_package(posterior, told, one))


def test_they_agree_on_oscillators_held_out_rewards_and_prices(build: Build, advise: Build) -> None:
    plain = build(PILOTS)
    shape = plain.draws["is_oscillator"].shape
    swinging = np.arange(np.prod(shape), dtype=float).reshape(shape) % 2
    posterior = replace(
        plain,
        draws={**plain.draws, "is_oscillator": swinging},
        meta=plain.meta.model_copy(update={"evaluated": (True,) * len(plain.meta.groups)}),
    )
    advice = advise(posterior, PILOTS[0]).model_copy(
        update={"cost_model": CostModel(fixed=2.0, generated=0.1, trained=0.02, gpus=8, source="")}
    )
    model = explorer_data(posterior, advice)
    asked = questions(model, seed=1)
    found = by_page(model, asked)
    assert all(one["gpuHours"] is not None for one in found)
    for page, one in zip(found, asked, strict=True):
        assert_same(page, by_package(posterior, advice, one))


def test_the_check_would_see_another_number(posterior: Posterior, advice: Recommendation) -> None:
    model = explorer_data(posterior, advice)
    asked = questions(model, 1)
    model["constants"]["mostHazard"] *= 1.01
    model["reference"]["learning_rate"] *= 1.01
    (page,) = by_page(model, asked)
    with pytest.raises(AssertionError):
        assert_same(page, by_package(posterior, advice, asked[0]))


def test_what_is_advised_can_be_chosen(posterior: Posterior, advice: Recommendation) -> None:
    choices = explorer_data(posterior, advice)["choices"]
    assert advice.settings.learning_rate in choices["learning_rate"]
    assert advice.steps in choices["planned_steps"]
    assert all(values == sorted(set(values)) for values in choices.values())
    assert page_forecaster(posterior, advice).population["log_misfit"].size <= DRAWS
    assert settings(PILOTS[0]).group_size in choices["group_size"]
