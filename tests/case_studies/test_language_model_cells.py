"""Cells of three language models: the best rate, its interval, what moves it, and known rules."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "case_studies" / "language_model"
sys.path[:0] = [str(STUDY), str(STUDY.parent)]

import cells  # noqa: E402
from cell_plan import Cell  # noqa: E402
from cells import Ladder, best_rates, deaths, moved, seed_deviation  # noqa: E402

SHARP = (0.1, 0.3, 0.9, 0.6, 0.2, 0.0)
FLAT = (0.50, 0.51, 0.52, 0.52, 0.51, 0.50)


def _ladder(ends, seeds=2, spread=0.02, horizon=60, **cell):
    """Ends by rate; seeds lie symmetrically about them."""
    own = Cell(**({"model": "gemma", "task": "largest"} | cell))
    away = spread * np.linspace(-1, 1, seeds) if seeds > 1 else np.zeros(1)
    return Ladder(
        own, horizon, {rate: end + away for rate, end in zip(own.rates, ends, strict=True)}
    )


def test_a_sharp_ladder_has_one_best_rate_and_a_flat_one_does_not():
    sharp, flat = _ladder(SHARP), _ladder(FLAT)
    assert set(best_rates(sharp, 0.05).round(6)) == {-6.0}
    low, high = np.quantile(best_rates(flat, 0.05), [0.1, 0.9])
    assert high - low >= 1.5
    # More seeds tell the same rates apart.
    many = best_rates(_ladder(FLAT, seeds=2000), 0.05)
    assert np.ptp(np.quantile(many, [0.1, 0.9])) <= 0.5 + 1e-9


def test_the_deviation_is_that_of_seeds_and_not_of_rates():
    rng = np.random.default_rng(1)
    drawn = [
        Ladder(
            one.cell,
            60,
            {rate: end + 0.08 * rng.standard_normal(2) for rate, end in one.means.items()},
        )
        for one in [_ladder(SHARP)] * 60
    ]
    found, repeats = seed_deviation(drawn)
    assert repeats == 360
    assert found == pytest.approx(0.08, rel=0.1)
    assert seed_deviation([_ladder(SHARP, seeds=1)]) == (0.0, 0)


def test_what_moves_the_best_rate_is_read_from_pairs_that_one_factor_tells_apart():
    base = _ladder(SHARP)
    higher = _ladder((0.0, *SHARP[:5]), completions=64)
    elsewhere = _ladder(SHARP, completions=64, task="reversed")
    rows = moved([base, higher, elsewhere], [0.02] * 3)
    assert [(one["factor"], one["from"], one["to"], one["pairs"]) for one in rows] == [
        ("completions", 16, 64, 1)
    ]
    assert rows[0]["decades_80"] == pytest.approx([0.48] * 3, abs=0.01)
    # The control: the same ladder at another batch has not moved.
    same = moved([base, _ladder(SHARP, completions=64)], [0.02] * 2)
    assert same[0]["decades_80"] == [0.0, 0.0, 0.0]


class _Fluctuating:
    """A run of a group size, with seed, whose rewards are given."""

    steps, died_at, unstable = 60, None, False

    def __init__(self, reward, group=8, completions=16, seed=1):
        cell = Cell("gemma", "largest", group=group, completions=completions)
        self.configuration, self.own = cell.run(1e-6, seed).configuration, {"seed": seed}
        self.rewards = np.arange(1.0, len(reward) + 1), np.asarray(reward, float)


@pytest.mark.parametrize(("power", "moved_by"), [(-1.0, 0.0), (0.0, 0.2)])
def test_pairs_of_group_sizes_show_what_was_put_in(power, moved_by):
    import group_sizes

    rng = np.random.default_rng(1)

    def run(group, seed):
        noise = 0.1 * np.sqrt((group / 4) ** power) * rng.standard_normal(60)
        return _Fluctuating(0.5 + moved_by * (group == 16) + noise, group, 2 * group, seed)

    runs = [("task", run(group, seed)) for seed in range(40) for group in (4, 16)]
    assert not group_sizes.pairs(runs, "completions")
    found = group_sizes.compared(group_sizes.pairs(runs, "prompts")[4, 16])
    assert found["pairs"] == 40
    assert found["curve"]["mean"] == pytest.approx(moved_by, abs=0.02)
    # It is of the variance in units of p (1 - p), and p has moved.
    of_level = np.log(0.25 / (0.25 - moved_by**2)) / np.log(4)
    assert found["variance_power"]["mean"] == pytest.approx(power + of_level, abs=0.1)


@pytest.mark.parametrize("of", [1.0, 0.0], ids=["the paper's limit", "none: the control"])
def test_the_power_of_the_interval_is_the_one_that_was_put_in(of):
    import refresh

    rng = np.random.default_rng(2)
    rows = []
    for place in range(1200):
        rate, interval = rng.uniform(-5, -3), np.log10(2.0) * rng.integers(5)
        failed = rate + of * interval + 0.2 * rng.standard_normal() > -3.7
        rows.append(refresh.Row(list(refresh.TASKS)[place % 6], rate, interval, 1.5, 0.9, failed))
    assert refresh.power(rows) == pytest.approx(of, abs=0.1)


def test_a_run_fails_that_gains_little_of_what_the_best_of_its_task_gained():
    import refresh

    class Run:
        def __init__(self, *held_out, rate=1e-5):
            self.own = {"diverged": False}
            self.configuration = Cell("gemma", "largest", epochs=4).run(rate, 1).configuration
            self.held_out = np.array(held_out)

        def evaluations(self):
            return np.arange(self.held_out.size), self.held_out

    runs = [Run(0.1, 0.9, 0.9), Run(0.1, 0.9, 0.3, 0.3), Run(0.1, 0.9, 0.9, rate=1e-6)]
    rows = refresh.rows_of("sums", runs, 0.5)
    assert [row.failed for row in rows] == [False, True]
    assert rows[0].interval == pytest.approx(np.log10(4))
    assert [row.failed for row in refresh.rows_of("sums", runs, 0.2)] == [False, False]


def test_what_is_advised_across_models_is_scored_beside_the_ladder(tmp_path, monkeypatch):
    import live_across

    loop = live_across.Loop(Cell("gemma", "largest"), ("smollm2",))
    assert loop.small("smollm2") == Cell("smollm2", "largest")
    settings = {"group_size": 4, "prompts_per_step": 4.0, "minibatches_per_refresh": 1}
    settings |= {"epochs_per_refresh": 1, "learning_rate": 2e-6}
    reward = {"low": 0.4, "median": 0.5, "high": 0.6}
    answer = {"kind": "recommendation", "settings": settings, "p_stable": 0.9, "reward": reward}
    later = answer | {"settings": settings | {"learning_rate": 2.05e-6}}
    answers = {live_across.ADVICE: answer, live_across.OWN: {"refused": "no"}}
    answers |= {live_across.MENDED: later}
    answers |= {"best pilot": {"model": "smollm2", "rate": 1e-5}, "transferred": 9e-6}
    answers["price"] = {}

    class Run(_Fluctuating):
        def __init__(self, end, rate, seed):
            super().__init__(np.full(60, end), seed=seed)
            self.configuration = self.configuration._replace(rate=rate)

    def runs_at(cell, rate):
        if cell.group == 4:
            return [Run(0.5, rate, 11), Run(0.7, rate, 12), Run(0.0, rate, 1)]
        return [Run(0.2, rate, 1)]

    there = [Run(0.5, rate, 11) for rate in (2e-6, 2e-5)]
    monkeypatch.setattr(live_across, "trained", lambda place: there)
    monkeypatch.setattr(live_across, "runs_at", runs_at)
    monkeypatch.setattr(live_across, "ladders", lambda cell: [_ladder(SHARP)])
    found = live_across.told(loop, answers)["methods"]
    assert found[live_across.ADVICE]["regret"] == pytest.approx(0.3)
    assert found[live_across.ADVICE]["held"] == [True, False]
    # Every seed of the rate beside it, and none of one that is ten times as high.
    assert found[live_across.MENDED]["ends"] == [0.5, 0.7, 0.0]
    assert live_across.OWN not in found
    assert found["the constant"]["regret"] == pytest.approx(0.7)
    assert found["TRL's default"]["regret"] == pytest.approx(0.0)
    summed = live_across.summary([live_across.told(loop, answers)])
    assert summed[live_across.ADVICE]["intervals held"] == [1, 2]


def test_deaths_are_late_where_the_best_came_after_half():
    class Run:
        steps = 60

        def __init__(self, died_at):
            self.died_at, self.unstable = died_at, died_at == 10.0

    found = deaths([Run(None), Run(0.0), Run(10.0), Run(30.0), Run(44.0)])
    assert found == {
        "runs": 5,
        "died": 4,
        "early": 2,
        "late": 2,
        "late and fell for good": 0,
        "fell for good": 1,
    }


def test_a_rate_is_transferred_by_the_ratio_of_the_formula():
    from cells import transferred

    assert transferred(1e-5, "smollm2", "smollm2") == 1e-5
    assert transferred(1e-5, "smollm2", "gemma") == pytest.approx(1e-5 * (576 / 640) ** 0.781)
    assert transferred(1e-5, "gemma", "qwen") < transferred(1e-5, "gemma", "smollm2")


def test_ladders_are_read_at_every_horizon_of_their_runs(tmp_path, monkeypatch):
    cell = Cell("gemma", "largest")

    class Run:
        steps = 60

        def __init__(self, rate):
            self.configuration = cell.run(rate, 1).configuration
            step = np.arange(1.0, 61.0)
            self.rewards = step, step * rate * 1e3

    monkeypatch.setattr(cells, "unpack", lambda place: tmp_path)
    monkeypatch.setattr(cells, "trained", lambda folder: [Run(rate) for rate in cell.rates])
    short, whole = cells.ladders(cell)
    assert (short.horizon, whole.horizon) == (30, 60)
    assert short.means[1e-6] == pytest.approx(27.5e-3)
    assert whole.means[1e-6] == pytest.approx(57.5e-3)
    # Half of a ladder is not read: its best rate may be among those that lack.
    monkeypatch.setattr(cells, "trained", lambda folder: [Run(rate) for rate in cell.rates[:4]])
    assert cells.ladders(cell) == []
