"""What a folder of logs holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.runs.logfiles.logged import Unread
from advisor.runs.logs.readers import LOGS
from advisor.runs.pilot_run import PilotRun
from advisor.text import counted

SHOWN = 5  # Runs that the short form of an inspection names


@dataclass(frozen=True)
class Inspection:
    """What files and folders hold."""

    runs: list[PilotRun]  # By path, with unique ids; copies of a run are there and say so
    unread: list[Unread]  # Files that gave no run, and why
    configs: dict[Path, int] = field(default_factory=dict)  # With settings -> of how many logs
    unused_configs: list[str] = field(default_factory=list)  # What to do with them, each once

    @property
    def train_runs(self) -> list[PilotRun]:
        """Runs with train rewards, copies left out."""
        return [run for run in self.runs if run.copy_of is None and not run.is_eval_only]

    @property
    def is_flat(self) -> bool:
        """Whether there are train rewards, and none moved by more than its noise."""
        return bool(self.train_runs) and not any(run.has_moved for run in self.train_runs)

    @property
    def unread_logs(self) -> list[Unread]:
        """Files that gave no run and were meant to be logs."""
        logs = (item for item in self.unread if item.kind in ("log", "broken"))
        return [item for item in logs if item.path not in self.configs]

    def __repr__(self) -> str:
        """How many runs and other files there are, and the first runs."""
        files = counted(len(self.unread), "file")
        lines = [f"Inspection({counted(len(self.runs), 'run')}, {files} without one)"]
        lines += [f"  {run!r}" for run in self.runs[:SHOWN]]
        lines += [f"  and {len(self.runs) - SHOWN} more"] if len(self.runs) > SHOWN else []
        return "\n".join(lines)

    def refused(self, given: Sequence[str | Path], problem: str, instead: str | None) -> InputError:
        """Error of paths that hold no run, with a few reasons; `instead` is to be given."""
        shown = self.unread_logs or self.unread
        why = "; ".join(f"{path.name}: {reason}" for path, reason, _ in shown[:3])
        why += f"; and {counted(len(shown) - 3, 'more file')}" if shown[3:] else ""
        return InputError(
            problem + (f" ({why})" if why else ""),
            path=", ".join(str(path) for path in given[:3]),
            # What is wrong with a log says what to do.
            advice=None if self.unread_logs or not instead else f"Give {instead} {LOGS}",
        )

    def to_json(self) -> str:
        """All of it as JSON."""
        document = {
            "runs": [_run(run) for run in self.runs],
            "unread": [{"path": str(path), "reason": reason} for path, reason, _ in self.unread],
        }
        return json.dumps(document, indent=1, allow_nan=False)


def _run(run: PilotRun) -> dict[str, Any]:
    reward = run.reward_ends or (None, None)
    held_out = run.eval_ends or (None, None)
    own = ("id", "path", "format", "framework", "copy_of", "model", "parameters", "task")
    reading = ("keys_read", "keys_understood", "keys_ignored", "derivations", "assumptions")
    return {
        **{name: getattr(run, name) for name in own},
        "hyperparameters": run.hyperparameters.model_dump(),
        "refresh_interval": run.hyperparameters.refresh_interval,
        "rows": int(run.step.size),
        "first_step": None if run.is_eval_only else int(run.step[0]),
        "last_step": None if run.is_eval_only else int(run.step[-1]),
        "step_unit": run.step_unit,
        "logging_steps": run.logging_steps,
        "reward_first": reward[0],
        "reward_last": reward[1],
        "evaluations": int(run.eval_step.size),
        "eval_first": held_out[0],
        "eval_last": held_out[1],
        "series": sorted(run.series),
        "missing": run.missing,
        "needs": list(run.needs),
        **{name: getattr(run, name) for name in (*reading, "warnings")},
    }
