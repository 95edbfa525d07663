"""Trainers that cannot run what was advised: the study says why."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from simulated_runs import Plan, made_up_posterior

from advisor.advice import advise, export, export_pilot, next_pilot
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
    configs, missing = answers.trainer_configs(exported)
    assert set(configs) == {"trl", "openrlhf"}
    assert missing == {"verl": "verl's FSDP trainer has no linear schedule. Use a cosine."}
    _write_configs(configs, missing, tmp_path)
    told = (tmp_path / MISSING).read_text()
    assert told.startswith("verl_grpo.sh: not written. verl's FSDP trainer has no linear schedule")
    assert {path.name for path in tmp_path.iterdir()} == {
        *("trl_config.yaml", "openrlhf_grpo.sh", MISSING)
    }


@pytest.mark.evidence
def test_every_pilot_that_may_be_named_can_be_launched_by_a_trainer_that_counts_batches():
    posterior = made_up_posterior(
        [Plan(schedule="linear"), Plan(1e-3, minibatches=4, schedule="linear")]
    )
    said = advise(posterior, weigh_pilots=False, steps=181)
    for steps in (None, 3, 35):
        pilot = next_pilot(posterior, said, steps=steps)
        assert pilot.steps % pilot.settings.refresh_interval == 0
        for trainer in ("trl", "openrlhf"):
            assert "decays to 0 over these" in export_pilot(said, pilot, trainer)
        # Where a trainer has no such schedule, another may be asked for, and is stated.
        with pytest.raises(InputError, match="no linear schedule"):
            export_pilot(said, pilot, "verl")
        assert "answer is for a linear" in export_pilot(said, pilot, "verl", schedule="constant")
    with pytest.raises(InputError, match="'constant', 'linear' or 'cosine'"):
        export_pilot(said, pilot, "verl", schedule="constan")


def test_a_run_is_whole_batches_of_rollouts():
    alike = made_up_posterior([Plan(minibatches=4), Plan(1e-3, minibatches=4)])
    for asked, steps in (({"steps": 183}, 180), ({"batches": 45}, 180)):
        said = advise(alike, weigh_pilots=False, trials=40, **asked)
        assert said.steps == steps
        assert "180 steps (45 batches of rollouts" in said.summary
    assert "183 steps are no whole number" not in said.summary
    differ = made_up_posterior([Plan(minibatches=4), Plan(1e-3)])
    with pytest.raises(InputError, match=r"differ in K \(1, 4 optimizer steps a batch\)"):
        advise(differ, batches=45)


def test_configs_of_other_trainers_are_written_where_they_are_asked_for(exported):
    own = SimpleNamespace(trainer="prime-rl")
    assert set(answers.trainer_configs(own)[0]) == {"trl", "openrlhf", "prime-rl"}
    assert "prime-rl" not in answers.trainer_configs(exported)[0]


# Settings that no number depends on ---------------------------------------------------------------


@pytest.fixture
def unranked(advice):
    """An answer of pilots with an adapter whose rank no log holds."""
    settings = advice.settings.model_copy(update={"adapter": "lora"})
    return advice.model_copy(update={"settings": settings})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"learning_rate": 1e-3}, "the answer holds for its own learning rate"),
        ({"adapter_rank": 0}, "0 is not allowed"),
        ({"adapter_rnk": 8}, "no setting is called so"),
    ],
)
def test_what_the_answer_rests_on_is_not_stated_otherwise(unranked, settings, says):
    with pytest.raises(InputError, match=says):
        export(unranked, "trl", settings=settings)
