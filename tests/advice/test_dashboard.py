"""optuna-dashboard opens what a search has kept; skipped where it is not installed."""

from __future__ import annotations

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from simulated_runs import made_up_posterior

from advisor.advice import advise

TRIALS = 20


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::optuna.exceptions.ExperimentalWarning"
)
def test_dashboard_finds_the_study(tmp_path, kind):
    loader = pytest.importorskip("optuna_dashboard._storage_url").get_storage
    where = tmp_path / "studies"
    kept = str(where) if kind == "journal" else f"sqlite:///{where}"
    given = JournalStorage(JournalFileBackend(kept)) if kind == "journal" else kept
    advise(made_up_posterior(), trials=TRIALS, weigh_pilots=False, storage=given)
    (summary,) = optuna.get_all_study_summaries(loader(kept))
    assert summary.study_name.startswith("tiny-m on sort, pilots ")
    assert summary.n_trials == TRIALS
    study = optuna.load_study(study_name=summary.study_name, storage=loader(kept))
    assert all(trial.constraints.keys() == {"P(stable)", "goal"} for trial in study.trials)
