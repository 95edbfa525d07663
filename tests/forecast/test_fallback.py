"""Where the chains of a fit get lost: the narrower preset, and the word that it was taken."""

from __future__ import annotations

import pytest
from simulated_runs import Plan, rising

from advisor.common import Kind
from advisor.errors import NotConvergedError
from advisor.forecast import fit
from advisor.model import load_priors

TEAM = load_priors("full_finetuning").model_copy(update={"name": "team"})
BILLIONS, THOUSANDS = 7e9, 7e4


def runs(parameters):
    """Four runs of a model of so many parameters."""
    return [
        Plan(rate, parameters=parameters, model="m").run(rising(), name=f"run {rate}")
        for rate in (1e-6, 2e-6, 4e-6, 8e-6)
    ]


@pytest.fixture
def asked(monkeypatch):
    """Presets that were fitted; chains get lost in every one that learned from runs."""
    names = []

    def _converged(cohort, preset, *_):
        names.append(preset.name)
        if preset.learned_from:
            raise NotConvergedError("no")
        return cohort.notes

    monkeypatch.setattr("advisor.model.converged", _converged)
    return names


@pytest.mark.parametrize(
    ("parameters", "narrower"), [(BILLIONS, "theory"), (THOUSANDS, "small_models")]
)
def test_any_learned_preset_gives_way_to_the_narrower_one_and_says_so(asked, parameters, narrower):
    notes = fit(runs(parameters), priors=TEAM)
    assert asked == ["team", narrower]
    swapped = {"preset": "team", "narrower": narrower}
    assert (notes[-1].kind, notes[-1].values) == (Kind.PRESET_SWAPPED, swapped)


def test_a_preset_that_learned_from_nothing_is_the_last_word(asked, monkeypatch):
    def _never(*_):
        asked.append("again")
        raise NotConvergedError("no")

    broad = TEAM.model_copy(update={"learned_from": (), "name": "broad"})
    monkeypatch.setattr("advisor.model.converged", _never)
    with pytest.raises(NotConvergedError):
        fit(runs(BILLIONS), priors=broad)
    assert asked == ["again"]
