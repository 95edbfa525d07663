"""Exponents against prior and theory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advisor.model.parameters import LAWS
from advisor.model.posterior import Posterior
from advisor.model.run_fit import informed_share
from advisor.reporting.figures.beliefs import draw_exponents, exponents_info

Build = Callable[..., Any]


def rows(posterior: Posterior) -> dict[str, Any]:
    return {row.key: row for _, law in exponents_info(posterior).laws for row in law}


def test_every_exponent_has_a_row(posterior: Posterior) -> None:
    levels = {"plateau_loss.level", "hazard.level"}
    terms = {f"{law}.{term}" for law, own in LAWS.items() for term in own}
    assert set(rows(posterior)) == {*terms, "curvature_exponent"} - levels


def test_intervals_are_those_of_draws_and_prior(posterior: Posterior) -> None:
    informed = informed_share(posterior)
    for key, row in rows(posterior).items():
        expected = np.quantile(posterior.flat(key), [0.1, 0.5, 0.9])
        assert (row.lower, row.median, row.upper) == pytest.approx(tuple(expected))
        prior = getattr(posterior.meta.priors, key.replace(".", "_"))
        assert row.prior_median == pytest.approx(prior.mean)
        assert row.prior_upper - row.prior_lower == pytest.approx(2 * 1.2816 * prior.sd, rel=1e-3)
        assert row.informed == informed[key]


def test_a_wider_posterior_learned_nothing(build: Build) -> None:
    posterior = build()
    posterior.draws["hazard.size"][:] *= 20
    row = rows(posterior)["hazard.size"]
    assert row.informed < 0
    assert row.learned == "0 %"


def test_numbers_near_zero_have_no_sign(posterior: Posterior) -> None:
    row = replace(rows(posterior)["curvature_exponent"], lower=-0.001, median=-0.0, upper=0.5)
    assert row.span == "0.00 [0.00, 0.50]"


def test_the_drawing_names_bars_theory_and_columns(posterior: Posterior) -> None:
    figure = draw_exponents(exponents_info(posterior))
    rate, loss, collapse = figure.axes
    labels = [[text.get_text() for text in axes.get_yticklabels()] for axes in figure.axes]
    assert labels[0] == ["learning rate", "group size", "prompts per step", "model size"]
    assert [len(own) for own in labels] == [4, 4, 5]
    words = [text.get_text() for text in rate.texts]
    assert "0 (invariance), 0.5 (AdamW in noise)" in words
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["posterior", "prior"]
    own = rows(posterior)["rate.group_size"]
    assert own.span in words
    assert own.learned in words
    assert "1 (temperature)" in {text.get_text() for text in loss.texts}
    assert collapse.get_xlabel() == "exponent (no unit)"


def test_marks_of_theory_stand_at_their_values(posterior: Posterior) -> None:
    rate = draw_exponents(exponents_info(posterior)).axes[0]
    upright = {line.get_xdata()[0] for line in rate.lines if np.ptp(line.get_xdata()) == 0}
    assert {0.0, 0.5, 1.0} <= upright
