"""All figures as files."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.advice import Recommendation
from advisor.errors import InputError
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
def test_the_same_figure_gives_the_same_bytes(posterior: Posterior, advice: Recommendation) -> None:
    spec = FIGURES["stability"]
    info = spec.info(posterior, advice)
    for kind in ("svg", "png", "pdf"):
        assert spec.drawn(info).rendered(kind) == spec.drawn(info).rendered(kind)


@pytest.mark.evidence
def test_global_settings_stay_as_they_are(
    posterior: Posterior, advice: Recommendation, tmp_path: Path
) -> None:
    import matplotlib

    def settings() -> dict[str, Any]:
        # Importing ArviZ resolves the backend.
        return {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}

    before = settings()
    plot(posterior, advice, tmp_path, formats=("svg",))
    assert settings() == before


def test_an_unknown_format_is_refused_before_anything_is_drawn(
    posterior: Posterior, advice: Recommendation, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="bmp"):
        plot(posterior, advice, tmp_path / "figures", formats=("png", "bmp"))
    assert not (tmp_path / "figures").exists()


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


@pytest.mark.evidence
def test_one_pilot_and_nothing_stable_can_be_drawn(
    build: Build, advise: Build, tmp_path: Path
) -> None:
    for label, pilots in {
        "one": [Pilot(2e-4)],
        "collapsed": [Pilot(2e-4, collapse=1), Pilot(3e-4, collapse=2, steps=9)],
    }.items():
        posterior = build(pilots)
        advice = advise(posterior, Pilot(1e-5), kind="infeasible", steps=1)
        files = plot(posterior, advice, tmp_path / label, formats=("svg",))
        assert len(files) == sum(kind.has_meaning(posterior) for kind in FIGURES.values())
