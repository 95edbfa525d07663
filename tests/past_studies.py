"""Posteriors of past studies, made up from what their data said; nothing is sampled by a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
from learned_priors import MODEL_SPREADS

from advisor.common import VERSION
from advisor.model import (
    GROUP_EFFECTS,
    GROUP_LEVELS,
    POPULATION,
    RUN_EFFECTS,
    TASK_LEVELS,
    Convergence,
    Meta,
    Posterior,
    Priors,
    Provenance,
    Reference,
    RunSummary,
    load_priors,
)
from advisor.model import equations as eq
from advisor.runs import PartialSettings

CHAINS, DRAWS = 2, 500
SCHEMA = 4
"""Of ``posterior.nc``, since 1.0; raised where what was saved can no longer be read."""


def parameters() -> dict[str, str]:
    """Parameters that a study can teach, by the name of their entry."""
    names = (*POPULATION, *TASK_LEVELS, *GROUP_LEVELS)
    return {name.replace(".", "_"): name for name in names}


REFERENCE = Reference(3e-4, 8.0, 16.0, 1e5)


def past(
    label: str,
    said: Mapping[str, tuple[Any, Any]] | None = None,
    *,
    priors: Priors | None = None,
    groups: Sequence[tuple[str, str]] = (("sort", "tiny-s"),),
    runs: int = 3,
    ess: float = 500.0,
) -> Posterior:
    """Posterior of a study whose data said ``said``: estimate and standard error by entry.

    Draws are those of the normal prior times a normal likelihood, with exact moments; entries that
    are not named have those of their prior. The effective draws that the study states are those of
    its worst parameter, as after a real fit; these draws are independent.
    """
    priors = priors or load_priors("small_models")
    rng = np.random.default_rng(int(hashlib.sha256(label.encode()).hexdigest()[:8], 16))
    tasks = tuple(dict.fromkeys(task for task, _ in groups))
    placed = priors.at(REFERENCE)
    of_entry = parameters()
    assert not set(said or {}) - set(of_entry)
    draws = {}
    most = (len(of_entry) + len(GROUP_EFFECTS)) * len(groups)
    independent = rng.standard_normal((CHAINS * DRAWS, most))
    independent, _ = np.linalg.qr(independent - independent.mean(axis=0))
    columns = iter(np.sqrt(CHAINS * DRAWS) * independent.T)
    for entry, name in of_entry.items():
        prior = getattr(placed, entry)
        count = len(tasks) if entry in TASK_LEVELS else len(groups)
        shape = () if entry not in TASK_LEVELS + GROUP_LEVELS else (count,)
        noise = np.stack([next(columns) for _ in range(int(np.prod(shape)))], axis=-1)
        noise = noise.reshape(CHAINS, DRAWS, *shape)
        if said is None or entry not in said:
            draws[name] = prior.mean + prior.sd * noise
            continue
        value, error = (np.broadcast_to(np.asarray(part, float), shape) for part in said[entry])
        precision = 1 / prior.sd**2 + 1 / error**2
        mean = (prior.mean / prior.sd**2 + value / error**2) / precision
        draws[name] = mean + noise / np.sqrt(precision)
    offsets = {}
    for (entry, spread), effect in zip(MODEL_SPREADS.items(), GROUP_EFFECTS, strict=True):
        noise = np.stack([next(columns) for _ in groups], axis=-1).reshape(CHAINS, DRAWS, -1)
        prior, doubt = getattr(placed, entry), getattr(placed, spread)
        offsets[effect] = noise
        if said is not None and entry in said:
            # Of level and offset the data tell the sum, which draws of the level hold so far.
            assert len(tasks) == len(groups)
            both = prior.sd**2 + np.exp(2 * (doubt.mean + doubt.sd**2))
            value, error = (
                np.broadcast_to(np.asarray(part, float), len(tasks)) for part in said[entry]
            )
            precision = 1 / both + 1 / error**2
            mean = (prior.mean / both + value / error**2) / precision
            own = (draws[entry] - draws[entry].mean(axis=(0, 1))) / draws[entry].std(axis=(0, 1))
            total = mean + own / np.sqrt(precision)
            left = prior.sd * np.sqrt(1 - prior.sd**2 / both)
            draws[entry] = prior.mean + prior.sd**2 / both * (total - prior.mean) + left * noise
            width = np.exp(draws[of_entry[spread]])[..., None]
            offsets[effect] = (total - draws[entry]) / width
    stiffness = eq.task_log_stiffness(draws["headroom_logit"], draws["log_slope"])
    draws |= eq.at_reference(draws, stiffness)
    draws |= offsets
    draws |= {name: np.zeros((CHAINS, DRAWS, runs)) for name in RUN_EFFECTS}
    levels = np.zeros((CHAINS, DRAWS, len(groups)))
    draws |= dict.fromkeys(("start", "plateau", "stiffness"), levels)
    return Posterior(draws, _pilots(rng, runs), _meta(label, priors, groups, tasks, runs, ess))


def hash_of(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()


def _pilots(rng: np.random.Generator, runs: int) -> dict[str, Any]:
    step = np.arange(1.0, 61.0, 3.0)
    return {
        "run": np.repeat(np.arange(float(runs)), step.size),
        "step": np.tile(step, runs),
        "reward": rng.random(runs * step.size),
    }


def _meta(
    label: str,
    priors: Priors,
    groups: Sequence[tuple[str, str]],
    tasks: tuple[str, ...],
    runs: int,
    ess: float,
) -> Meta:
    return Meta(
        tasks=tasks,
        groups=tuple(groups),
        group_parameters=tuple(1e5 for _ in groups),
        task_of_group=tuple(tasks.index(task) for task, _ in groups),
        reference=REFERENCE,
        floor=0.0,
        ceiling=1.0,
        evaluated=tuple(False for _ in groups),
        eval_floor=0.0,
        eval_ceiling=1.0,
        longest=60.0,
        family="spectrum",
        runs=tuple(
            RunSummary(
                id=f"{label}-{index}",
                task=groups[index % len(groups)][0],
                model=groups[index % len(groups)][1],
                parameters=1e5,
                settings=PartialSettings(
                    learning_rate=3e-4, group_size=8, prompts_per_step=16
                ).completed(),
                steps=60.0,
                completions=7680.0,
                first_reward=0.2,
                last_reward=0.8,
                collapse_step=None,
                seconds_per_step=None,
                completion_tokens=None,
                fingerprint=hash_of(f"{label}-{index}"),
            )
            for index in range(runs)
        ),
        notes=(),
        convergence=Convergence(
            rhat=1.001,
            ess=ess,
            worst="population",
            divergent_share=0.0,
            draws=CHAINS * DRAWS,
            steps_per_draw=15.0,
        ),
        priors=priors,
        provenance=Provenance(
            schema_version=SCHEMA,
            package=VERSION,
            created="2026-11-21T00:00:00+00:00",
            data_sha256=hash_of(label),
            seed=1,
            versions={},
        ),
    )


@contextmanager
def saved_meta(path: Path) -> Iterator[dict[str, Any]]:
    """What a saved posterior holds next to its draws; changes of it are saved."""
    with h5netcdf.File(path, "a") as file:
        meta = json.loads(str(file.attrs["advisor"]))
        yield meta
        file.attrs["advisor"] = json.dumps(meta)
