"""What presets say of a language model, on tasks that shaped nothing of them.

    python case_studies/language_model/said.py [--presets FOLDER] [--kind full|lora|large|long]
        [--task NAME...] [--out said_again.json]
    python case_studies/language_model/said.py --cells --out cells_first.json

Per task and set of pilots: a fit, a forecast of the end of every run of the table, and the rate
that is named among those of the ladder. Beside it, for settings that were piloted: the pilot's last
rows and its own exponential, carried on. Predictions are kept one a line.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from cell_plan import CELLS, CONSTANT, Cell  # noqa: E402
from later_tasks import ALL_TASKS  # noqa: E402
from manifest import write_result  # noqa: E402
from model_weights import model_of  # noqa: E402
from prompt_tasks import TASKS  # noqa: E402
from run_plan import LADDER, LARGE, LARGE_LADDER, LORA_LADDER, STEPS  # noqa: E402
from run_store import TABLES, unpack  # noqa: E402
from trained_runs import Trained, pilots_of, trained  # noqa: E402

import advisor  # noqa: E402
from advisor.backtesting.scores import crps  # noqa: E402
from advisor.forecast.forecaster import Forecaster, Target  # noqa: E402
from advisor.forecast.predictive import final_reward  # noqa: E402
from advisor.forecast.run_in_progress import EXPONENTIAL, curve_fit  # noqa: E402
from advisor.forecast.survival import stability  # noqa: E402
from advisor.runs import PartialSettings  # noqa: E402

PILOT_SETS: dict[str, tuple[tuple[float, ...], int]] = {
    "four of 12": ((3e-6, 1e-5, 3e-5, 1e-4), 12),
    "three low of 12": ((1e-6, 3e-6, 1e-5), 12),
    "three of 20": ((3e-6, 1e-5, 3e-5), 20),
    "four high of 12": ((1e-5, 3e-5, 1e-4, 3e-4), 12),
}
"""Learning rates of the pilots, and their steps; fixed before any run was trained."""

LORA_PILOT_SETS: dict[str, tuple[tuple[float, ...], int]] = {
    "four of 12": ((1e-5, 3e-5, 1e-4, 3e-4), 12),
    "three low of 12": ((1e-5, 3e-5, 1e-4), 12),
    "three of 20": ((3e-5, 1e-4, 3e-4), 20),
    "four high of 12": ((3e-5, 1e-4, 3e-4, 1e-3), 12),
}
"""The same of adapters; fixed before any run of their ladder was trained."""

LARGE_PILOT_SETS: dict[str, tuple[tuple[float, ...], int]] = {
    "four of 12": ((3e-6, 1e-5, 3e-5, 1e-4), 12),
    "three low of 12": ((3e-6, 1e-5, 3e-5), 12),
    "three of 20": ((3e-6, 1e-5, 3e-5), 20),
    "three high of 12": ((1e-5, 3e-5, 1e-4), 12),
}
"""Of steps of four times the completions; written down when the ladder had been seen."""

LONG, LONG_PILOT_SETS = (
    (120, 240),
    {
        "four of 12": ((3e-6, 1e-5, 3e-5, 1e-4), 12),
        "three of 20": ((3e-6, 1e-5, 3e-5), 20),
        "three of 60": ((3e-6, 1e-5, 3e-5), 60),
    },
)
"""Steps of long runs, and their pilots; written down with the first of their ends in sight."""


CELL_SETS = {"four of a fifth": (slice(1, 5), 0.2), "three low of a third": (slice(3), 1 / 3)}
"""Of a cell's ladder of six, the rates that are piloted, and the pilots' share of its steps."""


class Kind(NamedTuple):
    """Runs of which pilots and a ladder are made, and of what lengths those are that are asked."""

    lora: bool
    completions: int
    ladder: tuple[float, ...]
    pilots: dict[str, tuple[tuple[float, ...], int]]
    lengths: tuple[int, ...] = ()  # all
    steps: int = STEPS

    def holds(self, run: Trained) -> bool:
        """Whether a run is of this kind."""
        own = run.configuration
        # Full fine-tuning was drawn with several numbers of completions round those of its ladder.
        is_large = own.completions == LARGE
        return own.lora == self.lora and is_large == (self.completions == LARGE)

    def on_ladder(self, run: Trained) -> bool:
        """Whether its rate alone tells it from the others of the ladder, or its seed."""
        own = run.configuration
        plain = own == own._replace(group=8, minibatches=1, epochs=1, kl=0.0)
        same = run.steps == STEPS and own.completions == self.completions
        return plain and same and own.rate in self.ladder


KINDS = {
    "full": Kind(False, 32, LADDER, PILOT_SETS),
    "lora": Kind(True, 32, LORA_LADDER, LORA_PILOT_SETS),
    "large": Kind(False, LARGE, LARGE_LADDER, LARGE_PILOT_SETS),
    "long": Kind(False, 32, LADDER, LONG_PILOT_SETS, LONG),
}


class OfCell(NamedTuple):
    """The same of one cell, on which every run is asked about."""

    cell: Cell
    lengths: tuple[int, ...] = ()

    @property
    def ladder(self) -> list[float]:
        """Rates of the cell."""
        return self.cell.rates

    @property
    def steps(self) -> int:
        """Optimizer steps of its runs."""
        return self.cell.steps

    @property
    def pilots(self) -> dict[str, tuple[tuple[float, ...], int]]:
        """Rates and steps of each set of pilots."""
        rates = self.cell.rates
        return {
            name: (tuple(rates[which]), round(share * self.cell.steps))
            for name, (which, share) in CELL_SETS.items()
        }

    def holds(self, run: Trained) -> bool:
        """Whether a run is one of the cell's ladder; those that were advised are not."""
        rate = run.configuration.rate
        return rate in self.ladder and run.name == self.cell.run(rate, run.own["seed"]).name

    on_ladder = holds


