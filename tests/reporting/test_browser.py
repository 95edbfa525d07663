"""The page in a real browser: no errors, sliders that move Python's numbers, keyboard, axe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from advisor.advice import Recommendation, in_trainer_names, what_if_rows
from advisor.forecast import Forecaster
from advisor.model import Posterior
from advisor.reporting import report
from advisor.reporting.page import explorer_data

from .browser import check_pages, chromium
from .conftest import PILOTS, Pilot

DRAWS = 400

Build = Callable[..., Any]

pytestmark = pytest.mark.evidence


@pytest.fixture(scope="module")
def page(
    posterior: Posterior, advice: Recommendation, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    return report(posterior, advice, out, configs={"trl": "learning_rate: 1e-4\n"})


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Any]:
    with chromium() as started:
        started.open(page)
        yield started


def element(name: str) -> str:
    return f"document.getElementById({json.dumps(name)})"


def text_of(browser: Any, name: str) -> str:
    return str(browser.js(f"{element(name)}.textContent"))


def exact(browser: Any, name: str) -> float:
    return float(browser.js(f"{element(name)}.dataset.exact"))


def moved(browser: Any, name: str, at: int) -> None:
    slider = element(f"slider-{name}")
    browser.js(f"{slider}.value = {at}; {slider}.dispatchEvent(new Event('input'))")


def typed(browser: Any, name: str, text: str) -> None:
    browser.js(f"{element(f'value-{name}')}.focus()")
    browser.press("a", control=True)
    browser.write(text)
    browser.press("Tab")


def reset(browser: Any) -> None:
    browser.js(f"{element('what-reset')}.click()")


def is_grey(browser: Any) -> bool:
    return bool(browser.js(f"{element('what-tiles')}.classList.contains('extrapolated')"))


def by_package(posterior: Posterior, advice: Recommendation, rate: float) -> dict[str, Any]:
    """Numbers of another learning rate, of the draws that the page holds."""
    changes = {"learning_rate": rate, "steps": advice.steps}
    forecaster = Forecaster(posterior, advice.target, draws=DRAWS, seed=advice.seed)
    return what_if_rows(forecaster, advice.cost_model, advice.settings, changes)[0]


# The what-if panel -----------------------------------------------------------------------------


def test_sliders_move_the_numbers_of_python(
    browser: Any, posterior: Posterior, advice: Recommendation
) -> None:
    choices = explorer_data(posterior, advice)["choices"]
    reset(browser)
    before = exact(browser, "what-reward")
    for at in (0, len(choices["learning_rate"]) - 1):
        moved(browser, "learning_rate", at)
        row = by_package(posterior, advice, choices["learning_rate"][at])
        assert exact(browser, "what-reward") == pytest.approx(row["reward"], abs=1e-6)
        assert exact(browser, "what-stable") == pytest.approx(row["p_stable"], abs=1e-6)
        assert exact(browser, "what-reward") != before
    reset(browser)
    assert exact(browser, "what-reward") == before


def test_beyond_the_pilots_numbers_are_grey_and_say_so(browser: Any) -> None:
    reset(browser)
    assert not is_grey(browser)
    typed(browser, "group_size", "4")
    moved(browser, "learning_rate", 0)
    assert is_grey(browser)
    said = text_of(browser, "what-notes")
    assert "learning rate 3.3e-5 (piloted: 1e-4 to 0.003)" in said
    assert "group size 4 (piloted: 8 to 32)" in said
    assert "Grey numbers are extrapolated." in said
    reset(browser)
    assert not is_grey(browser)


def test_charts_have_named_axes_with_round_ticks(browser: Any) -> None:
    reset(browser)
    for name, labels in (
        ("what-curve", {"learning rate (grey: not piloted)", "reward"}),
        ("what-risk", {"learning rate (grey: not piloted)", "P(stable)"}),
    ):
        words = browser.js(
            f"[...{element(name)}.querySelectorAll('text')].map((t) => t.textContent)"
        )
        assert labels <= set(words)
        edge, ends = browser.js(
            f"(() => {{ const s = {element(name)}, b = s.getBoundingClientRect();"
            "const e = [...s.querySelectorAll('text')].map((t) => t.getBoundingClientRect());"
            "return [[b.left, b.top, b.right, b.bottom], [Math.min(...e.map((x) => x.left)),"
            "Math.min(...e.map((x) => x.top)), Math.max(...e.map((x) => x.right)),"
            "Math.max(...e.map((x) => x.bottom))]]; })()"
        )
        assert edge[0] - 1 <= ends[0], "a label is cut off"
        assert edge[1] - 1 <= ends[1]
        assert ends[2] <= edge[2] + 1
        assert ends[3] <= edge[3] + 1
    ticks = browser.js(
        "[...document.querySelectorAll('#what-curve .end')].map((t) => t.textContent)"
    )
    assert ticks == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    rates = [float(word) for word in words if word[0].isdigit() and "%" not in word]
    assert len(rates) >= 3
    assert all(f"{rate:.0e}"[0] in "1235" and float(f"{rate:.0e}") == rate for rate in rates)
    # Every pilot stands on the axis, and so does what became of it.
    assert browser.js("document.querySelectorAll('#what-risk .pilot').length") == len(PILOTS) - 1
    assert browser.js("document.querySelectorAll('#what-risk .dead').length") == 1


# Keyboard and clipboard ------------------------------------------------------------------------


def test_copying_copies(page: Path, advice: Recommendation) -> None:
    with chromium() as browser:
        browser.open(page)
        button = "document.querySelector('button[data-copy=paste]')"
        browser.js(
            f"const b = {button}; window.said = new Promise((done) => "
            "new MutationObserver(() => done(b.textContent)).observe(b, { childList: true }));"
            "b.focus();"
        )
        browser.press("Enter")
        assert browser.js("window.said") == "Copied"
        browser.js(
            "const a = document.createElement('textarea'); a.id = 'probe'; document.body.append(a);"
            "a.focus();"
        )
        browser.press("v", control=True)
        pasted = browser.js(f"{element('probe')}.value")
        assert pasted == in_trainer_names(advice.settings, advice.trainer)


# All kinds of answers, at all widths, in light and dark ------------------------------------------


def dead(build: Build) -> Posterior:
    posterior: Posterior = build([Pilot(3e-3, collapse=7), Pilot(1e-2, collapse=5)])
    return posterior


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "recommendation": (None, {}),
    "next pilot": (None, {"kind": "next_pilot"}),
    "infeasible": (None, {"kind": "infeasible"}),
    "all pilots dead": (dead, {"kind": "next_pilot", "pilot": Pilot(3e-3)}),
    "one setting of a large model": (
        lambda build: build([Pilot(1e-5, model="7B", parameters=7e9)] * 3),
        {"pilot": Pilot(1e-5, model="7B", parameters=7e9)},
    ),
}


QUICK, *SLOW = KINDS
"""Each kind starts a browser three times, which takes ten seconds."""


@pytest.mark.parametrize("kind", [QUICK, *SLOW])
def test_nothing_is_to_be_complained_of(
    kind: str, posterior: Posterior, build: Build, advise: Build, tmp_path: Path
) -> None:
    make, asked = KINDS[kind]
    made = posterior if make is None else make(build)
    out = report(made, advise(made, **asked), tmp_path / "report.html", configs={"trl": "a: 1\n"})
    with chromium() as browser:
        assert check_pages.complaints_of(browser, out) == []
        if check_pages.axe_source() is None:
            pytest.skip(f"checked but for accessibility. {check_pages.HOW}")


def test_the_check_finds_what_is_wrong(page: Path, tmp_path: Path) -> None:
    """Negative control: each kind of fault is made, and found."""
    text = page.read_text(encoding="utf-8")
    broken = text.replace("</style>", ":focus-visible { outline: none !important; }</style>", 1)
    broken = broken.replace("<main>", '<main><div style="width: 3000px">x</div><button></button>')
    broken = broken.replace('"use strict";', '"use strict"; missing();', 1)
    bad = tmp_path / "bad.html"
    bad.write_text(broken, encoding="utf-8")
    with chromium() as browser:
        found = "\n".join(check_pages.complaints_of(browser, bad))
        for fault in ("px wide", "console: ", "shows no focus", "has no name"):
            assert fault in found
        if check_pages.axe_source() is None:
            pytest.skip(f"checked but for accessibility. {check_pages.HOW}")
        assert "axe: button-name" in found


def test_a_hostile_name_runs_nothing(build: Build, advise: Build, tmp_path: Path) -> None:
    name = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
    pilots = [Pilot(1e-4, model=name, task=name)]
    posterior = build(pilots)
    out = report(posterior, advise(posterior, pilots[0]), tmp_path / "report.html")
    with chromium() as browser:
        browser.open(out)
        assert browser.js("window.hit === undefined")
        assert browser.complaints == []
        assert exact(browser, "what-reward") > 0


@pytest.mark.parametrize("width", [390, 760])
def test_on_a_phone_a_figure_is_scrolled_and_its_words_can_be_read(page: Path, width: int) -> None:
    with chromium(width=width) as browser:
        browser.open(page)
        assert browser.js(
            "[...document.querySelectorAll('.paper')].every(p => p.scrollWidth > p.clientWidth)"
        )
        assert browser.js("document.documentElement.scrollWidth") <= width
        assert check_pages.unreadable(browser) == []
        # Negative control: scaled to the phone they could not.
        browser.js("document.querySelectorAll('.paper > *').forEach(s => s.style.minWidth = '0')")
        assert any("px high" in one for one in check_pages.unreadable(browser))
