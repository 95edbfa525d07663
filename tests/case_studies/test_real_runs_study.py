"""The study of real runs: what its index reader reads, and that no method looks ahead."""

from __future__ import annotations

import json

import numpy as np
import pytest
from learned_priors import past_study
from simulated_runs import Plan, made_up_posterior
from studies import modules_of

from advisor.backtesting import Case
from advisor.model import load_priors

PARTS = ("index", "methods", "pilots", "interim", "analogue_learning", "run")

with modules_of("real_runs", (*PARTS, "advise")) as modules:
    advise_study, interim = modules["advise"], modules["interim"]


@pytest.fixture(scope="module")
def study():
    with modules_of("real_runs", ("index", "methods", "pilots")) as found:
        yield found


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
def test_every_reader_reads_the_same_rewards(study, tmp_path, reader):
    (tmp_path / reader).write_text(FILES[reader][0], encoding="utf-8")
    indexed(tmp_path, [row_of(reader)])
    (run,), unread = study["index"].read_index(tmp_path)
    assert unread == []
    assert run.reward.tolist() == REWARDS
    assert run.step.tolist() == [1, 2, 3, 4]


def test_one_unreadable_file_does_not_stop_the_others(study, tmp_path):
    (tmp_path / "csv").write_text(FILES["csv"][0], encoding="utf-8")
    (tmp_path / "jsonl").write_text('{"type": "rollout", "st', encoding="utf-8")
    indexed(
        tmp_path,
        [
            row_of("csv"),
            row_of("jsonl"),
            row_of("regex"),
            row_of("csv") | {"reader": "x", "local_file": "none"},
        ],
    )
    found, unread = study["index"].read_index(tmp_path)
    assert [run.id for run in found] == ["csv"]
    assert len(unread) == 3


def test_settings_are_those_that_stand_there_plainly(study):
    row = dict.fromkeys(COLUMNS, "")
    row |= {
        "learning_rate": "4e-05 (column)",
        "group_size": "8",
        "notes": "LoRA r16; 256 completions per step",
        "steps_per_refresh_or_num_iterations": "16 optimizer updates (epochs 4 x 256/64)",
        "kl_beta": "0.04 (loss/kl)",
        "lr_schedule": "cosine, warm-up 0.1",
    }
    assert study["pilots"].told_settings(row) == {
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
    told = study["pilots"].told_settings(row)
    assert not {"learning_rate", "group_size", "kl_coefficient", "adapter"} & set(told)


def question(study, reward, share=0.25, siblings=()):
    step = np.arange(1.0, reward.size + 1)
    seen, last = step <= share * reward.size, step > 0.9 * reward.size
    target = float(reward[last].mean())
    return study["methods"].Asked(
        run="a",
        repository="o/r",
        case=Case(Plan().run(reward[seen], step=step[seen]), step[last], target),
        step=step[seen],
        reward=reward[seen],
        steps=step[last],
        end=float(reward.size),
        target=target,
        span=float(np.ptp(reward)),
        bounds=(0.0, 1.0),
        siblings=siblings,
        told={},
    )


def test_rules_are_what_they_are_called(study):
    methods = study["methods"]
    one = question(study, np.linspace(0.0, 0.99, 120))
    assert methods.last_third(one) == pytest.approx(one.reward[-10:].mean())
    assert methods.last_value(one) == pytest.approx(one.reward[-6:].mean())
    sibling = (np.arange(1.0, 121.0), np.linspace(0.0, 0.99, 120))
    beside = question(study, np.linspace(0.0, 0.99, 120), siblings=(sibling,))
    assert methods.siblings_gain(beside) == pytest.approx(beside.target, abs=0.01)
    assert methods.siblings_gain(one) == methods.last_third(one)


def test_curves_follow_what_is_theirs(study):
    """Each family is nearest where the truth is its own; a constant is no family's plateau."""
    step = np.arange(1.0, 201.0)
    truth = 0.2 + 0.6 * -np.expm1(-step / 25)
    found = study["methods"].curves(question(study, truth, 0.5))
    assert np.median(found["exponential"]) == pytest.approx(0.8, abs=0.01)
    assert np.median(found["ensemble of curves"]) == pytest.approx(0.8, abs=0.02)
    assert all(draws.size == study["methods"].DRAWS for draws in found.values())


def test_local_level_stays_where_it_is_and_widens(study):
    rng = np.random.default_rng(3)
    walk = 0.5 + np.cumsum(0.01 * rng.standard_normal(400))
    early, late = (
        study["methods"].curves(question(study, walk, s))["local level"] for s in (0.2, 0.85)
    )
    assert np.std(early) > np.std(late)
    assert np.median(late) == pytest.approx(walk[int(0.85 * 400) - 1], abs=0.03)


def test_spread_is_that_of_the_errors_elsewhere(study):
    errors = np.random.default_rng(0).normal(1.0, 0.5, 4000)
    draws = study["methods"].with_spread(2.0, errors, 3.0)
    assert np.median(draws) == pytest.approx(2.0, abs=1e-2)
    assert np.std(draws) == pytest.approx(1.5, rel=0.03)


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


def test_which_sibling_ends_higher_is_scored_by_draws_of_its_own_and_of_one_rank():
    levels = np.array(advise_study.LEVELS)
    found = []
    for number in range(20):
        # Hardly apart and wide: which ends higher is a toss, whatever ranks are compared.
        ends = (0.6, 0.4) if number % 2 else (0.4, 0.6)
        for place, came in enumerate(ends):
            said = {"advisor": (0.2 + 0.5 * levels + 0.01 * place).tolist()}
            found.append({"cohort": f"{number}", "seen": 0.1, "came": came, "said": said})
    told = advise_study.ordered(found)
    assert told["pairs"] == told["cohorts and looks"] == 20
    assert told["draws of its own"]["brier"] == pytest.approx(0.25, abs=0.01)
    assert told["draws of its own"]["surely"] == 0
    assert told["of the same rank"]["brier"] == pytest.approx(0.5)
    assert (told["of the same rank"]["surely"], told["of the same rank"]["of these right"]) == (
        20,
        0.5,
    )


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
