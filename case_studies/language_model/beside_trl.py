"""Time of a step by TRL as it is and with shared prompts, on one thread.

python case_studies/language_model/beside_trl.py [--steps 3] [--out beside_trl.json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
import shared_prompts  # noqa: E402
import torch  # noqa: E402
import trl  # noqa: E402
import trl_training  # noqa: E402
from manifest import manifest  # noqa: E402
from prompt_tasks import TASKS  # noqa: E402
from run_plan import Configuration  # noqa: E402

TASK, RATE = "largest", 1e-5


class AsItIs(trl.GRPOTrainer):
    """TRL's own trainer; its hook for samples stays unused."""


def seconds(kind: type[trl.GRPOTrainer], steps: int) -> list[float]:
    """Step times that TRL logs, with sampling; the first holds what is done once."""
    trl_training.SharedPromptTrainer = kind
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        trl_training.train(run, TASKS[TASK], trl_training.arguments(Configuration(RATE), steps), 1)
        state = json.loads((run / "trainer_state.json").read_text(encoding="utf-8"))
    return [row["step_time"] for row in state["log_history"] if "step_time" in row]


def main() -> None:
    """Train the same few steps twice."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "beside_trl.json")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ours = seconds(shared_prompts.SharedPromptTrainer, asked.steps)
    theirs = seconds(AsItIs, asked.steps)
    ratio = float(np.median(theirs[1:]) / np.median(ours[1:]))
    document = {
        "seconds_per_step": {"TRL": theirs, "shared prompts": ours},
        "ratio": round(ratio, 1),
        "manifest": manifest(Path(__file__), seeds=1, checks={"faster by 1.5": ratio > 1.5}),
    }
    asked.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document["seconds_per_step"]), document["ratio"])


if __name__ == "__main__":
    main()
