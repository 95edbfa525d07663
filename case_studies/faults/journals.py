"""Damaged Optuna journals: refused before work, repaired, or passed over; the answer stands."""

from __future__ import annotations

import random
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from injuries import damaged


def run(journals: int, seed: int) -> dict[str, Any]:
    """Open and write that many damaged journals; each third only lacks the end of its last line."""
    import optuna

    from advisor.advice.storage import keep, keep_aside, open_storage
    from advisor.errors import InputError

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    chance = random.Random(seed)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    slowest = 0.0
    study = optuna.create_study(direction="maximize")
    study.optimize(lambda trial: trial.suggest_int("index", 0, 9) * 1.0, n_trials=12)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "studies.journal"
        with open_storage(str(path)) as kept:
            keep(study, kept, "a study")
        whole = path.read_bytes()
        for number in range(journals):
            is_torn = number % 3 == 0
            cut = whole[: chance.randrange(1, len(whole))]
            path.write_bytes(cut if is_torn else damaged(whole, chance, [whole]))
            started = time.monotonic()
            try:
                with open_storage(str(path)):
                    outcome = "opened"
            except InputError:
                outcome = "refused before work"
            except Exception as error:
                outcome = "raw error"
                wrong.append(f"open: {type(error).__name__}: {error}"[:200])
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    keep_aside(study, str(path), "a study")
                except Exception as error:
                    wrong.append(f"keep: {type(error).__name__}: {error}"[:200])
            outcomes[f"{outcome}, {'not kept, which is said' if said else 'kept'}"] += 1
            if is_torn and said and cut.count(b"\n"):
                wrong.append(f"torn at byte {len(cut)} and not repaired: {said[0].message}"[:200])
            slowest = max(slowest, time.monotonic() - started)
    if slowest > 20:
        wrong.append(f"took {slowest:.0f} s")
    return {
        "journals": journals,
        "outcomes": dict(sorted(outcomes.items())),
        "slowest_seconds": round(slowest, 2),
        "raw errors, hangs, answers lost": len(wrong),
        "examples": sorted(set(wrong))[:20],
    }
