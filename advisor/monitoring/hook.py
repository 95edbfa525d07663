"""Two lines for a training loop of one's own, and what the TRL callback stands on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from advisor.errors import InputError
from advisor.model import Posterior
from advisor.monitoring.decision import WatchReport, watch_report
from advisor.monitoring.watcher import Watch
from advisor.runs import PartialSettings, PilotRun


@dataclass(eq=False, repr=False)
class RunWatch:
    """A run that its own loop logs, row by row, with a forecast every so many rows.

    Task and model are needed where the posterior holds several.
    """

    watch: Watch
    settings: PartialSettings
    _: KW_ONLY
    task: str | None = None
    model: str | None = None
    every: int = 1
    name: str = "run"
    _rows: dict[int, dict[str, float]] = field(default_factory=dict, init=False)
    _since: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Refuse to forecast never."""
        if self.every < 1:
            raise InputError(
                f"a forecast every {self.every} rows", argument="every", advice="Give at least 1"
            )

    def log(self, step: int, **series: float) -> WatchReport | None:
        """Take the numbers of one optimizer step and forecast, where that is due.

        Steps count from one; one that was logged before starts a new branch from there. ``series``
        are ``reward`` and others by the names in `PilotRun.SERIES`; another name, or a run of
        which the posterior cannot speak, raises an ``InputError``. None is returned between
        forecasts, and as long as there are fewer than three rewards.
        """
        self.take(step, **series)
        if "reward" not in series:
            return None
        self._since += 1
        rewards = [row.get("reward", np.nan) for row in self._rows.values()]
        if self._since < self.every or np.isfinite(rewards).sum() < 3:
            return None
        self._since = 0
        return watch_report(self.watch, self.run())

    def take(self, step: int, **series: float) -> None:
        """Take the numbers of one optimizer step without a forecast, as :meth:`log` does."""
        unknown = sorted(set(series) - set(PilotRun.SERIES))
        if unknown:
            raise InputError(
                f"there is no series '{unknown[0]}'",
                argument="log",
                advice=f"Use {', '.join(PilotRun.SERIES)}",
            )
        self._rows = {at: row for at, row in self._rows.items() if at < step}
        self._rows[step] = {name: float(value) for name, value in series.items()}

    def run(self) -> PilotRun:
        """Return what was logged so far, as a run."""
        rows = [row | {"step": at} for at, row in sorted(self._rows.items()) if "reward" in row]
        names = [name for name in PilotRun.SERIES if any(name in row for row in rows)]
        steps = np.array([row["step"] for row in rows], dtype=float)
        spacing = int(np.median(np.diff(steps))) if steps.size > 1 else 1
        lost = {name: [not np.isfinite(row.get(name, 0.0)) for row in rows] for name in names}
        return PilotRun(
            id=self.name,
            path=self.name,
            task=self.task,
            model=self.model,
            hyperparameters=self.settings,
            step=steps,
            series={name: np.array([row.get(name, np.nan) for row in rows]) for name in names},
            not_finite={name: steps[bad] for name, bad in lost.items() if any(bad)},
            logging_steps=max(spacing, 1),
        )


def watch(
    posterior: Posterior | str | Path,
    settings: PartialSettings | Mapping[str, Any],
    *,
    target_reward: float | None = None,
    level: float = 0.9,
    task: str | None = None,
    model: str | None = None,
    every: int = 1,
) -> RunWatch:
    """Watch a run from within its training loop.

    Parameters
    ----------
    posterior : Posterior or path-like
        ``posterior.nc``, or the folder of a study.
    settings : PartialSettings or mapping
        Of the run, with ``planned_steps``.
    target_reward : float, optional
        In reward units.
    level : float
        Probability of staying stable that is wanted.
    task, model : str, optional
        Needed where the posterior holds several.
    every : int
        Rows between two forecasts.

    Returns
    -------
    watch : RunWatch

    Examples
    --------
    ``watch = advisor.watch("study", settings)`` before the loop and
    ``found = watch.log(step, reward=reward, entropy=entropy)`` in it;
    ``found.decision.action == "stop"`` ends it.
    """
    known = posterior if isinstance(posterior, Posterior) else load_posterior(posterior)[0]
    watch = Watch(known, target_reward=target_reward, level=level)
    given = PartialSettings.checked(dict(settings), argument="settings")
    return RunWatch(watch, given, task=task, model=model, every=every)


class Advised(NamedTuple):
    """What a study says of its full run."""

    steps: int | None = None
    gpus: int = 1
    settings: Mapping[str, Any] | None = None


def load_posterior(path: str | Path) -> tuple[Posterior, Advised]:
    """Load a posterior from its file or a study's folder, and what the study advised."""
    at = Path(path)
    file = at / "posterior.nc" if at.is_dir() else at
    if not file.is_file():
        raise InputError(
            "there is no posterior",
            path=file,
            argument="posterior",
            advice="Give posterior.nc, or the folder that advisor advise wrote",
        )
    try:
        answer = json.loads((file.parent / "recommendation.json").read_text(encoding="utf-8"))
        parameters = answer.get("target", {}).get("parameters")
        settings = {**answer.get("settings", {}), "parameters": parameters}
        advised = Advised(int(answer["steps"]), int(answer["cost_model"]["gpus"]), settings)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        advised = Advised()
    return Posterior.load(file), advised
