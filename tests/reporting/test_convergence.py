"""Ranks of the draws by chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advisor.model.compat import convergence
from advisor.model.posterior import Posterior
from advisor.reporting.figure import render
from advisor.reporting.figures.beliefs import MAX_PANELS, convergence_info, draw_convergence

Build = Callable[..., Any]


def test_the_worst_come_first_with_their_numbers(build: Build) -> None:
    posterior = build()
    posterior.draws["rate.group_size"][0] += 1.0
    posterior.draws["run_offset.plateau"][0, :, 2] += 0.5
    info = convergence_info(posterior)
    assert [one.name for one in info.worst[:2]] == ["rate: group size", "run offset: plateau\nrun2"]
    draws = posterior.draws["rate.group_size"]
    rhat, ess = convergence({"x": draws})["x"]
    assert (info.worst[0].rhat, info.worst[0].ess) == (float(rhat), float(ess))
    np.testing.assert_array_equal(info.worst[0].draws, draws)
    assert len(info.worst) == MAX_PANELS
    assert info.note.startswith(f"{info.parameters - MAX_PANELS} parameters that mixed better")


def test_what_never_moves_in_one_chain_is_the_worst(build: Build) -> None:
    posterior = build()
    posterior.draws["hazard.size"][0] = 0.0
    posterior.draws["hazard.size"][1] = 1.0
    assert convergence_info(posterior).worst[0].name == "hazard: size"


def test_constants_and_copies_are_no_parameters(posterior: Posterior) -> None:
    info = convergence_info(posterior)
    counted = sum(
        values[0, 0].size
        for name, values in posterior.draws.items()
        if name not in ("start", "is_oscillator")
    )
    assert info.parameters == counted


def test_every_panel_is_named_and_has_its_numbers(posterior: Posterior) -> None:
    info = convergence_info(posterior)
    figure = draw_convergence(info)
    assert len(figure.axes) == MAX_PANELS
    for axes, one in zip(figure.axes, info.worst, strict=True):
        assert axes.get_title(loc="left") == one.name.partition("\n")[0]
        assert f"R-hat {one.rhat:.3f}" in axes.texts[-1].get_text()
        assert axes.lines or axes.patches
    assert figure.axes[0].get_ylabel()
    assert figure.axes[-1].get_xlabel()


@pytest.mark.evidence
@pytest.mark.filterwarnings("error")
def test_the_same_draws_give_the_same_bytes(posterior: Posterior) -> None:
    info = convergence_info(posterior)
    first, second = (render(draw_convergence(info), "svg") for _ in range(2))
    assert first == second
