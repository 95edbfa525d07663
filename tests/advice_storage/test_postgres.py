"""A team's database: every search is a study of its own that Optuna reads without us.

Needs a PostgreSQL server's programs and a driver; without them it is skipped and says so.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import optuna
import pytest
from sqlalchemy import create_engine, text

from advisor.advice import advise
from advisor.advice.search import REACHED, STABLE
from advisor.testing import (
    made_up_posterior,
)

TRIALS = 40
LEVEL = 0.9


def advised(url, **asked):
    return advise(made_up_posterior(), trials=TRIALS, weigh_pilots=False, storage=url, **asked)


def answer(advice):
    """All of it but the time at which its posterior was made."""
    return advice.model_dump(exclude={"provenance": {"created"}})


@contextmanager
def opened(url):
    """As a reader of Optuna's alone sees it; closed, so that the server may stop."""
    storage = optuna.storages.RDBStorage(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


@pytest.fixture
def database(server, request):
    """A new database of the server."""
    name = "".join(letter for letter in request.node.name if letter.isalnum()).lower()[:60]
    engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"create database {name}"))
    engine.dispose()
    return f"{server}/{name}"


def _advised_trial(study, advice):
    """Trial of the settings that were advised."""
    names = ("learning_rate", "group_size", "minibatches_per_refresh", "epochs_per_refresh")
    wanted = [getattr(advice.settings, name) for name in names]
    return next(t for t in study.trials if [t.user_attrs[name] for name in names] == wanted)


def test_two_searches_are_two_studies_that_optuna_reads(database):
    first, second = advised(database), advised(database, seed=7)
    with opened(database) as storage:
        names = sorted(optuna.get_all_study_names(storage))
        assert [name.rsplit(", ", 1)[1] for name in names] == ["1", "2"]
        assert all(name.startswith("tiny-m on sort, pilots ") for name in names)
        studies = [optuna.load_study(study_name=name, storage=storage) for name in names]
        # Neighbours of the best are tried beyond the trials asked for.
        assert all(len(study.trials) >= TRIALS for study in studies)
        for study, advice in zip(studies, (first, second), strict=True):
            assert study.user_attrs["provenance"] == advice.provenance.model_dump()
            assert study.user_attrs["objective"] == advice.objective.model_dump()
            feasible = [t for t in study.trials if all(v <= 0 for v in t.constraints.values())]
            assert 0 < len(feasible) < len(study.trials)
            best = max(feasible, key=lambda trial: trial.value)
            assert study.best_trial.number == best.number
            # The cheapest of those that are as good is advised, so it is one of them, not better.
            assert best.value >= _advised_trial(study, advice).value - 1e-9
        # Another seed tries others: the second study is not the first one again.
        tried = [[trial.params for trial in study.trials] for study in studies]
        assert tried[0] != tried[1]


def test_trials_hold_constraints_and_settings(database):
    advice = advised(database, indifference=0.0)
    with opened(database) as storage:
        (name,) = optuna.get_all_study_names(storage)
        study = optuna.load_study(study_name=name, storage=storage)
        own = _advised_trial(study, advice)
    settings = advice.settings
    # A lost run counts as its floor.
    assert own.value <= advice.reward.mean
    assert own.user_attrs == {
        "learning_rate": settings.learning_rate,
        "group_size": settings.group_size,
        "minibatches_per_refresh": settings.minibatches_per_refresh,
        "epochs_per_refresh": settings.epochs_per_refresh,
        "prompts_per_step": settings.prompts_per_step,
        "reward": pytest.approx(advice.reward.mean),
        "price": pytest.approx(advice.cost.paid),
    }
    assert own.constraints == {
        STABLE: pytest.approx(LEVEL - advice.stability.least),
        REACHED: 0.0,
    }


def test_answer_is_the_same_as_without_a_database(database):
    assert answer(advised(database)) == answer(advised(None))


@pytest.mark.long
def test_colleagues_at_the_same_time_do_not_collide(database):
    advised(database)  # makes the tables: two who do that at once are Optuna's own affair
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, mp_context=spawned) as pool:
        said = list(pool.map(advised, [database] * 8))
    assert len(said) == 8
    assert all(answer(advice) == answer(said[0]) for advice in said)
    with opened(database) as storage:
        numbers = {name.rsplit(", ", 1)[1] for name in optuna.get_all_study_names(storage)}
        assert numbers == {str(number) for number in range(1, 10)}
        counts = {summary.n_trials for summary in optuna.get_all_study_summaries(storage)}
        assert len(counts) == 1
        assert min(counts) >= TRIALS


def test_database_that_is_not_there_costs_no_answer_and_shows_no_password(server):
    url = f"{server}/none".replace("advisor@", "advisor:hunter2@")
    with pytest.warns(UserWarning, match='database "none" does not exist') as told:
        found = advised(url)
    assert answer(found) == answer(advised(None))
    (said,) = [str(one.message) for one in told]
    assert "advisor:***@" in said
    assert "hunter2" not in said