LEVELS = (np.arange(50) + 0.5) / 50
BINS = (0.0, 3.0, 6.0, 12.0, 100.0)
METHODS = ("advisor", "last rows", "own exponential")


def records(
    task: str,
    priors: str | None,
    kind: Kind | OfCell,
    beside: Sequence[advisor.PilotRun] = (),
    **how: Any,
) -> list[dict[str, Any]]:
    """Every forecast on one task, of one kind of runs.

    Parameters
    ----------
    task : str
        Or ``model/task``, the place of a cell's runs.
    beside : sequence of PilotRun
        Runs of other tasks or models, which are fitted with the pilots.
    **how
        Arguments of `advisor.fit`.
    """
    warnings.simplefilter("ignore")
    runs = [one for one in trained(unpack(task)) if kind.holds(one)]
    ladder = _ladder(runs, kind)
    runs = [one for one in runs if not kind.lengths or one.steps in kind.lengths]
    named = {"task": kind.cell.name if isinstance(kind, OfCell) else task}
    found = []
    for name, (rates, steps) in kind.pilots.items():
        if any(rate not in ladder for rate in rates):
            continue
        named["set"] = name
        own = [ladder[rate] for rate in rates]
        try:
            with tempfile.TemporaryDirectory() as folder:
                pilots = pilots_of(own, steps, task.split("/")[-1], Path(folder))
            posterior = advisor.fit([*pilots, *beside], priors=priors, progress=False, **how)
        except advisor.AdvisorError as error:
            # Without the folder, which is another each time.
            found.append(named | {"refused": re.sub(r"\S*/(?=lr)", "", str(error))})
            continue
        asked = _asked(posterior, runs, pilots, steps, ladder, kind)
        found += [named | record for record in asked]
    return found


def cell_records(cell: Cell) -> list[dict[str, Any]]:
    """Every forecast on one cell; none before its ladder is whole."""
    constant = {"constant": CONSTANT[cell.rank > 0]}
    place = cell.run(0.0, 1).place
    if any(not (unpack(place) / one.name).is_dir() for one in cell.ladder()):
        return []
    return [one | constant for one in records(place, None, OfCell(cell))]


def _ladder(runs: Sequence[Trained], kind: Kind | OfCell) -> dict[float, Trained]:
    first = [one for one in runs if kind.on_ladder(one) and one.own["seed"] == 1]
    return {one.configuration.rate: one for one in first}


