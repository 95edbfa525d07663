"""Hold what the package does equal while its code is moved.

    python scripts/golden.py [--logs FOLDER ...] [--demo] [--write]

Writes or compares ``tests/data/golden.json``: public names; commands with their options; of every
run found in folders of logs a digest of its rewards and settings; the numbers of the demo. Ends
with 1 where something differs, and says what. Parts that were not asked for are left as they are.
What longer commands hold equal: ``case_studies/economics``, ``diagnose``, ``real_runs``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import advisor

GOLDEN = Path(__file__).parents[1] / "tests" / "data" / "golden.json"
DIGITS = 3
"""Of the demo's numbers: the last ones differ between machines."""

Golden = dict[str, dict[str, Any]]


def commands() -> dict[str, list[str]]:
    """Options by command, from the application itself."""
    import typer

    from advisor.cli import app

    top = typer.main.get_command(app)
    return {
        name: sorted(option for one in command.params for option in one.opts)
        for name, command in sorted(top.commands.items())  # type: ignore[attr-defined]
    }


def runs(folder: Path) -> dict[str, str]:
    """Digest of the rewards and settings of every run, by file and id; no number of theirs."""
    found = {}
    for run in advisor.inspect(folder).runs:
        told = {
            "settings": run.hyperparameters.model_dump(mode="json"),
            "who": [run.task, run.model, run.parameters, run.is_eval_only],
            "reward": _rounded(run.reward),
            "held_out": _rounded(run.eval_reward),
            "steps": _rounded(run.step),
        }
        text = json.dumps(told, sort_keys=True, default=str)
        name = f"{Path(run.path).relative_to(folder)} {run.id}"
        found[name] = hashlib.sha256(text.encode()).hexdigest()[:12]
    return found


def _rounded(values: Any) -> list[str]:
    return [] if values is None else [f"{value:.6g}" for value in np.atleast_1d(values)]


def demo() -> dict[str, Any]:
    """What the demo advises."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study"
        words = ["demo", "--out", str(study), "--quiet"]
        subprocess.run(
            [sys.executable, "-m", "advisor", *words], check=True, stdout=subprocess.DEVNULL
        )
        answer = json.loads((study / "recommendation.json").read_text(encoding="utf-8"))
    kept = {name: answer[name] for name in ("kind", "settings", "reward", "stability", "cost")}
    return dict(_flat(kept))


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, own in value.items():
        if isinstance(own, Mapping):
            yield from _flat(own, f"{prefix}{name}.")
        else:
            yield prefix + name, float(f"{own:.{DIGITS}g}") if isinstance(own, float) else own


def measured(logs: Sequence[Path], with_demo: bool) -> Golden:
    """The parts that were asked for."""
    found: Golden = {
        "names": dict.fromkeys(sorted(advisor.__all__), True),
        "commands": commands(),
    }
    for folder in logs:
        found[f"runs in {folder.name}"] = runs(folder)
    if with_demo:
        found["demo"] = demo()
    return found


def differences(before: Golden, now: Golden) -> Iterator[str]:
    """A line for everything that is gone, new or other."""
    for part in now:
        old, new = before.get(part, {}), now[part]
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                yield f"{part}: {name} is gone"
            elif name not in old:
                yield f"{part}: {name} is new"
            elif old[name] != new[name]:
                yield f"{part}: {name} was {old[name]}, is {new[name]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, then write or compare."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--logs", nargs="+", type=Path, default=[], help="folders of logs to read")
    parser.add_argument("--demo", action="store_true", help="run the demo, too")
    parser.add_argument("--write", action="store_true", help="keep what is there now")
    parser.add_argument("--file", type=Path, default=GOLDEN)
    given = parser.parse_args(arguments)
    before = json.loads(given.file.read_text(encoding="utf-8")) if given.file.is_file() else {}
    now = measured(given.logs, given.demo)
    if given.write:
        given.file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(before | now, indent=0, sort_keys=True)
        given.file.write_text(text + "\n", encoding="utf-8")
        return 0
    lines = list(differences(before, now))
    print("\n".join(lines) or "Nothing differs.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
