"""The study of real runs: what its index reader reads, and that no method looks ahead."""

from __future__ import annotations

import json

import numpy as np
import pytest
from learned_priors import past_study
from simulated_runs import Plan, made_up_posterior
from studies import modules_of

from advisor.model import load_priors

PARTS = ("index", "methods", "pilots", "interim", "analogue_learning", "run")

with modules_of("real_runs", (*PARTS, "advise", "siblings")) as modules:
    advise_study, interim, siblings = (modules[name] for name in ("advise", "interim", "siblings"))


COLUMNS = (
    *("id", "repo", "model", "params_B", "task", "group_size", "learning_rate", "lr_schedule"),
    *("steps_per_refresh_or_num_iterations", "kl_beta", "notes", "framework", "local_file"),
    *("reader", "step_key", "reward_key", "filter", "log_every"),
)

REWARDS = [0.125, 0.25, 0.5, 0.75]

CELL = {
    "outputs": [
        {
            "data": {
                "text/html": [
                    "<tr><th>Step</th><th>reward</th></tr>",
                    *(
                        f"<tr><td>{k + 1}</td><td><b>{r}</b></td></tr>"
                        for k, r in enumerate(REWARDS)
                    ),
                ]
            }
        }
    ]
}

FILES = {
    "trl_console": (
        "".join(f"{{'loss': 0.1, 'reward': '{r}'}}\n" for r in REWARDS),
        "",
        "reward",
        "",
    ),
    "csv": (
        "Step,reward,arm\n" + "".join(f"{k},{r},a\n{k},9,b\n" for k, r in enumerate(REWARDS, 1)),
        "Step",
        "reward",
        "arm=a",
    ),
    "jsonl": (
        "".join(
            json.dumps({"type": kind, "step": k, "reward": r if kind == "rollout" else 9}) + "\n"
            for k, r in enumerate(REWARDS, 1)
            for kind in ("rollout", "train")
        ),
        "step",
        "reward",
        "type=rollout",
    ),
    "json_list": (
        json.dumps({"n": 4, "steps": [{"step": k, "r": r} for k, r in enumerate(REWARDS, 1)]}),
        "step",
        "r",
        "",
    ),
    "json_path": (json.dumps({"a": [{"log": REWARDS}]}), "step", "reward", "a.0.log"),
    "json_columns": (json.dumps({"reward": REWARDS}), "", "reward", ""),
    "trl_state": (
        json.dumps({"log_history": [{"step": k, "reward": r} for k, r in enumerate(REWARDS, 1)]}),
        "step",
        "reward",
        "",
    ),
    "verl_console": (
        "".join(
            f"step:{k} - a/b:1 - critic/score/mean:np.float64({r}) - x:2\n"
            for k, r in enumerate(REWARDS, 1)
        ),
        "step",
        "critic/score/mean",
        "",
    ),
    "tinker_log": ("".join(f"step done reward={r} loss=0\n" for r in REWARDS), "", "reward", ""),
    "regex": (
        "".join(f"Step {k} | Mean Reward: {r}\n" for k, r in enumerate(REWARDS, 1)),
        "Step",
        "Mean Reward",
        r"Step (\d+) \| Mean Reward: ([-\d.]+)",
    ),
    "nb_table": (json.dumps({"cells": [{}, CELL]}), "Step", "reward", "cell=1"),
}


