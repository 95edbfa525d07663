"""Read a corpus of analogues: a line for each run at each share, and what was learned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from advisor.errors import InputError
from advisor.forecast.analogues import FEATURES, Corpus
from advisor.model import all_small, preset_folder
from advisor.runs import PilotRun

NAME = "analogues.json"


@cache
def shipped_corpus() -> Corpus:
    """Corpus that comes with the package."""
    return load_corpus(preset_folder() / NAME)


def corpus_beside(runs: Sequence[PilotRun]) -> Corpus | None:
    """Shipped corpus for runs of language models; None where every model is small.

    Repositories that hold one of the runs are left out of it.
    """
    return None if all_small(runs) else shipped_corpus().without(runs)


def load_corpus(path: Path) -> Corpus:
    """Read a corpus.

    Raises
    ------
    InputError
        The file is missing, or is no corpus of this version.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        rows = told["rows"]
        return Corpus(
            features=np.array([row[4:] for row in rows], dtype=float),
            gain=np.array([row[2] for row in rows], dtype=float),
            span=np.array([row[3] for row in rows], dtype=float),
            run=np.array([row[1] for row in rows], dtype=str),
            repository=np.array([row[0] for row in rows], dtype=str),
            reach=np.array([told["reach"][name] for name in FEATURES], dtype=float),
            widening=float(told["widening"]),
            sibling_weight=float(told["sibling_weight"]),
            sibling_errors=np.array(told["sibling_errors"], dtype=float),
            curve_weights=np.array(told["curve_weights"], dtype=float),
            pool_widenings=np.array(told["pool_widenings"], dtype=float),
            new_curve_weight=float(told["new_curve_weight"]),
        )
    except (
        OSError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InputError(
            f"it is no corpus of finished runs: {type(error).__name__}: {error!s:.100}",
            path=path,
            advice="Install the package again; case_studies/real_runs/learn.py makes the file",
        ) from error
