"""The page in a real browser: no errors, sliders that move Python's numbers, copies, axe."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advisor.advice import Recommendation
from advisor.advice.scenario import evaluated
from advisor.advice.wording import in_trainer_names, percent
from advisor.model.posterior import Posterior
from advisor.reporting import report
from advisor.reporting.page.explorer import explorer_data, page_forecaster

from .browser import chromium
from .conftest import Pilot

AXE = os.environ.get("AXE_JS", "")
"""Path of axe.min.js of the npm package axe-core."""


@pytest.fixture(scope="module")
def page(
    posterior: Posterior, advice: Recommendation, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    return report(posterior, advice, out, configs={"trl": "learning_rate: 1e-4\n"})


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Any]:
    with chromium() as started:
        started.get(page.as_uri())
        yield started


def complaints(browser: Any) -> list[Any]:
    return [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]


def moved(browser: Any, name: str, at: int) -> None:
    browser.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('input'));",
        f"slider-{name}",
        at,
    )


def exact(browser: Any, name: str) -> float:
    return float(browser.find_element("id", name).get_attribute("data-exact"))


def by_package(posterior: Posterior, advice: Recommendation, rate: float) -> dict[str, Any]:
    """Numbers of another learning rate, of the draws that the page holds."""
    changes = {"learning_rate": rate, "steps": advice.steps}
    forecaster = page_forecaster(posterior, advice)
    table = evaluated(forecaster, advice.cost_model, advice.settings, changes)
    return dict(table.to_dict(orient="records")[0])


def shown(browser: Any, name: str) -> str:
    return str(browser.find_element("id", f"value-{name}").get_property("value"))


def typed(browser: Any, name: str, text: str) -> None:
    from selenium.webdriver.common.keys import Keys

    field = browser.find_element("id", f"value-{name}")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text, Keys.TAB)


def text_of(browser: Any, name: str) -> str:
    return str(browser.find_element("id", name).text)


def is_grey(browser: Any) -> bool:
    return "extrapolated" in browser.find_element("id", "what-tiles").get_attribute("class")


def test_it_starts_with_the_numbers_of_the_answer(browser: Any, advice: Recommendation) -> None:
    browser.find_element("id", "what-reset").click()
    assert text_of(browser, "what-reward") == f"{advice.reward.mean:.3f}"
    low, high = advice.reward.low, advice.reward.high
    assert text_of(browser, "what-band") == f"80 % of runs: {low:.3f} to {high:.3f}"
    assert text_of(browser, "what-stable") == percent(advice.stability.probability)
    (hero,) = browser.find_elements("css selector", ".first .tiles div:first-child strong")[:1]
    assert hero.text == text_of(browser, "what-reward")


def test_a_typed_value_is_taken_as_it_stands(
    browser: Any, posterior: Posterior, advice: Recommendation
) -> None:
    typed(browser, "learning_rate", "2.345e-4")
    assert shown(browser, "learning_rate") in ("2.35e-4", "2.34e-4")
    row = by_package(posterior, advice, 2.345e-4)
    assert exact(browser, "what-reward") == pytest.approx(row["reward"], abs=1e-6)
    typed(browser, "group_size", "many")
    assert "cannot be" in text_of(browser, "what-notes")
    assert browser.find_element("id", "value-group_size").get_attribute("aria-invalid") == "true"
    browser.find_element("id", "what-reset").click()
    assert browser.find_element("id", "value-group_size").get_attribute("aria-invalid") is None


def test_beyond_the_pilots_numbers_are_grey_and_say_so(browser: Any) -> None:
    browser.find_element("id", "what-reset").click()
    assert not is_grey(browser)
    typed(browser, "group_size", "4096")
    typed(browser, "learning_rate", "1")
    assert is_grey(browser)
    said = text_of(browser, "what-notes")
    assert "learning rate 1 (piloted: 1e-4 to 0.003)" in said
    assert "group size 4096 (piloted: 8 to 32)" in said
    assert "the prior's word" in said
    browser.find_element("id", "what-reset").click()
    assert not is_grey(browser)


def test_size_exponents_are_learned_where_two_sizes_ran(
    browser: Any, build: Any, advise: Any, tmp_path: Path
) -> None:
    def said(page: Path | None) -> str:
        if page is not None:
            browser.get(page.as_uri())
        moved(browser, "parameters", 0)
        return text_of(browser, "what-notes")

    assert "exponents that 2 piloted sizes told" in said(None)
    here, posterior = browser.current_url, build([Pilot(1e-4), Pilot(3e-4, 16)])
    one = report(posterior, advise(posterior, Pilot(1e-4)), tmp_path / "one.html")
    assert "the prior's exponents, since pilots ran one size" in said(one)
    browser.get(here)


def test_it_opens_without_a_complaint(browser: Any) -> None:
    assert complaints(browser) == []
    assert browser.find_element("tag name", "h1").text == "Recommended configuration"


def test_sliders_move_the_numbers_of_python(
    browser: Any, posterior: Posterior, advice: Recommendation
) -> None:
    choices = explorer_data(posterior, advice)["choices"]
    browser.find_element("id", "what-reset").click()
    before = exact(browser, "what-reward")
    for at in (0, len(choices["learning_rate"]) - 1):
        moved(browser, "learning_rate", at)
        row = by_package(posterior, advice, choices["learning_rate"][at])
        assert exact(browser, "what-reward") == pytest.approx(row["reward"], abs=1e-6)
        assert exact(browser, "what-stable") == pytest.approx(row["p_stable"], abs=1e-6)
        assert exact(browser, "what-reward") != before
    browser.find_element("id", "what-reset").click()
    assert exact(browser, "what-reward") == before


def test_a_move_is_quick(browser: Any) -> None:
    took = browser.execute_script(
        "const s = document.getElementById('slider-learning_rate'), t = performance.now();"
        "for (let k = 0; k < 10; k++) { s.value = k; s.dispatchEvent(new Event('input')); }"
        "return (performance.now() - t) / 10;"
    )
    assert took < 50, f"{took:.0f} ms a move"


def test_a_slider_moves_by_keyboard(browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.find_element("id", "what-reset").click()
    slider = browser.find_element("id", "slider-group_size")
    before = shown(browser, "group_size")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert shown(browser, "group_size") != before
    assert slider.get_attribute("aria-valuetext") != before
    browser.find_element("id", "what-reset").click()


def test_copying_copies(browser: Any, advice: Recommendation) -> None:
    button = browser.find_element("css selector", "button[data-copy=paste]")
    button.click()
    time.sleep(0.2)
    assert button.text == "Copied"
    browser.execute_script(
        "const a = document.createElement('textarea'); a.id = 'probe'; document.body.append(a);"
        "a.focus();"
    )
    from selenium.webdriver.common.keys import Keys

    browser.find_element("id", "probe").send_keys(Keys.CONTROL, "v")
    pasted = browser.find_element("id", "probe").get_property("value")
    browser.execute_script("document.getElementById('probe').remove()")
    assert pasted == in_trainer_names(advice.settings, advice.trainer)


@pytest.mark.parametrize("width", [360, 1600])
def test_nothing_is_wider_than_the_screen(page: Path, width: int) -> None:
    with chromium() as browser:
        # A window cannot be as narrow as a phone: the device is emulated.
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        browser.get(page.as_uri())
        shown, needed = browser.execute_script(
            "return [window.innerWidth, document.documentElement.scrollWidth]"
        )
        assert shown == width
        assert needed <= width
        assert complaints(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: Path, scheme: str) -> None:
    if not Path(AXE).is_file():
        pytest.skip("set AXE_JS to axe.min.js of the npm package axe-core")
    with chromium() as browser:
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
        browser.get(page.as_uri())
        browser.execute_script(Path(AXE).read_text(encoding="utf-8"))
        found = browser.execute_async_script(
            "const done = arguments[0]; axe.run().then((r) => done(r.violations.map("
            "(v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' | '))));"
        )
        assert found == []


def test_a_hostile_name_runs_nothing(build: Any, advise: Any, tmp_path: Path) -> None:
    name = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
    pilots = [Pilot(1e-4, model=name, task=name)]
    posterior = build(pilots)
    out = report(posterior, advise(posterior, pilots[0]), tmp_path / "report.html")
    with chromium() as browser:
        browser.get(out.as_uri())
        assert browser.execute_script("return window.hit") is None
        assert complaints(browser) == []
        assert exact(browser, "what-reward") > 0
