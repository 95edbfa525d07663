"""Optuna studies that are kept: what stands in them, and that another search adds another."""

from __future__ import annotations

import random
import threading
import warnings

import optuna
import pytest
from decisions import LEVEL, again, decision, searched
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from advisor.advice import Lattice, Objective, advise, storage
from advisor.advice.candidates import AXES
from advisor.advice.search import REACHED, STABLE
from advisor.advice.storage import open_storage
from advisor.errors import InputError


def reopened(path):
    """Studies in a journal, by name, as a reader of Optuna's alone sees them."""
    storage = JournalStorage(JournalFileBackend(str(path)))
    return {
        kept.study_name: optuna.load_study(study_name=kept.study_name, storage=storage)
        for kept in storage.get_all_studies()
    }


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "kept" / "studies.journal"


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
    best, _ = searched(evaluate, lattice, storage=str(journal))
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
        assert set(trial.constraints) == {STABLE, REACHED} == {"P(stable)", "goal"}
        assert (trial.constraints[STABLE] <= 0) == (found.stability.least >= LEVEL)
        assert (trial.constraints[REACHED] <= 0) == (found.value > -float("inf"))
        assert trial.constraints[STABLE] == pytest.approx(LEVEL - found.stability.least)
    # Optuna's own idea of the best feasible trial is ours.
    assert study.best_trial.value == best.value


def test_another_search_in_the_same_file_is_another_study(few, journal):
    evaluate, lattice = few
    first = searched(evaluate, lattice, storage=str(journal))
    second = searched(again(evaluate), lattice, storage=str(journal))
    assert first == second == searched(again(evaluate), lattice)
    one, two = sorted(reopened(journal))
    assert one.removesuffix(", 1") == two.removesuffix(", 2")
    tried = [
        [(trial.params, trial.value, trial.constraints) for trial in study.trials]
        for study in reopened(journal).values()
    ]
    assert tried[0] == tried[1]


def test_another_large_search_in_the_same_file_is_not_steered_by_the_first(posterior, journal):
    evaluate, lattice = decision(posterior)
    alone = searched(evaluate, lattice, trials=40)
    for _ in range(2):
        assert searched(again(evaluate), lattice, trials=40, storage=str(journal)) == alone
    one, two = (len(study.trials) for study in reopened(journal).values())
    assert one == two >= 40


def test_answer_is_the_same_whether_its_study_is_kept_or_not(posterior, journal):
    asked = {"group_sizes": (8,), "learning_rates": (3e-4,), "weigh_pilots": False}
    kept = [advise(posterior, storage=str(journal), **asked) for _ in range(2)]
    alone = advise(posterior, **asked)
    assert kept[0].to_json() == kept[1].to_json() == alone.to_json()
    assert len(reopened(journal)) == 2
    # A share of the gain is a goal only once the gain is known: one more study.
    advise(posterior, storage=str(journal), to_share=0.9, **asked)
    assert len(reopened(journal)) == 4


def test_database_holds_the_same_study(few, journal, tmp_path):
    evaluate, lattice = few
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    searched(evaluate, lattice, storage=str(journal))
    searched(again(evaluate), lattice, storage=url)
    database = RDBStorage(url)
    ((name, expected),) = reopened(journal).items()
    study = optuna.load_study(study_name=name, storage=database)
    assert [t.value for t in study.trials] == [t.value for t in expected.trials]
    assert [t.constraints for t in study.trials] == [t.constraints for t in expected.trials]
    database.remove_session()
    database.engine.dispose()


def refusal(few, storage):
    """Whoever asks first is refused; a search that was made all the same has its answer."""
    with (
        pytest.raises(InputError, match="the studies cannot be kept there") as caught,
        open_storage(storage),
    ):
        pass
    assert caught.value.argument == "storage"
    assert caught.value.path == storage
    evaluate, lattice = few
    with pytest.warns(UserWarning, match="the answer stands, its Optuna study was not kept"):
        found = searched(evaluate, lattice, storage=storage)
    assert found == searched(again(evaluate), lattice)


def test_folder_is_refused(few, tmp_path):
    refusal(few, str(tmp_path))


def test_database_without_a_driver_is_refused(few):
    refusal(few, "nosuchdatabase://somewhere/studies")


def test_file_of_another_kind_is_refused(few, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("not a journal\n")
    refusal(few, str(other))
    assert other.read_text() == "not a journal\n"


# Damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn", ['{"op_code": 4, "stu', "{", "\0" * 40, '{"op_code"' * 9000])
def test_half_written_last_line_is_dropped_and_the_journal_goes_on(few, journal, torn):
    evaluate, lattice = few
    searched(evaluate, lattice, storage=str(journal))
    whole = journal.read_bytes()
    journal.write_bytes(whole + torn.encode())
    searched(again(evaluate), lattice, storage=str(journal))
    assert journal.read_bytes().startswith(whole)
    assert len(reopened(journal)) == 2


def test_journal_of_one_torn_line_begins_anew(few, journal):
    journal.parent.mkdir()
    journal.write_bytes(b'{"op_code": 0, "worker_id"')
    with pytest.raises(InputError, match="it is no Optuna journal"), open_storage(str(journal)):
        pass
    assert journal.read_bytes() == b'{"op_code": 0, "worker_id"'


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """A journal cut, flipped, with a line twice, missing or of another kind."""
    lines = whole.split(b"\n")
    at = chance.randrange(len(whole))
    match chance.randrange(6):
        case 0:
            return whole[:at]
        case 1:
            return whole[:at] + bytes([chance.randrange(256)]) + whole[at + 1 :]
        case 2:
            del lines[chance.randrange(len(lines))]
        case 3:
            lines.insert(chance.randrange(len(lines)), chance.choice(lines))
        case 4:
            other = chance.choice((b"[]", b"{}", b"1e999", b"[" * 5000, b'{"op_code": 99}'))
            lines[chance.randrange(len(lines))] = other
        case _:
            chance.shuffle(lines)
    return b"\n".join(lines)


def test_no_damaged_journal_costs_an_answer(few, journal):
    evaluate, lattice = few
    expected = searched(evaluate, lattice, storage=str(journal))
    whole, chance = journal.read_bytes(), random.Random(0)
    kept = refused = 0
    for _ in range(25):
        journal.write_bytes(damaged(whole, chance))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert searched(again(evaluate), lattice, storage=str(journal)) == expected
        refused += bool(said)
        kept += not said
    assert kept > 3
    assert refused > 3


def test_storage_that_does_not_answer_is_not_waited_for(few, monkeypatch):
    """A database that hangs; the control answers."""
    answers = threading.Event()
    monkeypatch.setattr(storage, "PATIENCE", 0.2)
    monkeypatch.setattr(storage, "keep", lambda *given: answers.wait())
    evaluate, lattice = few
    with pytest.warns(UserWarning, match=r"it did not answer in 0.2 seconds"):
        searched(evaluate, lattice, storage="sqlite://")
    answers.set()


def test_password_is_in_no_warning(few):
    evaluate, lattice = few
    with pytest.warns(UserWarning, match="not kept") as said:
        searched(evaluate, lattice, storage="nosuchdatabase://me:secret@somewhere/studies")
    assert "secret" not in str(said[0].message)
