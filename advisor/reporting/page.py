"""The report: one HTML page that needs no network, no server and no other file."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from advisor import advice as wording
from advisor.advice import (
    GRACE,
    KNOBS,
    RATE_REACH,
    digits,
    gpu_time,
    number,
    percent,
    piloted,
    run_ends,
    stacked,
)
from advisor.common import Words, counted
from advisor.diagnosis import Diagnosis
from advisor.forecast import SUPPORT, Forecaster, central, final_reward
from advisor.model import Posterior
from advisor.reporting import style
from advisor.reporting.figure import Missing, reason_of
from advisor.runs import Settings, Trainer
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from advisor.advice import Cost, Recommendation
    from advisor.reporting.figure import Drawn

T = TypeVar("T")

SLIDERS = {
    "learning_rate": "Learning rate",
    "group_size": "Group size G",
    "minibatches_per_refresh": "Mini-batches per refresh",
    "planned_steps": "Optimizer steps",
}


def paid(cost: Cost) -> str:
    """Price of a run: GPU time where that is known, else the completions that it generates."""
    if cost.gpu_hours is None:
        return f"{cost.completions:,.0f} completions"
    return gpu_time(cost.gpu_hours)


def html(
    posterior: Posterior,
    recommendation: Recommendation,
    drawn: Sequence[Drawn | Missing],
    *,
    diagnoses: Sequence[Diagnosis] = (),
    configs: Mapping[str, str] | None = None,
    outcome: Mapping[str, Any] | None = None,
) -> str:
    """Page of an answer, with its figures in their order."""
    from markupsafe import Markup

    # The template says what the terminal says, by the same functions.
    known = {**vars(wording), "nearly_all": wording.NEARLY_ALL, "counted": counted, "paid": paid}
    known = {name: one for name, one in known.items() if not name.startswith("_")}
    words = Words("advisor.reporting", "assets/report.html.j2", **known)
    advice = recommendation
    explorer, no_explorer = _tried(lambda: explorer_data(posterior, advice))
    model = json.dumps(explorer, allow_nan=False) if explorer else ""
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    labels = {name: export.label for name, export in Trainer.exports().items()}
    page = words.template.render(
        title=advice.title,
        advice=advice,
        meta=posterior.meta,
        style=Markup(_asset("report.css")),
        script=Markup(script),
        # By its digest the page allows this script and no other.
        script_hash=f"sha256-{digest}",
        # Its JSON cannot end the element that it stands in.
        model=Markup(model.replace("<", "\\u003c")),
        no_explorer=no_explorer,
        sliders=_sliders(explorer, advice) if explorer else [],
        matters=explorer["matters"] if explorer else [],
        cards=_cards_of(advice),
        figures=[_figure(one) for one in drawn],
        diagnoses=[
            {
                "verdict": one.verdict,
                "row": (one.id, one.verdict, one.collapse_step, one.headline),
                "findings": "\n".join(line for card in one.cards for line in card.lines),
            }
            for one in diagnoses
        ],
        configs=[
            {"name": labels.get(name, name), "text": text} for name, text in (configs or {}).items()
        ],
        sampled=posterior.convergence,
        outcome=outcome,
    )
    return str(page)


def _tried(make: Callable[[], T]) -> tuple[T | None, str]:
    """A part of the page, or why it cannot be made: whatever that is, the rest can be."""
    try:
        return make(), ""
    except Exception as error:
        return None, reason_of(error)


def _asset(name: str) -> str:
    return (files("advisor.reporting") / "assets" / name).read_text(encoding="utf-8")


def _cards_of(advice: Recommendation) -> list[dict[str, Any]]:
    """The configuration and its alternatives, each with its settings and numbers."""
    written: dict[Any, Callable[[Any], str]] = {
        "learning rate": _short,
        "reward at the last step": lambda reward: number(advice, reward),
        "P(stable)": percent,
        "completions": "{:,.0f}".format,
        "GPU time": gpu_time,
    }
    out = []
    for name, row in zip(advice.table.index, advice.table.to_dict(orient="records"), strict=True):
        row["GPU time"] = hours = row.pop("GPU-hours")
        rows = [(key, written.get(key, "{:.4g}".format)(value)) for key, value in row.items()]
        out.append({"name": str(name), "rows": rows[:-1] if math.isnan(hours) else rows})
    return out


def _sliders(explorer: dict[str, Any], advice: Recommendation) -> list[dict[str, Any]]:
    # A pilot of some steps also informs about all shorter runs.
    ranges = {**explorer["piloted"], "planned_steps": (0.0, advice.evidence.longest_pilot)}
    out = []
    for name, label in SLIDERS.items():
        values, (low, high) = explorer["choices"][name], ranges[name]
        places = np.linspace(0.0, 100.0, len(values))
        left, right = (float(np.interp(end, values, places)) for end in (low, high))
        between = _short(low) if low == high else f"{_short(low)} to {_short(high)}"
        out.append(
            {
                "name": name,
                "label": label,
                "last": len(values) - 1,
                "at": values.index(explorer["start"][name]),
                "shown": _short(explorer["start"][name]),
                "left": f"{left:.1f}",
                "width": f"{right - left:.1f}",
                "piloted": f"up to {high:g}" if low == 0 < high else between,
            }
        )
    return out


def _short(value: float) -> str:
    """A setting as the sliders write it."""
    is_plain = value == 0 or 1e-3 <= abs(value) < 1000 or value == int(value) < 1e4
    return f"{value:.3g}" if is_plain else style.scientific(value)


def _figure(one: Drawn | Missing) -> dict[str, str]:
    shown = {"id": f"figure-{one.name}", "title": one.title, "svg": "", "missing": ""}
    if isinstance(one, Missing):
        return {**shown, "missing": one.reason}
    svg, reason = _tried(lambda: base64.b64encode(one.rendered("svg")).decode("ascii"))
    caption = f"{one.caption} {one.note}".rstrip()
    return {**shown, "caption": caption, "text": one.text, "svg": svg or "", "missing": reason}


# The sliders -------------------------------------------------------------------------------------

DRAWS = 400  # Draws behind the grid: probabilities are good to 0.025

RATES = 25
MINIBATCHES = (1, 2, 4, 8, 16)
GROUPS = (4, 8, 16, 32, 64)
LENGTHS = (0.5, 1.0, 2.0)
"""What is offered beside the settings of the answer; lengths as shares of its own."""

NEAR = 1.15  # Ratio up to which a learning rate of the grid counts as twice or half another


def explorer_data(posterior: Posterior, recommendation: Recommendation) -> dict[str, Any]:
    """Evaluate the grid; ready for JSON, the numbers as base64 of little-endian floats."""
    advice, base = recommendation, recommendation.settings
    forecaster = Forecaster(posterior, advice.target, draws=DRAWS, seed=advice.terms.seed)
    choices = choices_of(posterior, advice)
    places = itertools.product(*choices.values())
    plans = [base.model_copy(update=dict(zip(choices, place, strict=True))) for place in places]
    values = numbers(forecaster, plans).astype("<f4")
    ends, bounds = (choices[RATE][0], choices[RATE][-1]), forecaster.outcome_bounds
    prices = [advice.terms.cost_model(plan, int(plan.planned_steps or 0)) for plan in plans]
    stable = advice.stability
    return {
        "choices": choices,
        "values": base64.b64encode(values.tobytes()).decode("ascii"),
        "prices": [
            (paid(one), f"{one.completions:,.0f} completions")
            for one in prices[:: len(choices[RATE])]
        ],
        "start": {name: getattr(base.planned_over(advice.steps), name) for name in choices},
        # The answer's own numbers, which come from more draws: the page starts with them.
        "answer": [
            *(advice.reward.mean, advice.reward.low, advice.reward.high, stable.probability),
            *(stable.refresh, stable.tolerance, stable.fluctuation),
        ],
        "epochs": base.epochs_per_refresh,
        "digits": digits(advice.reward.low, advice.reward.high),
        "level": advice.terms.level,
        "matters": _matters(values, choices, base.planned_over(advice.steps), bounds),
        "measure": advice.measure,
        "bounds": bounds,
        "ends": ends,
        "rewardTicks": [(at, f"{at:.3g}") for at in style.even_ticks(*bounds, 5)],
        "rateTicks": [(at, style.scientific(at)) for at in style.log_places(*ends)],
        "lengths": [GRACE * posterior.meta.longest * of for of in (SUPPORT, advice.evidence.reach)],
        "piloted": {name: own for name, own in piloted(posterior).items() if name in choices},
        "words": {name: KNOBS[name] for name in choices if name in KNOBS},
        "pilots": [(run.highest_rate, run.collapse_step is None) for run in posterior.meta.runs],
    }


def _matters(
    values: FloatArray,
    choices: Mapping[str, list[float]],
    base: Settings,
    bounds: tuple[float, float],
) -> list[tuple[str, float]]:
    """Sliders by the most that twice or half their value moves the reward, a lost run at its floor.

    ``values`` are those of `numbers` on the grid of all choices.
    """
    floor, (mean, *_, sure) = bounds[0], values[:, :4].T
    worth = (floor + sure * (mean - floor)).reshape([len(each) for each in choices.values()])
    own = {name: getattr(base, name) for name in choices}
    found = []
    for axis, (name, offered) in enumerate(choices.items()):
        place = tuple(one.index(own[other]) for other, one in choices.items())
        line = np.moveaxis(worth, axis, -1)[place[:axis] + place[axis + 1 :]]
        ratios = np.asarray(offered) / own[name]
        at = line[np.isclose(ratios, 1)]
        near = line[(ratios >= LENGTHS[0] / NEAR) & (ratios <= LENGTHS[-1] * NEAR)]
        found.append((SLIDERS[name], float(np.abs(near - at[0]).max())))
    return sorted(found, key=lambda one: -one[1])


RATE = "learning_rate"


def choices_of(posterior: Posterior, advice: Recommendation) -> dict[str, list[float]]:
    """Values of every slider, ascending, the answer's own among them; learning rates last."""
    settings = advice.settings
    known = [*advice.terms.choices[RATE], *piloted(posterior)[RATE], settings.learning_rate]
    ladder = np.geomspace(min(known) / RATE_REACH, max(known) * RATE_REACH, RATES - 1)
    return {
        "planned_steps": sorted({max(1, round(advice.steps * share)) for share in LENGTHS}),
        "group_size": sorted({*GROUPS, settings.group_size}),
        "minibatches_per_refresh": sorted({*MINIBATCHES, settings.minibatches_per_refresh}),
        RATE: sorted({settings.learning_rate, *(float(f"{rate:.2g}") for rate in ladder)}),
    }


def numbers(forecaster: Forecaster, plans: Sequence[Settings]) -> FloatArray:
    """Reward with its interval, P(stable), its three parts: (plans, 7)."""
    found = np.empty((len(plans), 7))
    intervals = np.array([plan.refresh_interval for plan in plans])
    for interval in set(intervals.tolist()):
        places = np.flatnonzero(intervals == interval)
        own = [plans[place] for place in places.tolist()]
        lengths = [int(plan.planned_steps or 0) for plan in own]
        for chosen, together, steps in stacked(own, lengths, 5 * forecaster.size):
            ended, _, chances, _ = run_ends(forecaster, together, steps)
            low, _, high = central(final_reward(forecaster, together, steps).T)
            rewards = np.stack([ended.mean(axis=-1), low, high], axis=1)
            parts = [(c.probability, c.refresh, c.tolerance, c.fluctuation) for c in chances]
            found[places[chosen]] = np.hstack([rewards, parts])
    return found
