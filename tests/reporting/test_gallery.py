"""All figures as files."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.advice import Recommendation
from advisor.model import Posterior
from advisor.reporting import FIGURES, plot

from .conftest import Pilot

Build = Callable[..., Any]


@pytest.mark.evidence
def test_every_figure_is_written_in_every_format(
    posterior: Posterior, advice: Recommendation, tmp_path: Path
) -> None:
    files = plot(posterior, advice, tmp_path / "new" / "figures")
    assert [path.name for path in files] == [
        f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")
    ]
    for path in files:
        if path.suffix == ".png":
            assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        else:
            assert ET.parse(path).getroot().tag.endswith("svg")


@pytest.mark.evidence
def test_hostile_names_are_drawn_without_a_warning(build: Build, advise: Build) -> None:
    pilots = [
        Pilot(1e-4, model="$\\frac{$ 模型 & <b>", task="x\n" * 40),
        Pilot(2e-4, model="q/" * 60 + "$" * 30, task="t", parameters=2e5),
    ]
    posterior = build(pilots)
    advice = advise(posterior, pilots[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for spec in FIGURES.values():
            info = spec.info(posterior, advice)
            ET.fromstring(spec.drawn(info).rendered("svg"))


@pytest.mark.parametrize("name", list(FIGURES))
def test_every_figure_says_what_it_shows(
    name: str, posterior: Posterior, advice: Recommendation
) -> None:
    spec = FIGURES[name]
    info = spec.info(posterior, advice)
    assert len(info.text) > 60
    assert info.text.endswith(".")
    assert spec.title
    assert spec.caption.endswith(".")