def _asked(
    posterior: advisor.Posterior,
    runs: Sequence[Trained],
    pilots: Sequence[advisor.PilotRun],
    steps: int,
    ladder: dict[float, Trained],
    kind: Kind | OfCell,
) -> Iterable[dict[str, Any]]:
    own = posterior.meta.runs[0]
    model = model_of(runs[0].arguments)
    forecaster = Forecaster(posterior, Target(own.task, model.name, model.parameters, None))
    of_rate = {pilot.hyperparameters.learning_rate: pilot for pilot in pilots}
    offered = tuple(_settings(run, own.settings) for run in ladder.values())
    advice, named = advice_among(offered, posterior, model, kind.steps, indifference=0.0)
    first = next(iter(ladder.values())).configuration
    for run in runs:
        now = run.configuration
        settings = _settings(run, own.settings)
        draws = final_reward(forecaster, settings, run.steps)
        stable = stability(forecaster, settings, run.steps)
        is_piloted = now._replace(rate=0.0) == first._replace(rate=0.0) and now.rate in of_rate
        said = {"advisor": quantiles(draws)}
        if is_piloted:
            said |= carried_on(of_rate[now.rate], run.steps)
        yield {
            "run": run.name,
            "rate": now.rate,
            "on_ladder": kind.on_ladder(run),
            "named": now.rate == named,
            "kind": advice.kind,
            "piloted": is_piloted,
            "times": run.steps / steps,
            "came": round(run.final, 5),
            "died": run.died_at,
            "unstable": run.unstable,
            "p_stable": round(stable.probability, 4),
            "p_by_model": round(stable.by_model, 4),
            "said": said,
        }


def advice_among(
    offered: Sequence[Any], posterior: advisor.Posterior, model: Any, steps: int, **how: Any
) -> tuple[advisor.Recommendation, float]:
    """Advice among the settings that are offered, and the learning rate that is named."""
    advice = advisor.advise(
        posterior,
        model=model.name,
        task=posterior.meta.runs[0].task,
        parameters=model.parameters,
        steps=steps,
        choose_from=tuple(offered),
        weigh_pilots=False,
        trials=len(offered),
        **how,
    )
    # Where nothing is stable enough no rate is named: the best pilot is left.
    is_named = advice.kind == "recommendation"
    return advice, (advice.settings if is_named else advice.best_piloted.settings).learning_rate


def _settings(run: Trained, fitted: Any) -> Any:
    own = run.configuration
    return (
        PartialSettings(
            **fitted.model_dump()
            | {
                "learning_rate": own.rate,
                "group_size": own.group,
                "prompts_per_step": own.completions / own.group,
                "minibatches_per_refresh": own.minibatches,
                "epochs_per_refresh": own.epochs,
                "kl_coefficient": own.kl,
                "planned_steps": run.steps,
            }
        )
        .completed()
        .or_planned_over(run.steps)
    )


def quantiles(draws: np.ndarray) -> list[float]:
    """Quantiles of draws at LEVELS."""
    return np.quantile(draws, LEVELS).round(4).tolist()


