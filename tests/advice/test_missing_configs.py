"""Trainers that cannot run what was advised: the study says why."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from advisor.advice import export
from advisor.advice import recommendation as answers
from advisor.errors import InputError
from advisor.study.study import MISSING, _write_configs


@pytest.fixture
def exported(monkeypatch):
    """Every trainer but verl can run it."""

    def made_up(recommendation, trainer=None, devices=None):
        if trainer == "verl":
            raise InputError("verl's FSDP trainer has no linear schedule", advice="Use a cosine")
        return f"config of {trainer}"

    monkeypatch.setattr(answers, "export", made_up)
    return SimpleNamespace(trainer="TRL")


def test_what_is_missing_is_told_with_its_reason(exported, tmp_path):
    configs = answers.trainer_configs(exported)
    missing = answers.missing_configs(exported)
    assert set(configs) == {"trl", "openrlhf"}
    assert missing == {"verl": "verl's FSDP trainer has no linear schedule. Use a cosine."}
    _write_configs(configs, missing, tmp_path)
    told = (tmp_path / MISSING).read_text()
    assert told.startswith("verl_grpo.sh: not written. verl's FSDP trainer has no linear schedule")
    assert {path.name for path in tmp_path.iterdir()} == {
        *("trl_config.yaml", "openrlhf_grpo.sh", MISSING)
    }


def test_nothing_missing_needs_no_word(tmp_path):
    _write_configs({"trl": "x"}, {}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["trl_config.yaml"]


@pytest.mark.evidence
def test_a_trainer_without_a_config_is_asked_for_another(advice):
    with pytest.raises(InputError, match="Choose one of trl, verl, openrlhf"):
        export(advice.model_copy(update={"trainer": "CS336"}))
    assert "trainer.total_training_steps" in export(advice.model_copy(update={"trainer": "verl"}))
