"""Fit the demo's short pilots and save a thinned posterior and its study, which tests start from.

    python scripts/make_test_data.py [FOLDER]        # tests/data/study

A study without figures and page: what is read again is the posterior and the answer.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import advisor
from advisor.model import Posterior, Sampling
from advisor.runs.logs import demo_folder

STUDY = Path(__file__).parents[1] / "tests" / "data" / "study"
EVERY = 40
"""One draw of so many is kept: 100 of 4,000, in 1 MB."""

ASKED = {"steps": 120, "group_sizes": (4, 8, 16), "seed": 1}


def fitted() -> Posterior:
    """Posterior of the demo's twelve pilots, thinned."""
    runs = advisor.read_runs(demo_folder())
    whole = advisor.fit(runs, priors="small_models", sampling=Sampling(seed=1))
    kept = whole.meta.convergence.model_copy(
        update={"draws": whole.meta.convergence.draws // EVERY}
    )
    return replace(
        whole,
        meta=whole.meta.model_copy(update={"convergence": kept}),
        draws={name: values[:, ::EVERY] for name, values in whole.draws.items()},
        statistics={name: values[:, ::EVERY] for name, values in whole.statistics.items()},
    )


def save(folder: Path) -> None:
    """Advise on it and write the study, with a word in place of its page."""
    posterior = fitted()
    answer = advisor.advise(posterior, **ASKED)

    def page(posterior: object, answer: object, path: Path, **parts: object) -> Path:
        path.write_text("no page\n", encoding="utf-8")
        return path

    with (
        mock.patch("advisor.reporting.drawings_made", return_value=[]),
        mock.patch("advisor.reporting.plot", return_value=[]),
        mock.patch("advisor.reporting.report", page),
    ):
        advisor.Study(posterior, answer).save(folder)


if __name__ == "__main__":
    save(Path(sys.argv[1]) if len(sys.argv) > 1 else STUDY)
