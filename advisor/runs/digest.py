"""Hash of all that a run tells: another row, setting or name gives another one."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from advisor.runs.pilot_run import PilotRun

_TOLD = {"id", "model", "task", "parameters", "hyperparameters", "missing", "copy_of"}
_TOLD |= {"logging_steps", "step_unit", "reward_floor", "reward_ceiling", "path"}


def run_digest(run: PilotRun) -> str:
    """Hash of a run's rows and settings."""
    told = run.model_dump(mode="json", include=_TOLD)
    told["path"] = told["path"].replace("\\", "/").rpartition("/")[2]
    sha = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    rows = {"step": run.step, "eval_step": run.eval_step, "eval_reward": run.eval_reward}
    for kind in (rows, run.series, run.parts):
        for name in sorted(kind):
            sha.update(f"|{name}|".encode())
            sha.update(np.ascontiguousarray(kind[name], dtype=float).tobytes())
    return sha.hexdigest()
