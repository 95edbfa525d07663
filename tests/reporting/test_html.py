"""The HTML report."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from advisor.advice import Leader, Recommendation, in_trainer_names
from advisor.model import Posterior
from advisor.reporting import FIGURES, drawings_made, page

from .conftest import Pilot

Build = Callable[..., Any]
VOID = {"meta", "img", "link", "br", "hr", "input"}


def report_html(posterior: Posterior, advice: Recommendation, **parts: Any) -> str:
    """The page, with all figures."""
    return page.html(posterior, advice, drawings_made(posterior, advice), **parts)


class Page(HTMLParser):
    """Elements with their text; fails where a tag is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data.strip())


@pytest.fixture(scope="module")
def text(posterior: Posterior, advice: Recommendation) -> str:
    return report_html(posterior, advice)


@pytest.mark.evidence
def test_the_answer_comes_first_and_all_parts_follow(text: str, advice: Recommendation) -> None:
    found = Page(text)
    assert found.texts["h1"] == ["Recommended configuration"]
    decided, trajectories, stability, *statistics = [kind.title for kind in FIGURES.values()]
    assert found.texts["h2"] == [
        "Answer",
        decided,
        "What if",
        "Settings next to alternatives and common recipes",
        trajectories,
        stability,
        "Diagnosis of the pilots",
        "Assumptions",
        "How to read this page",
        *statistics,
        "Convergence of the sampler",
        "Provenance",
    ]
    folded = text[text.index('<details id="statistics">') : text.index("provenance")]
    assert all(title in folded for title in statistics)
    first = advice.text.splitlines()[0]
    assert text.index(first) < text.index("<nav")
    assert any("lag = 0.0 assumed" in line for line in found.texts["li"])
    assert {"1.001 (population)", "none", advice.provenance.data_sha256} <= set(found.texts["dd"])


@pytest.mark.evidence
def test_what_came_of_finished_runs_follows_the_answer(
    posterior: Posterior, advice: Recommendation
) -> None:
    came = {
        "title": "Forecast and outcome",
        "columns": ["", "forecast", "outcome"],
        "rows": [["<i>advised", "0.9 [0.8, 0.95]", "0.87, stable"]],
        "notes": ["The pilots generated 10 completions."],
    }
    text = report_html(posterior, advice, outcome=came)
    found = Page(text)
    assert found.texts["h2"][:2] == ["Answer", "Forecast and outcome"]
    assert "0.87, stable" in found.texts["td"]
    assert "<i>advised" in found.texts["th"]
    assert ("a", {"href": "#outcome"}) in found.tags
    assert "The pilots generated 10 completions." in found.texts["p"]


@pytest.mark.evidence
def test_it_is_one_small_page_that_asks_nobody(text: str) -> None:
    assert len(text.encode()) < 5_000_000
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    outside = re.sub(r"data:[^\"]+|<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"https?:|//|@import|url\((?!#)|<link", outside)
    # The one address in the script is SVG's name, which nobody is asked for.
    assert re.findall(r"https?:[^\"]+", scripts[0]) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"fetch\(|XMLHttp|import\(|eval\(|innerHTML", scripts[0])
    policy = next(
        values["content"]
        for tag, values in Page(text).tags
        if tag == "meta" and values.get("http-equiv") == "Content-Security-Policy"
    )
    told = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{told}'"
    )


def drawings_in(text: str) -> list[str]:
    found = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', text)
    return [base64.b64decode(one).decode("utf-8") for one in found]


@pytest.mark.evidence
def test_a_section_that_cannot_be_made_costs_no_other(
    posterior: Posterior, advice: Recommendation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ValueError("the <b>sky</b> fell")

    kept = report_html(posterior, advice)
    broken = dataclasses.replace(FIGURES["posteriors"], info=fails)
    monkeypatch.setitem(FIGURES, "posteriors", broken)
    unrendered = dataclasses.replace(FIGURES["trajectories"], draw=lambda info: object())
    monkeypatch.setitem(FIGURES, "trajectories", unrendered)
    monkeypatch.setattr(page, "explorer_data", fails)
    text = report_html(posterior, advice)
    found = Page(text)
    assert found.texts["h2"] == Page(kept).texts["h2"]
    said = " ".join(found.texts["p"])
    assert said.count("the <b>sky</b> fell.") == 2
    assert "This figure could not be made: the <b>sky</b> fell." in said
    assert "The sliders could not be made: the <b>sky</b> fell." in said
    assert len(drawings_in(text)) == len(FIGURES) - 2
    assert in_trainer_names(advice.settings) in text


@pytest.mark.evidence
def test_a_script_for_a_name_comes_out_as_text(build: Build, advise: Build) -> None:
    name = "<script>alert('x')</script>"
    pilots = [Pilot(1e-4, model=name, task='"><img src=x onerror=alert(1)>')]
    posterior = build(pilots)
    text = report_html(posterior, advise(posterior, pilots[0]))
    found = Page(text)
    tags = [tag for tag, _ in found.tags]
    assert tags.count("script") == 2
    pictures = [values["src"] or "" for tag, values in found.tags if tag == "img"]
    assert all(one.startswith("data:image/svg+xml;base64,") for one in pictures)
    assert len(drawings_in(text)) == len(FIGURES) - 1  # of one pilot no map is drawn
    assert not any(key.startswith("on") for _, values in found.tags for key in values)
    assert any(name in line for line in found.texts["p"])
    assert any(name in (values.get("alt") or "") for _, values in found.tags)


# One configuration to a block -------------------------------------------------------------------


def block(text: str, heading: str) -> str:
    """Source of the section that a heading opens."""
    sections = re.findall(r"<section.*?</section>", text, re.DOTALL)
    (found,) = [one for one in sections if f">{heading}" in one]
    return str(found)


@pytest.mark.evidence
def test_why_not_the_leader_stands_on_the_first_screen(
    posterior: Posterior, advice: Recommendation
) -> None:
    """Before the figures, with the option that overrides; a leader that is followed has no word."""
    leader = Leader(
        pilot="<b>hot</b>",
        settings=advice.settings.model_copy(update={"learning_rate": 2e-3}),
        reward=0.9,
        steps=60,
        is_followed=False,
    )
    best = advice.best_piloted.model_copy(update={"settings": leader.settings, "p_beaten": 0.7})
    said = advice.model_copy(update={"leader": leader, "best_piloted": best})
    first = block(report_html(posterior, said), "Answer")
    assert "Why not the leader?" in first
    assert "Pilot &#39;&lt;b&gt;hot&lt;/b&gt;&#39; leads with" in first
    assert "--learning-rates 0.002" in first
    followed = said.model_copy(update={"leader": leader.model_copy(update={"is_followed": True})})
    assert "Why not the leader" not in report_html(posterior, followed)
