"""Optuna studies that are kept: what stands in them, and that another search adds another."""

from __future__ import annotations

import optuna
import pytest
from decisions import LEVEL, again, decision, searched
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from advisor.advice import AXES, Lattice, Objective, advise, check_storage
from advisor.errors import InputError


def opened(path):
    return JournalStorage(JournalFileBackend(str(path)))


def reopened(path):
    """Studies in a journal, by name, as a reader of Optuna's alone sees them."""
    storage = opened(path)
    return {
        kept.study_name: optuna.load_study(study_name=kept.study_name, storage=storage)
        for kept in storage.get_all_studies()
    }


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "studies.journal"


@pytest.fixture
def few(posterior):
    """A goal that some of twelve configurations reach, and some without being stable enough."""
    evaluate, lattice = decision(
        posterior,
        objective=Objective(kind="cheapest", goal=0.75),
        goal=0.75,
        learning_rates=(1e-4, 4e-4, 1e-3),
        group_sizes=(8, 64),
    )
    few = Lattice(tuple(point for point in lattice if point.minibatches_per_refresh == 1))
    tried = [evaluate(settings) for settings in few]
    assert any(e.is_feasible(LEVEL) for e in tried)
    assert any(e.value == -float("inf") for e in tried)
    assert any(e.value > -float("inf") and not e.is_feasible(LEVEL) for e in tried)
    return again(evaluate), few


def test_study_can_be_reopened_and_holds_what_was_tried(few, journal, posterior):
    evaluate, lattice = few
    best, _ = searched(evaluate, lattice, storage=opened(journal))
    ((name, study),) = reopened(journal).items()
    assert name.startswith("tiny-m on sort, pilots ")
    assert posterior.meta.provenance.data_sha256[:8] in name
    assert study.user_attrs["provenance"] == posterior.meta.provenance.model_dump()
    assert study.user_attrs["objective"] == evaluate.objective.model_dump()
    assert len(study.trials) == len(lattice)
    for trial in study.trials:
        settings = lattice.at(tuple(trial.user_attrs[axis] for axis in AXES))
        found = evaluate(settings)
        assert trial.user_attrs["reward"] == found.reward
        assert trial.user_attrs["price"] == found.cost.paid
        assert set(trial.constraints) == {"P(stable)", "goal"}
        assert (trial.constraints["P(stable)"] <= 0) == (found.stability.probability >= LEVEL)
        assert (trial.constraints["goal"] <= 0) == (found.value > -float("inf"))
        assert trial.constraints["P(stable)"] == pytest.approx(LEVEL - found.stability.probability)
    # Optuna's own idea of the best feasible trial is ours.
    assert study.best_trial.value == best.value


def test_another_large_search_in_the_same_file_is_not_steered_by_the_first(posterior, journal):
    evaluate, lattice = decision(posterior)
    alone = searched(evaluate, lattice, trials=40)
    for _ in range(2):
        assert searched(again(evaluate), lattice, trials=40, storage=opened(journal)) == alone
    one, two = (len(study.trials) for study in reopened(journal).values())
    assert one == two >= 40


def test_answer_is_the_same_whether_its_study_is_kept_or_not(posterior, journal):
    asked = {"group_sizes": (8,), "learning_rates": (3e-4,), "weigh_pilots": False}
    kept = [advise(posterior, storage=opened(journal), **asked) for _ in range(2)]
    alone = advise(posterior, **asked)
    assert kept[0].to_json() == kept[1].to_json() == alone.to_json()
    assert len(reopened(journal)) == 2
    # A share of the gain is a goal only once the gain is known: one more study.
    advise(posterior, storage=opened(journal), to_share=0.9, **asked)
    assert len(reopened(journal)) == 4


@pytest.mark.parametrize(
    "storage", ["nosuchdatabase://somewhere/studies", "studies.journal", "sqlite:///missing/a.db"]
)
def test_what_optuna_refuses_is_an_error_of_one_sentence(few, storage):
    """Whoever asks first is refused as a search is."""
    evaluate, lattice = few
    for ask in (
        lambda: check_storage(storage),
        lambda: searched(evaluate, lattice, storage=storage),
    ):
        with pytest.raises(InputError, match="cannot be kept there") as caught:
            ask()
        assert caught.value.argument == "storage"
        assert caught.value.path == storage
        assert "\n" not in str(caught.value)
