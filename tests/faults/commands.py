"""Commands that write, each in a forked process that can be killed at any moment.

Fit, search and drawing are made up beforehand: what is tried is writing. Parsing, checks before
work, locks, drafts, renames and messages are those of the command line.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

SECONDS = 20.0
"""Of its own time after which a command hangs."""

CLOCK = 120.0
"""Seconds on the clock after which it hangs as well: these machines are shared."""

SEEDS = (1, 2)
"""Of the two posteriors and answers that writers write."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its code (negative for a signal), what it printed and said."""

    code: int
    out: str
    said: str
    seconds: float
    own_seconds: float

    @property
    def wrong(self) -> str:
        """What must never be: a hang, a crash, an internal error, a traceback."""
        if self.own_seconds > SECONDS or self.seconds > CLOCK:
            return f"took {self.own_seconds:.0f} s of its own, {self.seconds:.0f} on the clock"
        if self.code == 1 or (self.code < 0 and self.code not in KILLED):
            return f"ended with {self.code}: {self.said.strip()[-300:]}"
        if "Traceback" in self.said or "Internal error" in self.said:
            return self.said.strip()[-300:]
        return ""


KILLED = (-signal.SIGKILL, -signal.SIGTERM)


class Stage:
    """Made-up work for the commands, and a whole study that they may start from."""

    def __init__(self) -> None:
        from simulated_runs import made_up_posterior

        from advisor import demo_folder
        from advisor.advice import advise
        from advisor.cli import app

        assert app
        self.logs = demo_folder() / "s_lr3e-4_g8_k2"
        self.posteriors = {seed: made_up_posterior(seed=seed) for seed in SEEDS}
        asked: dict[str, Any] = {"group_sizes": (8,), "learning_rates": (3e-4,)}
        self.answers = {
            seed: advise(one, trials=20, weigh_pilots=False, seed=seed, **asked)
            for seed, one in self.posteriors.items()
        }
        self.text = {seed: one.to_json() for seed, one in self.answers.items()}
        for name in ("study", "priors", "compare", "pilots"):
            __import__(f"advisor.cli.{name}")

    def study(self, folder: Path, seed: int) -> None:
        """Write a whole study."""
        from advisor.study import Study

        with self._made_up(seed):
            Study(self.posteriors[seed], self.answers[seed]).save(folder)

    def seed_of(self, folder: Path) -> int | None:
        """Which of the two answers a study holds, whole; None where it holds neither."""
        from advisor.errors import StudyError
        from advisor.study import Study

        try:
            study = Study.load(folder)
        except StudyError:
            return None
        text = study.recommendation.to_json()
        return next((seed for seed, known in self.text.items() if known == text), None)

    def run(
        self,
        arguments: Sequence[object],
        cwd: Path,
        *,
        seed: int = 1,
        kill_after: float | None = None,
        kill_at: int = 0,
        number: int = signal.SIGKILL,
    ) -> Ended:
        """Run a command in a fork, and end it after some seconds or at a rename.

        Many parameters because: each is one way to end or to vary a command.

        Parameters
        ----------
        arguments : sequence
            Of the command line.
        cwd : Path
        seed : int
            Of the answer that its work gives.
        kill_after : float, optional
            Seconds after the start.
        kill_at : int
            Rename, link or removal, counted from one; 0 for none.
        number : int
            The signal.
        """
        child = self.start(arguments, cwd, seed=seed, kill_at=kill_at)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child.pid, number)
        return child.ended()

    def start(
        self,
        arguments: Sequence[object],
        cwd: Path,
        *,
        seed: int = 1,
        kill_at: int = 0,
    ) -> Child:
        """Begin a command in a fork."""
        name = f"{random.randrange(1 << 40):x}"
        out, said = Path("/dev/shm") / f"{name}.out", Path("/dev/shm") / f"{name}.err"
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                os.chdir(cwd)
                for number, path in ((1, out), (2, said)):
                    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
                sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
                sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
                code = self._called([str(one) for one in arguments], seed, kill_at)
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        return Child(pid, out, said, time.monotonic())

    def _called(self, arguments: list[str], seed: int, kill_at: int) -> int:
        from advisor.cli import main

        with self._made_up(seed), _killed_at(kill_at):
            try:
                main(arguments)
            except SystemExit as stopped:
                return stopped.code if isinstance(stopped.code, int) else 0
        return 0

    def _made_up(self, seed: int) -> Any:
        from contextlib import ExitStack

        stack = ExitStack()
        for name, replaced in (
            ("advisor.forecast.fit", lambda *given, **more: self.posteriors[seed]),
            ("advisor.advice.advise", lambda *given, **more: self.answers[seed]),
            ("advisor.reporting.plot", _few_bytes),
            ("advisor.reporting.drawings", lambda *given, **more: []),
            ("advisor.reporting.drawings_made", lambda *given, **more: []),
            ("advisor.reporting.report", _page),
        ):
            stack.enter_context(mock.patch(name, replaced))
        return stack


@dataclass(frozen=True)
class Child:
    """A command that runs."""

    pid: int
    out: Path
    err: Path
    began: float

    def ended(self) -> Ended:
        """Wait for it; what takes too long is killed."""
        while True:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
            took = time.monotonic() - self.began
            if pid:
                break
            if took > CLOCK + 5:
                os.kill(self.pid, signal.SIGKILL)
                _, status, used = os.wait4(self.pid, 0)
                break
            time.sleep(0.002)
        texts = []
        for path in (self.out, self.err):
            texts.append(path.read_text(errors="replace") if path.exists() else "")
            path.unlink(missing_ok=True)
        own = used.ru_utime + used.ru_stime
        return Ended(os.waitstatus_to_exitcode(status), texts[0], texts[1], took, own)


def settings_in(out: str) -> object:
    """Settings of the answer that was printed as JSON; None where there is none."""
    try:
        return json.loads(out)["settings"]
    except (ValueError, KeyError, TypeError):
        return None


def _few_bytes(posterior: Any, recommendation: Any, folder: Any, **more: Any) -> list[Path]:
    """A figure, without the seconds that drawing takes."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / "figure.svg").write_text("<svg/>" * 1000)
    return [path / "figure.svg"]


def _page(posterior: Any, recommendation: Any, path: Any, **more: Any) -> Path:
    """A page of the size of a real one, written as the real one is."""
    from advisor.common import write_whole

    out = Path(path)
    write_whole(out, f"<!doctype html><html>{'<p>text</p>' * 60_000}</html>")
    return out


def _killed_at(turn: int) -> Any:
    """Patches that end the process before a rename, link or removal."""
    from contextlib import ExitStack

    from advisor.common import saving

    count = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == turn:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **more)

        return run

    stack = ExitStack()
    for name in ("rename", "replace", "link"):
        stack.enter_context(mock.patch.object(os, name, counted(getattr(os, name))))
    stack.enter_context(mock.patch.object(saving.shutil, "rmtree", counted(saving.shutil.rmtree)))
    return stack
