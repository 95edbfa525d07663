"""What bears on the answer: pilots that start apart, PPO in place of GRPO, groups of one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from advisor import inspect, read_runs
from advisor.common import Kind
from advisor.errors import InputError
from advisor.model import cohort_of
from advisor.runs import PartialSettings, PilotRun
from advisor.runs.several_runs import warn_of_starts

NO_GROUP = "one completion is no group: those of a prompt were miscounted, or this is not GRPO"
NO_PILOT = "a later stage or a resumed run is no pilot of its own"
STARTS_APART = "runs that count as one model on one task start at"


def runs_of_a_file(path, *rewards):
    """A file of runs, one a line, whose settings are known."""
    given = {"model": "Qwen2.5-0.5B", "learning_rate": 1e-6, "group_size": 8}
    given |= {"prompts_per_step": 8, "minibatches_per_refresh": 1, "epochs_per_refresh": 1}
    rows = [{"id": f"run {n}", **given, "reward": own} for n, own in enumerate(rewards, start=1)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


@pytest.mark.parametrize(
    ("reward", "why"),
    [
        ([0.3], "run 'run 3' has only 1 row with a reward"),
        ([float("nan")] * 12, "run 'run 3': 12 of 12 rewards are NaN, infinite or beyond 1e30"),
        ([], "run 'run 3': no row has a reward"),
    ],
)
def test_commands_leave_out_the_same_run_for_the_same_reason(tmp_path, run, reward, why):
    rises = [[0.2 + 0.01 * n + 0.001 * (n % 3) * seed for n in range(12)] for seed in (1, 2)]
    runs_of_a_file(tmp_path / "runs.jsonl", *rises, reward)
    for command in ("inspect", "diagnose"):
        code, out, err = run(command, tmp_path)
        is_broken = command == "diagnose" and len(reward) == 12
        assert code == (5 if is_broken else 0)
        assert why in " ".join((out + err).split())
        assert ("FAIL" if is_broken else "Not read") in out + err
    runs = read_runs(tmp_path)
    (caution,) = [one for one in cohort_of(runs).notes if one.kind == Kind.NOT_READ]
    assert (caution.audience, caution.about) == ("caution", "")
    assert caution.sentence.startswith("Not read: ")
    assert why in caution.sentence
    # An entry for the run that is left out is no entry for nothing.
    (tmp_path / "pilots.toml").write_text('[[run]]\nid = "run 3"\nseed = 1\n')
    assert [run.id for run in read_runs(tmp_path)] == ["run 1", "run 2"]
    runs_of_a_file(tmp_path / "runs.jsonl", reward, reward)
    with pytest.raises(InputError, match="reward"):
        read_runs(tmp_path / "runs.jsonl")


def pilot(
    place: int, start: float, rng: np.random.Generator, gain: float = 0.3, spread: float = 0.07
) -> PilotRun:
    """Thirty rows of 64 completions that are right or wrong, or of a reward below 0."""
    rise = start + gain * (1 - np.exp(-np.arange(30) / 10))
    noise = rng.normal(0, spread, 30)
    return PilotRun(
        id=f"run{place}",
        path=f"run{place}.jsonl",
        step=np.arange(1.0, 31.0),
        series={"reward": rise + noise},
    )


def speaks(starts: list[float], seed: int = 1, gains: list[float] | None = None) -> bool:
    rng = np.random.default_rng(seed)
    each = gains or [0.3] * len(starts)
    runs = [
        pilot(place, start, rng, gain)
        for place, (start, gain) in enumerate(zip(starts, each, strict=True))
    ]
    warned = [any(STARTS_APART in line for line in run.warnings) for run in warn_of_starts(runs)]
    assert len(set(warned)) == 1  # all of a group, or none
    return warned[0]


def test_versions_of_a_reward_function_start_apart():
    assert speaks([-1.48, -0.36, -0.13, 0.26])
    assert speaks([0.1, 0.75])


def test_pilots_of_one_reward_function_are_never_warned_of():
    """The control: one start, other rates, a hundred cohorts of eight."""
    gains = [-0.2, 0.0, 0.1, 0.3, 0.3, 0.5, 0.6, 0.7]
    assert not any(speaks([0.25] * 8, seed, gains) for seed in range(100))


def test_a_run_that_died_in_its_first_rows_started_with_the_others():
    rng = np.random.default_rng(1)
    dead = pilot(1, 0.0, rng, gain=0.0)
    reward = np.where(dead.step == 1, 0.8, 0.0)
    runs = [pilot(0, 0.8, rng, 0.1), dead.with_updates(series={"reward": reward})]
    assert not any(run.warnings for run in warn_of_starts(runs))
    # Dead from its first row on it cannot be known from another reward.
    runs[1] = dead.with_updates(series={"reward": 0 * reward})
    assert all(run.warnings for run in warn_of_starts(runs))


@pytest.mark.parametrize(
    ("cells", "is_ppo"),
    [
        ({"critic/vf_loss": 0.2, "critic/lr": 1e-5}, True),
        ({"critic/rewards/mean": 0.2, "critic/advantages/mean": 0.1, "critic/score/max": 1}, False),
        ({"critic/vf_loss": 0.0}, False),  # a trainer of both methods
    ],
)
def test_a_model_of_values_is_ppo(tmp_path, cells, is_ppo):
    rows = [
        {"training/global_step": n, "critic/score/mean": n / 20, "actor/pg_loss": 0.1, **cells}
        for n in range(1, 16)
    ]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = inspect(tmp_path).runs
    assert any("PPO" in line for line in run.warnings) == is_ppo
    assert len(PilotRun.weighty(run.warnings)) == is_ppo


def write_run(folder):
    rows = [{"step": n, "reward": n / 20, "loss": 0.1} for n in range(1, 16)]
    (folder / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_group_of_one_is_left_out_with_its_file_and_key(tmp_path, run):
    write_run(tmp_path)
    (tmp_path / "config.yaml").write_text("num_generations: 1\nlearning_rate: 1.0e-5\n")
    (alone,) = inspect(tmp_path).runs
    assert alone.hyperparameters.group_size is None
    assert "group_size" in alone.needs
    (line,) = [line for line in alone.warnings if NO_GROUP in line]
    assert "num_generations" in line
    assert "config.yaml" in line
    assert line in run("inspect", tmp_path)[1]
    # Control: two completions are a group.
    (tmp_path / "config.yaml").write_text("num_generations: 2\nlearning_rate: 1.0e-5\n")
    (two,) = inspect(tmp_path).runs
    assert two.hyperparameters.group_size == 2
    assert not any(NO_GROUP in line for line in two.warnings)


def test_a_group_of_one_in_a_sidecar_is_refused(tmp_path):
    write_run(tmp_path)
    entry = '[[run]]\npath = "run.jsonl"\ngroup_size = 1\n'
    (tmp_path / "pilots.toml").write_text(entry)
    with pytest.raises(InputError, match=NO_GROUP) as refused:
        read_runs(tmp_path)
    assert refused.value.path == str(tmp_path / "pilots.toml")
    assert (refused.value.row, refused.value.key) == (1, "group_size")
    assert "Correct 'group_size'" in refused.value.advice


def stages(starts, gains, seed, rates=None, spread=0.02) -> list[bool]:
    """Of which runs it is said that they, or those after them, are stages of one training."""
    rng = np.random.default_rng(seed)
    runs = [
        pilot(place, start, rng, gain, spread).with_updates(
            hyperparameters=PartialSettings(learning_rate=rate, group_size=8)
        )
        for place, (start, gain, rate) in enumerate(
            zip(starts, gains, rates or [1e-6] * len(starts), strict=True)
        )
    ]
    return [any(NO_PILOT in line for line in run.warnings) for run in warn_of_starts(runs)]


def resumed(first: float, model: str = "Qwen2.5-0.5B") -> list[str]:
    """Warnings of a run whose steps begin at ``first``, next to one of its settings."""
    rng, settings = np.random.default_rng(3), PartialSettings(learning_rate=1e-6, group_size=8)
    one, other = (
        pilot(place, 0.3, rng, 0.0).with_updates(hyperparameters=settings, model="Qwen2.5-0.5B")
        for place in (0, 1)
    )
    other = other.with_updates(step=other.step - 1 + first, model=model)
    return [line for line in warn_of_starts([one, other])[1].warnings if NO_PILOT in line]


def test_a_resumption_that_overlaps_is_no_pilot():
    """Control: a log that begins with its second row, and another model."""
    assert "begins within" in resumed(20)[0]
    assert not resumed(2)
    assert not resumed(20, "Qwen2.5-7B")


def test_stages_of_one_training_are_no_pilots():
    assert stages([0.2, 0.42, 0.58], [0.25, 0.2, 0.15], 1) == [True] * 3
    # One that starts elsewhere for another reason is none of them.
    assert stages([0.2, 0.42, 0.2], [0.25, 0.2, 0.25], 2) == [True, True, False]


def test_seeds_and_other_rates_are_pilots():
    """The control: cohorts of six that start at one level, by seed or by rate."""
    gains, rates = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5], [1e-6, 2e-6]
    false = [any(stages([0.25] * 6, gains, seed, spread=0.04)) for seed in range(200)]
    assert np.mean(false) <= 0.02
    assert not any(any(stages([0.2, 0.42], [0.25, 0.2], seed, rates)) for seed in range(100))


@pytest.mark.parametrize(("first", "is_warned"), [(1, True), (5, False)])
def test_a_fast_run_may_have_come_far_before_its_first_row(first, is_warned):
    rng = np.random.default_rng(4)
    runs = [
        pilot(place, start, rng).with_updates(
            step=np.arange(first, first + 30.0),
            hyperparameters=PartialSettings(learning_rate=rate),
        )
        for place, (start, rate) in enumerate([(0.05, 5e-6), (0.7, 5e-5)])
    ]
    warned = [any(STARTS_APART in line for line in run.warnings) for run in warn_of_starts(runs)]
    assert warned == [is_warned] * 2
