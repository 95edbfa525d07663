"""Runs made up for the diagnosis: noise of known colour, and any numbers that a log may hold."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor.runs import PartialSettings, PilotRun

SEEDS = range(200)
MOST_FALSE = 0.02
"""Share of runs of pure noise that may fail."""

FEW = settings(max_examples=60)

COLOURS = {"white": 0.0, "correlated": 0.6}


def make(reward=None, *, evals=None, every=10, step=None, parts=None, **given):
    """Run with rewards at steps 1, 2, ..., evaluations every so many, and other series."""
    settings_ = {name: given.pop(name) for name in list(given) if name in _SETTINGS}
    bounds = {name: given.pop(name) for name in ("reward_floor", "reward_ceiling") if name in given}
    series = {name: np.asarray(values, dtype=float) for name, values in given.items()}
    if reward is not None:
        series["reward"] = np.asarray(reward, dtype=float)
    rows = max((values.size for values in series.values()), default=0)
    held_out = np.zeros(0) if evals is None else np.asarray(evals, dtype=float)
    return PilotRun(
        id="folder/run",
        path="folder/run.jsonl",
        step=np.arange(1.0, rows + 1) if step is None else np.asarray(step, dtype=float),
        series=series,
        parts={name: np.asarray(v, dtype=float) for name, v in (parts or {}).items()},
        eval_step=np.arange(1.0, held_out.size + 1) * every,
        eval_reward=held_out,
        hyperparameters=PartialSettings(**settings_),
        **bounds,
    )


_SETTINGS = frozenset(PartialSettings.model_fields)


def noise(seed, rows, correlation=0.0):
    """Stationary noise of unit variance whose neighbours are so correlated."""
    rng = np.random.default_rng([7, seed, rows])
    drawn = rng.normal(size=rows)
    for row in range(1, rows):
        drawn[row] = correlation * drawn[row - 1] + np.sqrt(1 - correlation**2) * drawn[row]
    return drawn


def rising(rows, start=0.2, end=0.8, time=0.3):
    return end - (end - start) * np.exp(-np.arange(rows) / (time * rows))


def falling(rows, onset, before=0.8, after=0.05, length=1):
    """``before`` up to a row, ``after`` some rows later."""
    share = np.clip((np.arange(rows) - onset + 1) / length, 0.0, 1.0)
    return before + (after - before) * share


def rate(is_so, seeds=SEEDS):
    """Share of seeds for which something holds."""
    return sum(bool(is_so(seed)) for seed in seeds) / len(seeds)


# Anything that a log may hold ----------------------------------------------------------------

ODD = [0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1.7e308, 1e-300, 5e-324]


@st.composite
def columns(draw, rows):
    kind = draw(st.sampled_from(["any", "unit", "odd", "constant", "fall", "noise"]))
    if kind == "any":
        return draw(arrays(float, rows, elements=st.floats()))
    if kind == "unit":
        return draw(arrays(float, rows, elements=st.floats(0, 1)))
    if kind == "odd":
        return draw(arrays(float, rows, elements=st.sampled_from(ODD)))
    if kind == "constant":
        return np.full(rows, draw(st.floats()))
    if kind == "fall":
        at, high, low = draw(st.integers(0, rows)), draw(st.floats()), draw(st.sampled_from(ODD))
        return np.where(np.arange(rows) < at, high, low)
    return draw(st.sampled_from([1e-3, 1.0, 1e9])) * noise(draw(st.integers(0, 99)), rows)
