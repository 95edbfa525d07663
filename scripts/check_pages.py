"""Open reports in Chromium and judge them: widths, light and dark, keyboard, axe-core.

``python scripts/check_pages.py report.html ... [--shots FOLDER]``

It needs Chromium (``apt-get install chromium``, or a browser named by ``CHROMIUM``) and nothing of
Python's but the standard library. Where axe-core is found, its rules are checked as well: that of
``pip install --no-deps axe-playwright-python``, which brings its script along, of ``npm install
axe-core``, or an ``axe.min.js`` that ``AXE_JS`` names. Without Chromium nothing is checked, and the
exit code is 0; a complaint is printed and makes it 1. ``scripts/make_pages.py`` makes a page of
every kind.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WIDTHS = (390, 1000, 1400)
"""CSS pixels: a phone, half a screen, a screen."""

SCHEMES = ("light", "dark")
HEIGHT = 900
PATIENCE = 60.0
"""Seconds for one answer of the browser."""

AXE = "axe.min.js"
"""File in which axe-core comes."""

MOST_TABS = 400
"""Presses of Tab after which a page that has not come round is a trap."""

HOW = (
    "Install Chromium (apt-get install chromium) or name a browser by CHROMIUM=/path; "
    "pip install --no-deps axe-playwright-python, or AXE_JS=/path/to/axe.min.js, adds the rules of "
    "accessibility."
)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for own, end in zip((3, 4), ends):
    os.dup2(end, own)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser reads the protocol from its descriptor 3 and writes it to 4."""

KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "ArrowRight": (39, ""),
    "ArrowLeft": (37, ""),
    "Home": (36, ""),
    "End": (35, ""),
}
"""Keys that are pressed: their codes, and the characters that they type."""


def chromium_path() -> str | None:
    """Browser to use, or None where there is none."""
    named = os.environ.get("CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    return next((found for found in map(shutil.which, names) if found), None)


def axe_source() -> str | None:
    """Text of axe-core, or None where it is not found."""
    named = os.environ.get("AXE_JS")
    places = [Path(named)] if named else [Path("node_modules", "axe-core", AXE)]
    # The package is found, not imported: it would ask for a driver of browsers.
    package = None if named else importlib.util.find_spec("axe_playwright_python")
    if package is not None:
        places += [Path(place, AXE) for place in package.submodule_search_locations or ()]
    found = next((place for place in places if place.is_file()), None)
    return None if found is None else found.read_text(encoding="utf-8")


class Page:
    """One tab of a headless Chromium, over the pipe of its own debugging protocol."""

    def __init__(self, process: subprocess.Popen[bytes], send: int, receive: int) -> None:
        self._process, self._send, self._receive = process, send, receive
        self._ids, self._rest = itertools.count(1), b""
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser, and wait for its answer; what else it says is kept."""
        number = next(self._ids)
        asked: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._send, json.dumps(asked).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == number:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']['message']}")
                return dict(heard["result"])
            self._note(heard)

    def _hear(self) -> dict[str, Any]:
        import select

        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser said nothing for {PATIENCE:g} s")
            more = os.read(self._receive, 1 << 20)
            if not more:
                raise RuntimeError("the browser ended")
            self._rest += more
        one, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(one))

    def _note(self, heard: dict[str, Any]) -> None:
        params = heard.get("params", {})
        if heard.get("method") == "Log.entryAdded":
            entry = params["entry"]
            if entry["level"] in ("warning", "error"):
                self.complaints.append(str(entry["text"]))
        elif heard.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"].get("exception", params)))

    def open(self, path: Path, *, is_trusted: bool = False) -> None:
        """Load a file; ``is_trusted`` lifts the page's own policy, for scripts that judge it."""
        self.complaints.clear()
        self.call("Page.setBypassCSP", enabled=is_trusted)
        self.call("Page.navigate", url=path.resolve().as_uri())
        until = time.monotonic() + PATIENCE
        wanted = json.dumps(path.resolve().as_uri())
        while not self.js(f"document.readyState === 'complete' && location.href === {wanted}"):
            if time.monotonic() > until:
                raise TimeoutError(f"{path} does not load")
            time.sleep(0.05)

    def js(self, source: str) -> Any:
        """Value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=source, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", source))
        return found["result"].get("value")

    def look(self, width: int, scheme: str, height: int = HEIGHT) -> None:
        """Take the size of a device, and its colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def press(self, key: str, *, control: bool = False) -> None:
        """Press one of ``KEYS``, or a letter with Control."""
        code, text = KEYS.get(key, (ord(key[0].upper()), ""))
        given: dict[str, Any] = {
            "key": key,
            "code": key if key in KEYS else f"Key{key.upper()}",
            "windowsVirtualKeyCode": code,
            "modifiers": 2 if control else 0,
        }
        commands = {"a": ["selectAll"], "v": ["paste"]}.get(key, []) if control else []
        typed = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", commands=commands, **given, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def write(self, text: str) -> None:
        """Type text into what has the focus."""
        self.call("Input.insertText", text=text)

    def shot(self, path: Path) -> None:
        """Picture of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """Start Chromium, and end it.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    binary = chromium_path()
    if binary is None:
        raise FileNotFoundError(f"no Chromium was found. {HOW}")
    to_browser, send = os.pipe()
    receive, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [binary, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(to_browser), str(from_browser), *words],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_browser, from_browser):
            os.close(end)
        try:
            yield Page(process, send, receive)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for end in (send, receive):
                os.close(end)


OVERFLOW = "[window.innerWidth, document.documentElement.scrollWidth]"

RUN_AXE = "axe.run().then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 160)).join(' | ')))"  # noqa: E501

