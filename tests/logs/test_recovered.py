"""Settings told from metrics: right where they speak, and silent where they cannot know."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from advisor.runs import read_runs
from advisor.runs.logs.recovered import (
    Guess,
    _poisson_tail,
    completions_per_row,
    group_size_of,
    groups_per_row,
    kl_coefficient_from_loss,
    print_error,
)
from advisor.theory import FloatArray

Print = Callable[[FloatArray], FloatArray]

ROWS = 100
SEEDS = 40


def four_digits(values: FloatArray) -> FloatArray:
    return np.array([float(f"{value:.4g}") for value in values])


PRINTS: dict[str, Print] = {
    "as they are": lambda values: values,
    "single": lambda values: values.astype(np.float32).astype(float),
    "four digits": four_digits,
    "six decimals": lambda values: np.round(values, 6),
    "three decimals": lambda values: np.round(values, 3),
}
prints = pytest.mark.parametrize("shown", PRINTS.values(), ids=list(PRINTS))


def generator(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def drifting_kl(rng: np.random.Generator, rows: int = ROWS) -> FloatArray:
    """A KL that grows by an order of magnitude, as it does when a run learns."""
    return np.linspace(0.01, 0.2, rows) * rng.lognormal(0, 0.3, rows)


def grouped_rewards(
    rng: np.random.Generator, rows: int, prompts: int, size: int, alike: float
) -> FloatArray:
    """Means of 0/1 rewards; the smaller ``alike``, the more groups are all right or all wrong."""
    chance = rng.beta(alike, alike, (rows, prompts))
    return rng.binomial(size, chance).sum(axis=1) / (prompts * size)


# Printed precision


def test_the_error_of_what_is_printed() -> None:
    assert print_error(np.array([0.25, 0.5, 1.0])) == pytest.approx([0.005, 0.005, 0.05])
    assert print_error(np.array([1.169e-05, 0.1599])) == pytest.approx([5e-9, 5e-5])
    assert print_error(np.array([0.0, 12.0])) == pytest.approx([0.5, 0.5])
    assert print_error(np.zeros(0)).size == 0


# KL coefficient


@pytest.mark.parametrize("shown", list(PRINTS.values())[:4], ids=list(PRINTS)[:4])
@pytest.mark.parametrize("coefficient", [0.04, 0.001, 0.1, 0.015])
def test_a_kl_coefficient_is_told(shown: Print, coefficient: float) -> None:
    kl = 5 * drifting_kl(generator(1))
    guess = kl_coefficient_from_loss(shown(coefficient * kl), shown(kl))
    assert guess is not None
    assert guess.value == coefficient
    assert f"loss / kl is {coefficient:g} in" in guess.why


def test_the_policy_term_vanishes_in_rows_without_signal() -> None:
    rng = generator(2)
    kl = drifting_kl(rng)
    policy = rng.normal(0, 0.02, ROWS)
    policy[rng.uniform(size=ROWS) < 0.3] = 0
    guess = kl_coefficient_from_loss(four_digits(0.04 * kl + policy), four_digits(kl))
    assert guess is not None
    assert guess.value == 0.04


def test_where_a_ratio_tells_nothing() -> None:
    rng = generator(4)
    kl = drifting_kl(rng)
    nothing = np.full(ROWS, np.nan)
    assert kl_coefficient_from_loss(np.full(ROWS, 0.04), np.ones(ROWS)) is None
    assert kl_coefficient_from_loss(np.full(ROWS, 0.04 * kl[0]), np.full(ROWS, kl[0])) is None
    assert kl_coefficient_from_loss(-0.04 * kl, kl) is None
    assert kl_coefficient_from_loss(np.zeros(ROWS), kl) is None
    assert kl_coefficient_from_loss(nothing, kl) is None
    assert kl_coefficient_from_loss(0.04 * kl, np.zeros(ROWS)) is None
    assert kl_coefficient_from_loss(0.04 * kl[:4], kl[:4]) is None
    assert kl_coefficient_from_loss(np.zeros(0), np.zeros(0)) is None
    # Constant, but no number that a person would have set.
    assert kl_coefficient_from_loss(0.012345 * kl, kl) is None
    with_gaps = np.where(np.arange(ROWS) % 3, 0.04 * kl, np.nan)
    guess = kl_coefficient_from_loss(with_gaps, kl)
    assert guess is not None
    assert guess.value == 0.04


@pytest.mark.parametrize("noise", [0.003, 0.03, 0.1, 0.3, 1.0, 10.0])
def test_how_often_a_policy_term_misleads(noise: float) -> None:
    """The policy term in units of the penalty: never a wrong coefficient, nor one by luck."""
    wrong = spoken = 0
    for seed in range(SEEDS):
        rng = generator(5, seed)
        kl = drifting_kl(rng)
        policy = rng.normal(0, noise * 0.04 * float(np.median(kl)), ROWS)
        loss = 0.04 * kl + policy
        shows = [(shown(loss), shown(kl)) for shown in PRINTS.values()]
        for shown_loss, shown_kl in (*shows, (np.round(loss, 4), kl)):
            guess = kl_coefficient_from_loss(shown_loss, shown_kl)
            spoken += guess is not None
            wrong += guess is not None and guess.value != 0.04
    assert wrong == 0
    if noise >= 0.3:
        assert spoken == 0


@pytest.mark.evidence
def test_how_often_unrelated_series_speak() -> None:
    spoken = 0
    for seed in range(10 * SEEDS):
        rng = generator(6, seed)
        kl = drifting_kl(rng)
        # A loss of its own, and a penalty averaged over a fixed length (Dr. GRPO).
        for loss in (rng.lognormal(-4, 1, ROWS), 0.04 * kl * rng.uniform(0.3, 0.7, ROWS)):
            spoken += kl_coefficient_from_loss(four_digits(loss), four_digits(kl)) is not None
    assert spoken == 0


# Completions and groups


@prints
@pytest.mark.parametrize(("prompts", "size"), [(1, 8), (4, 2), (2, 8), (3, 6), (32, 8)])
def test_completions_are_told(shown: Print, prompts: int, size: int) -> None:
    reward = grouped_rewards(generator(7, prompts), 200, prompts, size, 1.0)
    guess = completions_per_row(shown(reward))
    assert guess is not None
    assert guess.value == prompts * size
    assert guess.why == (
        f"every reward is a multiple of 1/{prompts * size}, if a completion scores 0 or 1"
    )


def test_a_window_adds_up() -> None:
    steps = grouped_rewards(generator(8), 500, 2, 8, 1.0)
    reward = four_digits(steps.reshape(100, 5).mean(axis=1))
    guess = completions_per_row(reward, 5)
    assert guess is not None
    assert guess.value == 80
    # Without the window, 80 completions look like 16 with credit of a fifth.
    assert completions_per_row(reward) is None
    assert completions_per_row(reward, 7) is None


@pytest.mark.evidence
@prints
def test_how_often_rewards_without_a_step_speak(shown: Print) -> None:
    spoken = 0
    for seed in range(5 * SEEDS):
        rng = generator(11, seed)
        rows = int(rng.integers(20, 200))
        changing = rng.integers(40, 64, rows)
        curve = 0.2 + 0.5 * (1 - np.exp(-3 * np.arange(rows) / rows)) + rng.normal(0, 0.03, rows)
        for reward in (
            rng.uniform(size=rows),
            rng.binomial(changing, 0.5) / changing,
            np.clip(curve, 0, 1),
        ):
            spoken += completions_per_row(shown(reward)) is not None
    # 600 series, of which chance may pass one in a thousand.
    assert spoken <= 2


@pytest.mark.evidence
def test_how_often_a_count_is_wrong() -> None:
    """Groups that are nearly all silent hide steps finer than a group; few rows hide any."""
    wrong = right = 0
    for seed in range(SEEDS):
        for prompts, size in ((1, 8), (2, 8), (4, 4), (8, 8)):
            for rows in (20, 50, 200):
                for alike in (0.05, 0.3, 1.0):
                    rng = generator(12, seed, prompts, size, rows)
                    reward = four_digits(grouped_rewards(rng, rows, prompts, size, alike))
                    guess = completions_per_row(reward)
                    wrong += guess is not None and guess.value != prompts * size
                    right += guess is not None and guess.value == prompts * size
    assert wrong == 0
    assert right > 0.5 * SEEDS * 4 * 9


def test_groups_and_their_size() -> None:
    rng = generator(13)
    chance = rng.beta(0.5, 0.5, (200, 8))
    right = rng.binomial(4, chance)
    silent = ((right == 0) | (right == 4)).mean(axis=1)
    completions, groups = completions_per_row(right.mean(axis=1) / 4), groups_per_row(silent)
    assert completions is not None
    assert groups is not None
    assert (completions.value, groups.value) == (32, 8)
    assert groups.why == "every share of silent groups is a multiple of 1/8"
    size = group_size_of(completions, groups)
    assert size is not None
    assert size.value == 4
    assert size.why.startswith("32 completions / 8 groups in a row: every reward")
    assert group_size_of(None, groups) is None
    assert group_size_of(completions, None) is None
    assert group_size_of(Guess(30, ""), groups) is None
    assert group_size_of(Guess(8, ""), groups) is None


# Real logs


def series(path: Path, key: str) -> FloatArray:
    """Values of one key in the dicts that a console shows."""
    found = re.findall(r"\{'loss'[^}]*\}", path.read_text(errors="replace"))
    return np.array([float(ast.literal_eval(row).get(key, "nan")) for row in found])


def test_real_consoles_of_trl(real_logs: Path) -> None:
    folder = real_logs / "Sunshine535__nips-grpo-dynamics"
    paths = sorted(folder.glob("gates_1_2__*.log"))
    assert paths
    for path in paths:
        guess = kl_coefficient_from_loss(series(path, "loss"), series(path, "kl"))
        assert guess is not None, path.name
        assert guess.value == 0.04
        completions = completions_per_row(series(path, "reward"))
        assert completions is not None, path.name
        assert completions.value == 8


@pytest.mark.parametrize(
    ("least", "mean"), [(1, 0.05), (5, 0.5), (12, 12.0), (40, 900.0), (900, 700.0)]
)
def test_the_chance_of_a_count_is_the_poisson_tail(least, mean):
    from scipy.special import pdtrc

    assert _poisson_tail(least, mean) == pytest.approx(pdtrc(least - 1, mean), rel=1e-9)


@pytest.mark.parametrize(("spacing", "known"), [(1, 0.05), (2, None)])
def test_a_second_update_on_some_rollouts_tells_no_penalty(tmp_path, spacing, known) -> None:
    """Its loss has a part of the policy, and a trainer averages both."""
    rng = np.random.default_rng(5)
    kl = np.round(np.geomspace(0.01, 0.5, 60) * rng.uniform(0.8, 1.2, 60), 4)
    rows = [
        {"step": n + 1, "learning_rate": 1e-6, "loss": round(0.05 * k / spacing, 6)}
        | ({"reward": rng.random(), "reward_std": 0.1, "kl": k} if n % spacing == 0 else {})
        for n, k in enumerate(kl.tolist())
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": rows}))
    (run,) = read_runs(tmp_path)
    assert run.hyperparameters.minibatches_per_refresh == (spacing if spacing > 1 else None)
    assert run.hyperparameters.kl_coefficient == known


def test_a_penalty_that_is_logged_with_its_weight_tells_none() -> None:
    kl = np.random.default_rng(3).lognormal(-5, 1, 60)
    assert kl_coefficient_from_loss(kl, kl) is None
    found = kl_coefficient_from_loss(0.04 * kl, kl)
    assert found is not None
    assert found.value == pytest.approx(0.04)
