"""Optuna says nothing of trials."""

import optuna
import pytest


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
