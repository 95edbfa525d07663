"""A trainer is one folder: registering it makes reading, names, defaults and export work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from launched import SETTINGS
from made_up import TRAINER

from advisor import InputError, read_runs
from advisor.advice import in_trainer_names
from advisor.diagnosis import diagnose
from advisor.runs import Trainer, register, unregister

REWARDS = [*np.linspace(0.2, 0.8, 40).round(4).tolist(), *[0.05] * 40]
"""A run that learns and collapses, so that its diagnosis advises another learning rate."""


@pytest.fixture
def made_up() -> Iterator[None]:
    register(TRAINER)
    yield
    unregister(TRAINER)


@pytest.fixture
def console(tmp_path: Path) -> Path:
    noise = np.random.default_rng(1).normal(0, 0.01, len(REWARDS))
    rows = [
        f"mu> mu_turn={turn} mu_praise={reward:.4f} mu_surprise=0.5 mu_praise_max=1.0"
        for turn, reward in enumerate(REWARDS + noise, start=1)
    ]
    path = tmp_path / "train.out"
    path.write_text("\n".join(["mu! pace=2e-6 siblings=6 questions=16", *rows]) + "\n")
    return path


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    rows = [{"mu_turn": t, "mu_praise": r, "mu_words": 9} for t, r in enumerate(REWARDS, start=1)]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.usefixtures("made_up")
def test_its_console_is_read_with_its_settings(console: Path) -> None:
    (run,) = read_runs(console)
    assert (run.framework, run.format) == ("made-up", "made-up console")
    assert run.step.tolist() == list(range(1, 81))
    np.testing.assert_allclose(run.reward, REWARDS, atol=0.05)
    settings = run.hyperparameters
    assert (settings.learning_rate, settings.group_size) == (2e-6, 6)
    assert (settings.prompts_per_step, settings.minibatches_per_refresh) == (16, 1)
    assert any("uses each sample once" in line for line in run.assumptions)


@pytest.mark.usefixtures("made_up")
def test_its_keys_are_known_in_a_common_format(jsonl: Path) -> None:
    (run,) = read_runs(jsonl)
    assert run.framework == "made-up"
    assert run.reward.tolist() == REWARDS
    assert set(run.series["completion_length"]) == {9.0}


@pytest.mark.usefixtures("made_up")
def test_its_names_stand_in_cards_and_advice(console: Path) -> None:
    (run,) = read_runs(console)
    assert "a third of the pace" in diagnose(run).card("collapse").change
    assert in_trainer_names(SETTINGS, "made-up") == f"pace={SETTINGS.learning_rate!r}, siblings=8"
    assert Trainer.all_recipes()["made-up defaults"] == {"learning_rate": 2e-6, "group_size": 6}


@pytest.mark.usefixtures("made_up")
def test_its_configuration_is_written() -> None:
    text = Trainer.export_config(SETTINGS, 200, "made-up", model="org/model", note="by a test")
    assert text.splitlines()[:3] == [
        "# by a test",
        "model = 'org/model'",
        f"pace = {SETTINGS.learning_rate!r}",
    ]
    assert text.endswith("siblings = 8\nquestions = 6\nturns = 200\n")


@pytest.mark.usefixtures("made_up")
def test_a_name_is_registered_once() -> None:
    with pytest.raises(InputError, match="registered already"):
        register(TRAINER)


def test_nothing_of_it_is_left(console: Path, jsonl: Path) -> None:
    register(TRAINER)
    read_runs(console)
    read_runs(jsonl)
    unregister(TRAINER)
    assert "made-up" not in Trainer.exports()
    assert "made-up defaults" not in Trainer.all_recipes()
    for path in (console, jsonl):
        with pytest.raises(InputError):
            read_runs(path)
    with pytest.raises(InputError, match="none of the trainers"):
        Trainer.export_config(SETTINGS, 200, "made-up")
    assert "pace" not in in_trainer_names(SETTINGS, "made-up")
    with pytest.raises(InputError, match="not registered"):
        unregister(TRAINER)
