"""Live across models: pilots of smaller models, advice for a larger one, the full run as advised.

    python case_studies/language_model/live_across.py ask     # advise where pilots are trained
    python case_studies/language_model/live_across.py jobs    # runs to train, for workers.py --also
    python case_studies/language_model/results.py live_across    # score

Pilots are the first steps of four runs of a ladder. Answers are those of ``advisor advise``, kept
before the advised runs are trained. Beside them: the small model's best pilot, Tinker's transfer of
it, the constant, TRL's default, and advice from the larger model's own pilots of as many steps.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from cell_plan import CELLS, Cell  # noqa: E402
from cells import ladders, rules, transferred  # noqa: E402
from model_weights import MODELS  # noqa: E402
from run_store import RUNS, packed_places, unpack  # noqa: E402
from trained_runs import LEAST_STEPS, Trained, cut, final_at, sidecar, trained  # noqa: E402

ANSWERS = HERE / "live_across_asked.json"
PILOTED, PILOT_STEPS = slice(1, 5), 12
SEEDS = (11, 12)
"""Of runs that are trained for a loop: none of the ladders has them."""

OWN, ADVICE = "advice, own pilots", "advice, the small models' pilots"
MENDED = f"{ADVICE} (mended, in sight of the first six)"
"""What a later advisor answers on the same pilots; of loops it had seen, so in sample."""

AGAIN = f"{ADVICE} (prior of the best rate, in sight of all seven)"
"""The same of 1.1; its rates are read from the ladder."""

NEAR = 0.02
"""Decades of rate within which a trained run stands for an answer that no run was trained for."""
TARGETS = (
    # Target, from which models; what all of them have a ladder for.
    (Cell("gemma", "largest"), ("smollm2",)),
    (Cell("gemma", "reversed", steps=30), ("smollm2",)),
    (Cell("gemma", "largest", 32, steps=30), ("smollm2",)),
    (Cell("qwen", "largest", steps=30), ("smollm2",)),
    (Cell("qwen", "largest", steps=30), ("gemma",)),
    (Cell("qwen", "largest", steps=30), ("smollm2", "gemma")),
    (Cell("gemma", "largest", minibatches=8, epochs=2), ("smollm2",)),
    (Cell("gemma", "reversed", minibatches=8, epochs=2, group=4, clip=10.0), ("smollm2",)),
    (Cell("gemma", "largest", completions=64, steps=30), ("smollm2",)),
    (Cell("gemma", "reversed", 4, steps=30), ("smollm2",)),
    (Cell("qwen", "largest", 32, steps=30), ("gemma",)),
    (Cell("qwen", "largest", 32, steps=30), ("smollm2", "gemma")),
)
"""Loops, fixed before any of the advised runs was trained."""


class Loop(NamedTuple):
    """One target and where its pilots come from."""

    target: Cell
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        """Such as ``smollm2 -> gemma largest full c16 K1 n60``."""
        return f"{' + '.join(self.sources)} -> {self.target.name}"

    def small(self, source: str) -> Cell:
        """The cell of a source that the target is like."""
        return next(
            one
            for one in CELLS
            if one.model == source
            and one._replace(model=self.target.model, steps=self.target.steps) == self.target
        )


LOOPS = [Loop(*one) for one in TARGETS]


def run_of(cell: Cell, rate: float, seed: int) -> Trained:
    """The run of a cell at a rate; its folder may be missing."""
    one = cell.run(rate, seed)
    return Trained(RUNS / one.place / one.name)


def pilots(cell: Cell) -> list[Trained]:
    """Four runs of a ladder; none if one of them is missing."""
    found = [run_of(cell, rate, 1) for rate in cell.rates[PILOTED]]
    return found if all(one.folder.is_dir() for one in found) else []


def last_rows(run: Trained) -> float:
    """Where a pilot stands in its last fifth."""
    step, reward = run.rewards
    return float(reward[(step <= PILOT_STEPS) & (step > 0.8 * PILOT_STEPS)].mean())


def advised(cells: list[Cell], target: Cell, before: float, folder: Path) -> dict[str, Any]:
    """What the command answers on pilots as TRL left them."""
    shutil.rmtree(folder, ignore_errors=True)
    for cell in cells:
        of = folder / "pilots" / cell.model
        for one in pilots(cell):
            cut(one, PILOT_STEPS, of)
        sidecar(of, cell.task, MODELS[cell.model])
    model = MODELS[target.model]
    words: list[Any] = [sys.executable, "-m", "advisor", "advise"]
    words += [folder / "pilots" / cell.model for cell in cells]
    words += ["--steps", target.steps, "--out", folder / "study", "--quiet"]
    if cells != [target]:
        words += ["--model", model.name, "--parameters", model.parameters]
        words += ["--start-reward", before]
    said = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    file = folder / "study" / "recommendation.json"
    if not file.is_file():
        return {"refused": (said.stdout + said.stderr).strip()[-600:]}
    answer = json.loads(file.read_text(encoding="utf-8"))
    own = answer["settings"]
    names = ("learning_rate", "group_size", "prompts_per_step")
    names += ("minibatches_per_refresh", "epochs_per_refresh")
    return {
        "kind": answer["kind"],
        "settings": {name: own[name] for name in names},
        "p_stable": (answer.get("stability") or {}).get("probability"),
        "reward": {n: answer["reward"][n] for n in ("low", "median", "high")}
        if answer.get("reward")
        else None,
    }


def asked() -> dict[str, Any]:
    """Answers that are kept, by loop."""
    return dict(json.loads(ANSWERS.read_text(encoding="utf-8"))) if ANSWERS.is_file() else {}


def ask() -> None:
    """Ask where pilots are there and nothing was answered yet; an answer is never asked anew."""
    found = asked()
    for loop in LOOPS:
        smalls = [loop.small(source) for source in loop.sources]
        own = pilots(loop.target)
        if loop.name in found or not own or not all(map(pilots, smalls)):
            continue
        before = round(float(own[0].evaluations()[1][0]), 5)
        folder = RUNS.parent / "live_across" / loop.name.replace(" ", "_").replace(">", "")
        best = max((one for cell in smalls for one in pilots(cell)), key=last_rows)
        source = best.folder.parent.parent.name
        rate = best.configuration.rate
        found[loop.name] = {
            ADVICE: advised(smalls, loop.target, before, folder / "small"),
            OWN: advised([loop.target], loop.target, before, folder / "own"),
            "best pilot": {"model": source, "rate": rate},
            "transferred": float(f"{transferred(rate, source, loop.target.model):.2g}"),
            "price": {
                "small models' pilots": price([one for cell in smalls for one in pilots(cell)]),
                "own pilots": price(own),
            },
        }
        ANSWERS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(loop.name, found[loop.name], flush=True)


def price(runs: list[Trained]) -> dict[str, float]:
    """Seconds of the clock, on a machine that others use too; of the processor where all have them.

    Early runs kept those of the clock alone.
    """
    names = ("seconds", "core_seconds")
    kept = [name for name in names if all(name in one.own for one in runs)]
    return {
        name: round(sum(float(one.own[name]) * PILOT_STEPS / one.steps for one in runs), 1)
        for name in kept
    }


def launched(answer: dict[str, Any], target: Cell) -> tuple[Cell, float] | None:
    """Cell and rate that an answer would train; None of a refusal."""
    if "refused" in answer:
        return None
    own = answer["settings"]
    cell = target._replace(
        group=own["group_size"],
        completions=round(own["group_size"] * own["prompts_per_step"]),
        minibatches=own["minibatches_per_refresh"],
        epochs=own["epochs_per_refresh"],
    )
    return cell, own["learning_rate"]


def methods(loop: Loop, answers: dict[str, Any]) -> dict[str, tuple[Cell, float]]:
    """What each method launches."""
    known = rules(loop.target)
    said = [name for name in (ADVICE, MENDED, AGAIN, OWN) if name in answers]
    found = {name: launched(answers[name], loop.target) for name in said}
    rates = {
        "the small models' best pilot": answers["best pilot"]["rate"],
        "Tinker's transfer of it": answers["transferred"],
        "the constant": known["constant"],
        "TRL's default": known["TRL"],
    }
    told = {name: own for name, own in found.items() if own is not None}
    return told | {name: (loop.target, rate) for name, rate in rates.items()}


def jobs() -> Iterator[dict[str, Any]]:
    """Advised runs that are not there: one of each loop, then the second seeds."""
    answers = asked()
    told: list[tuple[Cell, float, int]] = []
    for seed in SEEDS:
        for loop in LOOPS:
            launch = loop.name in answers and methods(loop, answers[loop.name]).get(ADVICE)
            if launch and not run_of(*launch, seed).folder.is_dir():
                told.append((*launch, seed))
    for cell, rate, seed in dict.fromkeys(told):
        yield cell._asdict() | {"rate": rate, "seed": seed}


def runs_at(cell: Cell, rate: float) -> list[Trained]:
    """Every seed of a cell at a rate."""
    own = cell.run(rate, 1)
    return [
        one
        for one in trained(RUNS / own.place)
        if one.configuration == own.configuration and one.steps == cell.steps
    ]


def runs_near(cell: Cell, rate: float) -> list[Trained]:
    """Every seed of a cell at rates that are as good as one."""
    place = RUNS / cell.run(rate, 1).place
    rates = {one.configuration.rate for one in trained(place)}
    near = [own for own in rates if abs(np.log10(own / rate)) <= NEAR]
    return [run for own in sorted(near) for run in runs_at(cell, own)]


def told(loop: Loop, answers: dict[str, Any]) -> dict[str, Any]:
    """What each method came to, against the mean of the best rate of the target's ladder.

    Runs advised by the small models' pilots were trained for it; of later answers to the same
    pilots, runs at that rate are taken. The others' rates are read from the ladder, between two of
    its rates by log rate, and their deaths from the next rate of it.
    """
    target = loop.target
    ladder = next(one for one in ladders(target) if one.horizon == target.steps)
    best = max(ladder.means, key=lambda rate: ladder.means[rate])
    rows = {}
    for name, (cell, rate) in methods(loop, answers).items():
        row: dict[str, Any] = {"rate": rate}
        if name == MENDED:
            runs = runs_near(cell, rate)
            row |= of_advice(runs, cell, answers[name])
        elif name == ADVICE or cell != target:
            runs = [one for one in runs_at(cell, rate) if one.own["seed"] in SEEDS]
            row |= of_advice(runs, cell, answers[name])
        else:
            nearest = min(target.rates, key=lambda own: abs(np.log(own / rate)))
            runs = runs_at(target, nearest)
            row |= of_advice(runs, cell, answers[name]) if name in (AGAIN, OWN) else {}
            row["end"] = round(ladder.at(rate), 4)
        if runs:
            row["regret"] = round(ladder.means[best] - row["end"], 4)
            row["runs"] = len(runs)
            row["died"] = sum(one.died_at is not None for one in runs)
            row["fell for good"] = sum(one.unstable for one in runs)
        rows[name] = row
    return {
        "loop": loop.name,
        "best": {"rate": best, "end": round(ladder.means[best], 4)},
        "methods": rows,
        "price": answers["price"],
    }


def of_advice(runs: list[Trained], cell: Cell, said: dict[str, Any]) -> dict[str, Any]:
    """Ends of advised runs beside what was said of them."""
    came = [final_at(one, cell.steps, LEAST_STEPS) for one in runs]
    row = {name: said[name] for name in ("kind", "p_stable", "reward")} | {"cell": cell.name}
    if came:
        row |= {"end": float(np.mean(came)), "ends": [round(end, 4) for end in came]}
        row["held"] = [said["reward"]["low"] <= end <= said["reward"]["high"] for end in came]
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean regret, deaths and coverage by method, over loops."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(method for row in rows for method in row["methods"]):
        own = [row["methods"][name] for row in rows if "regret" in row["methods"].get(name, {})]
        if not own:
            continue
        found[name] = {
            "loops": len(own),
            "regret": round(float(np.mean([one["regret"] for one in own])), 4),
            "runs": sum(one["runs"] for one in own),
            "died": sum(one["died"] for one in own),
            "fell for good": sum(one["fell for good"] for one in own),
        }
        held = [inside for one in own for inside in one.get("held", [])]
        if held:
            found[name]["intervals held"] = [sum(held), len(held)]
    return found


def result() -> dict[str, Any]:
    """Every loop that was asked, and means over them."""
    answers = asked()
    rows = [told(loop, answers[loop.name]) for loop in LOOPS if loop.name in answers]
    return {"summary": summary(rows), "loops": rows}


def main() -> None:
    """Ask, or list runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=("ask", "jobs"))
    command = parser.parse_args().command
    for place in packed_places():
        unpack(place)
    if command == "ask":
        ask()
    else:
        for one in jobs():
            print(json.dumps(one))


if __name__ == "__main__":
    main()