def carried_on(pilot: advisor.PilotRun, steps: int) -> dict[str, list[float]]:
    """The pilot's last rows with their spread, and its own exponential, at the run's end."""
    rng = np.random.default_rng(0)
    last = pilot.reward[-max(3, pilot.reward.size // 5) :]
    level = last.mean() + last.std(ddof=1) * rng.standard_normal(400)
    end = np.arange(0.9 * steps, steps) + 1
    curve, _ = curve_fit(pilot, end, EXPONENTIAL, (0.0, 1.0), rng)
    return {"last rows": quantiles(np.clip(level, 0, 1)), "own exponential": quantiles(curve)}


def with_every_seed(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same forecasts, beside every seed of their settings that has been trained since."""
    told = [one for one in found if "refused" in one]
    places = {cell.name: cell.run(0.0, 1).place for cell in CELLS}
    for task, own in _by_task(one for one in found if "said" in one).items():
        runs = trained(unpack(places.get(task, task)))
        by_name = {run.name: run for run in runs}
        for one in own:
            first = by_name[one["run"]]
            told += [
                one
                | {"run": run.name, "came": round(run.final, 5)}
                | {"died": run.died_at, "unstable": run.unstable}
                for run in runs
                if (run.configuration, run.steps) == (first.configuration, first.steps)
            ]
    # A seed that was there had a forecast of its own: the same, but for the draws.
    return list({(one["task"], one["set"], one.get("run")): one for one in told}.values())


def _by_task(found: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    by_task: dict[str, list[dict[str, Any]]] = {}
    for one in found:
        by_task.setdefault(one["task"], []).append(one)
    return by_task


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Scores by how many times longer than its pilots a run is, of piloted settings, of advice."""
    asked = [one for one in found if "said" in one]
    stable = [one for one in asked if one["died"] is None]
    told: dict[str, Any] = {
        "runs": len({(one["task"], one["run"]) for one in asked}),
        "tasks": len({one["task"] for one in asked}),
        "refused": [one for one in found if "refused" in one],
    }
    for low, high in pairwise(BINS):
        part = [one for one in stable if low < one["times"] <= high]
        if part:
            told[f"{low:g}-{high:g}"] = scores(part, "advisor")
    for name, part in (("piloted", stable), ("piloted, the dead too", asked)):
        piloted = [one for one in part if one["piloted"]]
        told[name] = {method: scores(piloted, method) for method in METHODS} if piloted else {}
    if asked:
        told["all, the dead too"] = scores(asked, "advisor")
    ladder = [one for one in asked if one["on_ladder"]]
    if ladder and all("p_stable" in one for one in asked):  # the first forecasts did not keep it
        told["p_stable"] = p_stable(ladder)
    if ladder:
        told["named"] = list(named(asked))
        told["regret"] = regrets(asked, told["named"])
    return told


def scores(part: Sequence[dict[str, Any]], method: str) -> dict[str, Any]:
    """Error of the median, bias, CRPS and what the 80 % interval holds; tasks count alike."""
    rows = []
    for one in part:
        said, came = np.array(one["said"][method]), one["came"]
        low, middle, high = np.interp([0.1, 0.5, 0.9], LEVELS, said)
        rows.append((abs(came - middle), came - middle, crps(said, came), low <= came <= high))
    tasks = np.array([one["task"] for one in part])
    means = [np.array(rows)[tasks == task].mean(0) for task in np.unique(tasks)]
    error, bias, score, holds = np.mean(means, 0)
    return {
        "n": len(part),
        "runs": len({(one["task"], one["run"]) for one in part}),
        "mae": round(error, 4),
        "bias": round(bias, 4),
        "crps": round(score, 4),
        "coverage": {"0.8": round(holds, 4)},
    }


def p_stable(ladder: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Score of P(stable) beside the share that lived on the other tasks; by learning rate.

    A run lived that did not fall for good by the advisor's own rule.
    """
    lived = np.array([not one["unstable"] for one in ladder], float)
    said = np.array([one["p_stable"] for one in ladder])
    tasks, rates = (np.array([one[key] for one in ladder]) for key in ("task", "rate"))
    base = np.array([lived[tasks != task].mean() for task in tasks])
    of_rate = {
        f"{rate:g}": [round(float(of[rates == rate].mean()), 3) for of in (said, lived)]
        for rate in np.unique(rates)
    }
    brier = {"advisor": said, "share that lived on the other tasks": base}
    return {
        "forecasts": len(ladder),
        "runs": len({(one["task"], one["run"]) for one in ladder}),
        "brier": {name: round(float(np.mean((p - lived) ** 2)), 4) for name, p in brier.items()},
        "said and lived by rate": of_rate,
    }


def named(asked: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Which rate of the ladder is named by each set of pilots, and what it came to."""
    for task, pilots in dict.fromkeys((one["task"], one["set"]) for one in asked):
        own = [
            one for one in asked if (one["task"], one["set"]) == (task, pilots) and one["on_ladder"]
        ]
        advised = [one for one in own if one["named"]]
        ends = ends_of(own)
        best = max(ends, key=lambda rate: ends[rate])
        piloted = [one for one in own if one["piloted"]]
        by_pilot: dict[str, Any] = {}
        if piloted:
            rate = max(piloted, key=lambda one: one["said"]["last rows"][25])["rate"]
            lost = round(ends[best] - ends[rate], 4)
            by_pilot = {"best pilot": rate, "regret of best pilot": lost}
        yield by_pilot | {
            "task": task,
            "set": pilots,
            "named": advised[0]["rate"],
            "regret": round(ends[best] - ends[advised[0]["rate"]], 4),
            "runs": len(advised),
            "died": sum(one["died"] is not None for one in advised),
            "kind": advised[0]["kind"],
            "best": best,
            "best came": round(ends[best], 4),
        }


def ends_of(ladder: Iterable[dict[str, Any]]) -> dict[float, float]:
    """What each rate came to, mean of its seeds."""
    came: dict[float, dict[str, float]] = {}
    for one in ladder:
        came.setdefault(one["rate"], {})[one["run"]] = one["came"]
    return {rate: float(np.mean(list(runs.values()))) for rate, runs in came.items()}


def regrets(
    asked: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]
) -> dict[str, float | int]:
    """Mean regret of what is named, of the best pilot, and of the best rate of the other tasks."""
    ladders = _by_task(one for one in asked if one["on_ladder"])
    ends = {task: ends_of(own) for task, own in ladders.items()}

    constant = {one["task"]: one["constant"] for one in asked if "constant" in one}

    def known(task: str) -> float:
        if task in constant:
            return float(constant[task])
        others = [own for name, own in ends.items() if name != task]
        rates = [rate for rate in ends[task] if all(rate in own for own in others)]
        return max(rates, key=lambda rate: float(np.mean([own[rate] for own in others])))

    lost = [max(ends[own["task"]].values()) - ends[own["task"]][known(own["task"])] for own in rows]
    told = {
        "advisor": [own["regret"] for own in rows],
        "best pilot": [own["regret of best pilot"] for own in rows if "best pilot" in own],
        "the constant" if constant else "best rate of the other tasks": lost,
    }
    # Each run once, however many sets of pilots name its rate.
    runs = {
        (one["task"], one["run"]): one for one in asked if one["named"] and one["on_ladder"]
    }.values()
    died = {
        "runs named": len(runs),
        "died": sum(one["died"] is not None for one in runs),
        "fell for good": sum(one["unstable"] for one in runs),
    }
    means: dict[str, float | int] = {
        name: round(float(np.mean(of)), 4) for name, of in told.items() if of
    }
    return means | {"sets of pilots": len(rows)} | died


def predictions_of(out: Path) -> Path:
    """Where the predictions stand that a result is made of."""
    return out.with_suffix(".predictions.jsonl.gz")


def keep(
    out: Path, found: Sequence[dict[str, Any]], document: dict[str, Any], script: Path
) -> None:
    """Write predictions, one a line, and their scores with how they were made; print these."""
    text = "".join(json.dumps(one) + "\n" for one in found)
    predictions_of(out).write_bytes(gzip.compress(text.encode(), mtime=0))
    write_result(out, document, script, sorted(TABLES.glob("**/*.jsonl.gz")))
    print(json.dumps(document, indent=1))


def main() -> None:
    """Fit, forecast, score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--presets", type=Path, help="of learn.py --without-task [or shipped]")
    parser.add_argument("--kind", choices=KINDS, default="full")
    parser.add_argument("--out", type=Path, default=HERE / "said_again.json")
    parser.add_argument("--task", nargs="+", choices=ALL_TASKS, default=list(TASKS))
    parser.add_argument("--cells", action="store_true", help="the cells, in place of the tasks")
    parser.add_argument(
        "--every-seed", action="store_true", help="score --out on seeds trained since"
    )
    given = parser.parse_args()
    kept = predictions_of(given.out)
    found = []
    if kept.is_file():
        with gzip.open(kept, "rt", encoding="utf-8") as lines:
            found = list(map(json.loads, lines))
    if given.every_seed:
        found = with_every_seed(found)
        given.task = []
    if given.cells:
        # What is there was forecast before anything was learned from it: it is not made again.
        there = {one["task"] for one in found}
        for cell in CELLS:
            if cell.name not in there and not given.every_seed:
                found += cell_records(cell)
                print(f"{cell.name}: {len(found)} forecasts so far", file=sys.stderr)
        keep(given.out, found, summary(found), Path(__file__))
        return
    found = [one for one in found if one["task"] not in given.task]
    adapter = "lora_" if given.kind == "lora" else ""
    for task in given.task:
        priors = str(given.presets / f"{adapter}{task}.toml") if given.presets else None
        found += records(task, priors, KINDS[given.kind])
        print(f"{task}: {len(found)} forecasts so far", file=sys.stderr)
    found.sort(key=lambda one: list(ALL_TASKS).index(one["task"]))
    keep(given.out, found, summary(found), Path(__file__))


if __name__ == "__main__":
    main()
