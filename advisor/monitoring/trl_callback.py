"""Watch a run from within TRL: forecasts in the trainer's own log, and a stop where it is due.

Importing this module imports transformers, which the extra ``trl`` brings; nothing else does.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import AdvisorError
from advisor.model import Posterior
from advisor.monitoring import RunWatch, WatchReport, watch
from advisor.runs import PartialSettings, Trainer

try:
    from transformers import TrainerCallback
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("transformers is missing: pip install 'grpo-advisor[trl]'") from error

TRL = Trainer.named("TRL").keys[0]

NUMBERS = {
    **{"go on": 0.0, "change": 1.0, "stop": 2.0},
    **{"NOT APPLICABLE": 0.0, "PASS": 0.0, "INFO": 1.0, "WARNING": 2.0, "FAIL": 3.0},
}
"""Advice and verdicts as numbers, since trainers log numbers only."""


class AdvisorCallback(TrainerCallback):  # type: ignore[misc]
    """Logs ``advisor/...`` and, if wanted, stops the run.

    Parameters
    ----------
    posterior : Posterior or path-like
        ``posterior.nc``, or the folder of a study.
    task, model : str, optional
        As the pilots call them; needed where the posterior holds several.
    target_reward : float, optional
        Train reward to be reached, in reward units.
    level : float
        Probability of staying stable that is wanted.
    every : int
        Logged rows between two forecasts.
    stop : bool
        Whether the run is stopped where the advice says so.

    Attributes
    ----------
    last : WatchReport or None
        Latest forecast, with cards and advice.

    Notes
    -----
    Passed as ``callbacks=[...]``, its numbers stand in ``trainer.state.log_history`` and with what
    is printed. W&B, TensorBoard and Trackio are told of a row before it: :meth:`attach` puts the
    callback first, so that they get them too. Every process computes the same, so all stop at the
    same step.
    """

    def __init__(
        self,
        posterior: Posterior | str | Path,
        *,
        task: str | None = None,
        model: str | None = None,
        target_reward: float | None = None,
        level: float = 0.9,
        every: int = 1,
        stop: bool = False,
    ) -> None:
        self._wanted: dict[str, Any] = {
            "task": task,
            "model": model,
            "target_reward": target_reward,
            "level": level,
            "every": every,
        }
        # Loaded and checked here: a wrong path is to be reported before a model is loaded.
        self._posterior = watch(posterior, PartialSettings(), **self._wanted).watch.posterior
        self._stops = stop
        self._watch: RunWatch | None = None
        self._warned: set[str] = set()
        self.last: WatchReport | None = None

    @classmethod
    def attach(cls, trainer: Any, posterior: Posterior | str | Path, **wanted: Any) -> Any:
        """Add a callback, made as by the class, to a trainer before those that feed trackers."""
        callback = cls(posterior, **wanted)
        trainer.callback_handler.callbacks.insert(0, callback)
        return callback

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Read the settings, and what a resumed run had logged before."""
        derived = TRL.derive(
            {**args.to_dict(), "world_size": args.world_size, "max_steps": state.max_steps}
        )
        known = set(PartialSettings.model_fields)
        settings = {name: value for name, value in derived.facts.items() if name in known}
        self._watch = watch(self._posterior, settings, **self._wanted)
        for row in state.log_history:
            if "reward" in row:
                self._watch.take(int(row["step"]), **_series(row))

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Forecast, and add the numbers to the row that is being logged."""
        if self._watch is None or logs is None or "reward" not in logs:
            return
        try:
            found = self._watch.log(int(state.global_step), **_series(logs))
        except (AdvisorError, ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
            # A run must not die of being watched.
            self._warn(f"no forecast: {error}", state)
            return
        if found is None:
            return
        self.last = found
        numbers = scalars(found)
        logs.update(numbers)
        if state.log_history and state.log_history[-1].get("step") == state.global_step:
            state.log_history[-1].update(numbers)
        if found.decision.action != "go on":
            self._warn(found.decision.text, state, topic=found.decision.rule)
        if self._stops and found.decision.action == "stop":
            control.should_training_stop = True

    def _warn(self, line: str, state: Any, topic: str | None = None) -> None:
        if (topic or line) not in self._warned and state.is_world_process_zero:
            warnings.warn(f"advisor, step {state.global_step}: {line}", stacklevel=2)
        self._warned.add(topic or line)


def scalars(found: WatchReport) -> dict[str, float]:
    """Numbers of a forecast by the names under which they are logged."""
    update = found.update
    out = {
        "final_reward": update.final.mean,
        "final_reward_low": update.final.low,
        "final_reward_high": update.final.high,
        "p_unstable": update.p_unstable,
        "share_made": update.share_made,
        "pareto_k": update.pareto_k,
        "seconds": update.seconds,
        "action": NUMBERS[found.decision.action],
        "verdict": NUMBERS[found.diagnosis.verdict],
    }
    if update.p_reach is not None:
        out["p_reach"] = update.p_reach
    return {"advisor/" + name: value for name, value in out.items()}


def _series(row: dict[str, Any]) -> dict[str, float]:
    """Series of a logged row by our names; the first key that is there counts."""
    series = {"reward": float(row["reward"])}
    for name, keys in TRL.series.items():
        known = [key for key in keys if key in row]
        if known:
            series[name] = float(row[known[0]])
    return series