MOST_CUT = 2.0
"""Pixels that the frame of a word, which is higher than its letters, may reach beyond a figure."""

LEAST_WORDS, LEAST_CONTRAST = 9.0, 4.5
"""Height in pixels from which words of a figure can be read, and the contrast that WCAG asks for;
axe-core judges no words of a drawing."""

INLINE = """document.querySelectorAll('.paper img').forEach((one) => {
  one.outerHTML = new TextDecoder().decode(Uint8Array.from(atob(one.src.split(',')[1]), (c) => c.charCodeAt(0)));
})"""  # noqa: E501
"""Figures as elements of the page, whose words can be measured."""

DRAWN_WORDS = """(() => {
  const parsed = (colour) => (colour.match(/[\\d.]+/g) || [0, 0, 0]).map(Number);
  const light = (colour) => parsed(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const found = [];
  for (const text of document.querySelectorAll('svg text')) {
    if (!text.checkVisibility() || !text.textContent.trim()) continue;
    const style = getComputedStyle(text), place = text.getScreenCTM();
    const ground = text.closest('.paper') ? 'rgb(255, 255, 255)' : getComputedStyle(document.body).backgroundColor;
    const box = text.getBoundingClientRect(), whole = text.ownerSVGElement.getBoundingClientRect();
    const cut = Math.max(whole.left - box.left, box.right - whole.right, whole.top - box.top, box.bottom - whole.bottom);
    const [dark, bright] = [light(style.fill), light(ground)].sort((a, b) => a - b);
    found.push([text.textContent.trim().slice(0, 40), parseFloat(style.fontSize) * Math.hypot(place.a, place.b),
      (bright + 0.05) / (dark + 0.05), cut]);
  }
  return found;
})()"""  # noqa: E501

FOCUS = """(() => {
  const one = document.activeElement;
  if (one === null || one === document.body) return null;
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  const name = one.getAttribute('aria-label') || (one.labels && one.labels.length ? one.labels[0].textContent : '') || one.textContent;
  window.marked = window.marked || [];
  let at = window.marked.indexOf(one);
  if (at < 0) at = window.marked.push(one) - 1;
  return { at, tag: one.tagName, id: one.id, name: name.trim().slice(0, 60),
    ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0, seen: box.width > 0 && box.height > 0 };
})()"""  # noqa: E501

REACHABLE = "[...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"]')].filter((e) => e.checkVisibility()).length"  # noqa: E501


def unreadable(page: Page) -> list[str]:
    """Complaints about words of figures that are too small, too pale or cut."""
    found = []
    page.js("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.js(INLINE)
    for text, height, contrast, cut in page.js(DRAWN_WORDS):
        if cut > MOST_CUT:
            found.append(f"'{text}' reaches {cut:.1f} px beyond its figure")
        if height < LEAST_WORDS:
            found.append(f"'{text}' in a figure is {height:.1f} px high")
        if contrast < LEAST_CONTRAST:
            found.append(f"'{text}' in a figure has a contrast of {contrast:.1f}")
    return found


def tabbed(page: Page) -> tuple[list[dict[str, Any]], int]:
    """What Tab stops at on a whole way round, and how many elements it should stop at."""
    wanted = int(page.js(REACHABLE))
    stops: list[dict[str, Any]] = []
    for _ in range(MOST_TABS):
        page.press("Tab")
        stop = page.js(FOCUS)
        if stop is None or stop["at"] < len(stops):
            break
        stops.append(stop)
    return stops, wanted


def by_keyboard(page: Page) -> list[str]:
    """Complaints about a way through the page without a mouse."""
    stops, wanted = tabbed(page)
    found = [f"{stop['tag']} '{stop['name']}' shows no focus" for stop in stops if not stop["ring"]]
    found += [f"{stop['tag']} #{stop['id']} has no name" for stop in stops if not stop["name"]]
    if len(stops) != wanted:
        found.append(f"Tab stops at {len(stops)} of {wanted} elements")
    return found


def complaints_of(page: Page, path: Path, shots: Path | None = None) -> list[str]:
    """Everything that is wrong with a report, at all widths and in both schemes."""
    axe, found = axe_source(), []
    for width, scheme in itertools.product(WIDTHS, SCHEMES):
        page.look(width, scheme)
        page.open(path, is_trusted=True)
        at = f"{path.name}, {width} px, {scheme}"
        shown, needed = page.js(OVERFLOW)
        if needed > shown:
            found.append(f"{at}: {needed} px wide")
        if axe is not None:
            page.js(f"{axe}; 0")
            found += [f"{at}: axe: {one}" for one in page.js(RUN_AXE)]
        if shots is not None:  # before figures are taken apart
            shots.mkdir(parents=True, exist_ok=True)
            page.shot(shots / f"{path.parent.name}-{path.stem}-{width}-{scheme}.png")
        found += [f"{at}: {one}" for one in unreadable(page)]
        found += [f"{at}: console: {one}" for one in page.complaints]
    page.look(WIDTHS[-1], SCHEMES[0])
    page.open(path)
    return [*found, *(f"{path.name}: keyboard: {one}" for one in by_keyboard(page))]


def main() -> int:
    """Check the reports that are named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=HOW)
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT.html")
    parser.add_argument("--shots", type=Path, help="folder for a picture of every look")
    asked = parser.parse_args()
    if chromium_path() is None:
        print(f"Not checked: no Chromium was found. {HOW}")
        return 0
    if axe_source() is None:
        print(f"Without the rules of accessibility: no axe-core was found. {HOW}")
    with browser() as page:
        found = [one for path in asked.reports for one in complaints_of(page, path, asked.shots)]
    print("\n".join(found) or f"{len(asked.reports)} reports: nothing to complain of.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