def indexed(folder, rows):
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join(str(row.get(name, "")) for name in COLUMNS) for row in rows]
    (folder / "INDEX.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def row_of(reader, **more):
    _, step, reward, chosen = FILES[reader]
    return {
        "id": reader,
        "repo": "o/r",
        "local_file": reader,
        "reader": reader,
        "step_key": step,
        "reward_key": reward,
        "filter": chosen,
        "log_every": 1,
        **more,
    }


@pytest.mark.parametrize("reader", FILES)
def test_every_reader_reads_the_same_rewards(tmp_path, reader):
    (tmp_path / reader).write_text(FILES[reader][0], encoding="utf-8")
    indexed(tmp_path, [row_of(reader)])
    (run,), unread = modules["index"].read_index(tmp_path)
    assert unread == []
    assert run.reward.tolist() == REWARDS
    assert run.step.tolist() == [1, 2, 3, 4]


def test_settings_are_those_that_stand_there_plainly():
    row = dict.fromkeys(COLUMNS, "")
    row |= {
        "learning_rate": "4e-05 (column)",
        "group_size": "8",
        "notes": "LoRA r16; 256 completions per step",
        "steps_per_refresh_or_num_iterations": "16 optimizer updates (epochs 4 x 256/64)",
        "kl_beta": "0.04 (loss/kl)",
        "lr_schedule": "cosine, warm-up 0.1",
    }
    assert modules["pilots"].told_settings(row) == {
        "learning_rate": 4e-5,
        "group_size": 8,
        "prompts_per_step": 32.0,
        "epochs_per_refresh": 4,
        "minibatches_per_refresh": 4,
        "kl_coefficient": 0.04,
        "schedule": "cosine",
        "adapter": "lora",
    }
    row |= {"learning_rate": "unknown", "group_size": "3 (default)", "kl_beta": "", "notes": ""}
    told = modules["pilots"].told_settings(row)
    assert not {"learning_rate", "group_size", "kl_coefficient", "adapter"} & set(told)


def forecasts_of(spread, misses, *, repository="r", times=4.0):
    """Records of the study of advice: a normal round what came, moved by each miss."""
    rng = np.random.default_rng(3)
    found = []
    for number, miss in enumerate(misses):
        said = np.quantile(0.5 + miss + spread * rng.standard_normal(4000), advise_study.LEVELS)
        found.append(
            {
                "repository": repository,
                "run": f"{repository} {number}",
                "times": times,
                "in_sweep": repository == "other",
                "came": 0.5,
                "said": dict.fromkeys(advise_study.METHODS, said.tolist()),
            }
        )
    return found


def test_advice_is_scored_by_repository_and_by_how_long_a_run_is():
    found = [
        *forecasts_of(0.1, [0.02] * 30),
        *forecasts_of(0.01, [0.1], repository="other"),
        *forecasts_of(0.1, [0.0], repository="far", times=8.0),
    ]
    told = advise_study.summary(found)
    near = told["3-6"]
    assert (near["n"], near["repositories"]) == (31, 2)
    # Thirty runs of one repository count as much as the one of another.
    assert near["mae"] == pytest.approx((0.02 + 0.1) / 2, abs=0.005)
    assert near["bias"] == pytest.approx(-0.06, abs=0.005)
    assert near["coverage"]["0.8"] == 0.5
    assert told["6-12"]["n"] == 1
    assert "1-3" not in told
    assert told["piloted"]["n"] == 32
    scored = [near["crps"] * 2 - told["sweeps"]["other"]["crps"], told["sweeps"]["other"]["crps"]]
    error = np.std(scored, ddof=1) / np.sqrt(2)
    assert near["crps_standard_error"] == pytest.approx(error, abs=2e-4)
    assert list(told["sweeps"]) == ["other"]
    assert told["sweeps"]["other"]["holds of runs"] == 0.0


def cohorts_of(shared, *, count=150, runs=3):
    """Cohorts whose runs are missed together, and forecasts that are drawn one by one."""
    rng, found = np.random.default_rng(5), []
    for number in range(count):
        common = rng.standard_normal()
        missed = np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.standard_normal(runs)
        draws = 0.5 + 0.1 * rng.standard_normal((runs, 200))
        came = 0.5 + 0.1 * missed
        found.append({"repository": f"r{number}", "draws": draws.tolist(), "came": came.tolist()})
    return found


def test_runs_that_are_missed_together_need_a_level_more():
    """Control: a level more is too much where each run is missed by itself."""
    together, apart = (siblings.summary(cohorts_of(shared)) for shared in (0.4, 0.0))
    assert together["as drawn"]["misses"] == pytest.approx(0.4, abs=0.12)
    assert together["as drawn"]["mean held"] < 0.75
    assert together["level of 0.4"]["mean held"] == pytest.approx(0.8, abs=0.07)
    assert together["level of 0.4"]["pairs held"] == pytest.approx(0.8, abs=0.06)
    assert together["level of 0.4"]["pairs crps"] < together["as drawn"]["pairs crps"]
    assert apart["level of 0.8"]["pairs crps"] > apart["as drawn"]["pairs crps"]
    assert apart["level of 0.8"]["draws"] == pytest.approx(0.8, abs=0.05)
    assert apart["as drawn"]["misses"] == pytest.approx(0.0, abs=0.12)
    assert apart["level of 0.8"]["pairs held"] < 0.6 < 0.76 < apart["as drawn"]["pairs held"]


def test_a_level_more_leaves_the_forecast_of_a_single_run():
    draws = np.random.default_rng(1).gamma(2.0, size=(2, 800))
    moved = siblings.with_level(draws, 0.8, np.random.default_rng(0))
    assert np.sort(moved, axis=1) == pytest.approx(np.sort(draws, axis=1))
    assert np.corrcoef(moved)[0, 1] > 0.6 > 0.2 > np.corrcoef(draws)[0, 1]


def test_a_preset_is_learned_from_what_cohorts_said_and_one_sided_entries_are_left():
    before, wide = load_priors(interim.BEFORE), load_priors(interim.INTERIM)
    studies = []
    for number in range(6):
        plans = [Plan(rate, task=f"t{number}") for rate in (1e-6, 3e-6, 1e-5)]
        posterior = made_up_posterior(plans, draws=200, seed=number)
        studies.append(past_study(posterior).model_copy(update={"data": f"{number}"}))
    learned = interim.learned_preset(studies, "learned")
    assert learned.start_logit != before.start_logit
    for entry in interim.ONE_SIDED:
        assert getattr(learned, entry) == getattr(before, entry)
    assert learned.start_logit.sd <= wide.start_logit.sd
