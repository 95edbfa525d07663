"""P(stable) of a new run, from pilots and runs elsewhere, beside the share that lived at its rate.

    python case_studies/stability/advised.py

Nothing is forecast again: what was said of the runs of fourteen tasks is kept by
`case_studies/language_model`. Runs of the task that is asked are left out of the table that ships.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "language_model"), str(HERE.parent)]

import numpy as np  # noqa: E402
from compared import by_task, difference, kept, without_task  # noqa: E402
from manifest import write_result  # noqa: E402
from model_weights import SMOLLM2  # noqa: E402

from advisor.forecast.elsewhere import share_died, shipped_outcomes  # noqa: E402
from advisor.model import load_priors  # noqa: E402

KINDS = {
    "full": ("said_again", False),
    "adapters": ("said_lora", True),
    "large batches": ("said_large_first", False),
}


def compared_with_rate(name: str, is_lora: bool) -> dict[str, Any]:
    """Brier score over ladders, tasks alike: of the pilots, of both, of the rate."""
    law, table = load_priors("theory").elsewhere, shipped_outcomes()
    rows = [one for one in kept(name) if one["on_ladder"]]
    for one in rows:
        others = without_task(table, one["task"])
        at = (np.log(one["rate"]), np.log(SMOLLM2.parameters), is_lora)
        expected = np.asarray(1 - one["p_stable"])
        one["both"] = 1 - float(share_died(expected, at, law, others, others.weight))
        near = [of for of in rows if of["task"] != one["task"] and of["rate"] == one["rate"]]
        one["at rate"] = float(np.mean([not of["unstable"] for of in near]))

    def brier(said: str) -> dict[str, float]:
        return by_task(rows, lambda row: (row[said] - (not row["unstable"])) ** 2)

    return {
        "runs": len({(one["task"], one["run"]) for one in rows}),
        "pilots alone": difference(brier("p_stable"), brier("at rate")),
        "beside runs elsewhere": difference(brier("both"), brier("at rate")),
    }


def main() -> None:
    """Compare, keep."""
    found = {kind: compared_with_rate(*how) for kind, how in KINDS.items()}
    write_result(HERE / "advised.json", found, Path(__file__), [])


if __name__ == "__main__":
    main()
