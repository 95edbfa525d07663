"""Simulated runs, healthy and sick, with the series that a trainer would log.

A run is a population of prompts, each solved with its own probability; a skill moves them all.
What is sampled is sampled (Bernoulli completions, whole groups), so silent groups, spreads and
noise are those of the sizes drawn. How a sickness moves skill, entropy, length and gradients is
written down here, not taken from the thresholds of the diagnosis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.runs import PartialSettings, PilotRun
from advisor.theory import FloatArray

PATHOLOGIES = (
    "healthy",
    "collapse",
    "reward_hacking",
    "advantage_degeneracy",
    "policy_concentration",
    "dynamical_instability",
    "truncation",
    "too_short",
)
LIMIT = 1024


@dataclass
class Latent:
    """What moves behind a log, per row."""

    skill: FloatArray
    proxy: FloatArray
    entropy: FloatArray
    length: FloatArray
    gradient: FloatArray
    kl: FloatArray


def simulate(pathology: str, seed: int) -> PilotRun:
    """Simulate one run.

    Parameters
    ----------
    pathology : str
        One of ``PATHOLOGIES``.
    seed : int
    """
    rng = np.random.default_rng([PATHOLOGIES.index(pathology), seed])
    rows = 8 if pathology == "too_short" else int(rng.integers(60, 301))
    group, prompts = int(rng.choice([4, 8, 16])), int(rng.choice([8, 16, 32, 64]))
    latent = _healthy(rng, rows)
    mix = rng.normal(0.0, rng.uniform(0.8, 2.0), 2000)
    onset = int(rng.uniform(0.3, 0.7) * rows)
    _SICKEN.get(pathology, lambda *_: None)(latent, rng, onset)
    if pathology == "advantage_degeneracy":
        # Hopeless prompts, but for a few.
        mix = np.where(rng.random(2000) < 0.98, -12.0, mix)
    return _logged(pathology, seed, rng, latent, mix, group, prompts)


def _ramp(rows: int, onset: int, length: float) -> FloatArray:
    return np.clip((np.arange(rows) - onset) / max(length, 1.0), 0.0, 1.0)


def _wander(rng: np.random.Generator, rows: int, size: float) -> FloatArray:
    out = np.zeros(rows)
    for row in range(1, rows):
        out[row] = 0.9 * out[row - 1] + size * rng.normal()
    return out


def _healthy(rng: np.random.Generator, rows: int) -> Latent:
    start, end = rng.uniform(-2.0, 0.5), rng.uniform(0.5, 2.5)
    rise = 1 - np.exp(-np.arange(rows) / rng.uniform(0.1, 0.4) / rows)
    entropy = rng.uniform(0.2, 1.0) * (1 - rng.uniform(0.2, 0.7) * rise)
    return Latent(
        skill=start + (end - start) * rise + _wander(rng, rows, 0.04),
        proxy=np.zeros(rows),
        entropy=entropy * np.exp(_wander(rng, rows, 0.04)),
        length=rng.uniform(200, 500) * (1 + rng.uniform(-0.3, 0.4) * rise),
        gradient=rng.uniform(0.05, 0.6) * np.exp(0.3 * rng.normal(size=rows)),
        kl=rng.uniform(0.005, 0.1) * rise + 1e-4,
    )


def _collapse(latent: Latent, rng: np.random.Generator, onset: int) -> None:
    rows = latent.skill.size
    latent.skill -= rng.uniform(4, 9) * _ramp(rows, onset, rng.uniform(1, 0.15 * rows))


def _hacking(latent: Latent, rng: np.random.Generator, onset: int) -> None:
    rows = latent.skill.size
    found = _ramp(rows, onset, rng.uniform(0.1, 0.3) * rows)
    latent.proxy = found
    latent.skill -= rng.uniform(2.0, 4.0) * found
    latent.kl *= 1 + 10 * found


def _concentration(latent: Latent, rng: np.random.Generator, onset: int) -> None:
    rows = latent.skill.size
    latent.entropy *= np.exp(-rng.uniform(4, 7) * _ramp(rows, onset // 2, 0.3 * rows))
    stalled = np.minimum(latent.skill, rng.uniform(-0.5, 0.5))
    latent.skill = stalled + _wander(rng, rows, 0.03)


def _instability(latent: Latent, rng: np.random.Generator, onset: int) -> None:
    rows = latent.skill.size
    grown = _ramp(rows, onset, rng.uniform(0.05, 0.3) * rows)
    latent.entropy = latent.entropy * (1 - grown) + grown * rng.uniform(2, 8)
    latent.gradient *= np.exp(rng.uniform(2, 4) * grown)
    late = _ramp(rows, onset + int(0.03 * rows), 0.2 * rows)
    latent.skill -= rng.uniform(3, 8) * late
    latent.kl *= 1 + 50 * grown


def _truncation(latent: Latent, rng: np.random.Generator, onset: int) -> None:
    rows = latent.skill.size
    grown = _ramp(rows, onset, 0.3 * rows)
    latent.length = latent.length * (1 - grown) + grown * rng.uniform(1.2, 2.5) * LIMIT
    latent.skill -= rng.uniform(0.5, 2) * grown


_SICKEN = {
    "collapse": _collapse,
    "reward_hacking": _hacking,
    "policy_concentration": _concentration,
    "dynamical_instability": _instability,
    "truncation": _truncation,
}


def _logged(
    pathology: str,
    seed: int,
    rng: np.random.Generator,
    latent: Latent,
    mix: FloatArray,
    group: int,
    prompts: int,
) -> PilotRun:
    rows = latent.skill.size
    names = ("reward", "reward_std_within_group", "silent_group_share", "truncated_share")
    series = {name: np.zeros(rows) for name in names}
    true, held_out = np.zeros(rows), []
    for row in range(rows):
        drawn = rng.choice(mix, prompts)
        chance = 1 / (1 + np.exp(-(drawn + latent.skill[row])))
        right = (rng.random((prompts, group)) < chance[:, None]).astype(float)
        hacked = rng.random((prompts, group)) < 0.95 * latent.proxy[row]
        reward = np.maximum(right, hacked)
        true[row] = right.mean()
        series["reward"][row] = reward.mean()
        series["reward_std_within_group"][row] = reward.std(axis=1, ddof=1).mean()
        series["silent_group_share"][row] = (np.ptp(reward, axis=1) == 0).mean()
        cut = rng.lognormal(np.log(latent.length[row]), 0.35, prompts * group) > LIMIT
        series["truncated_share"][row] = cut.mean()
        if row % max(1, rows // 15) == 0:
            asked = 1 / (1 + np.exp(-(rng.choice(mix, 200) + latent.skill[row])))
            held_out.append((row + 1.0, (rng.random(200) < asked).mean()))
    has_spread = series["silent_group_share"] < 1
    series["entropy"] = latent.entropy
    series["gradient_norm"] = latent.gradient * has_spread
    series["kl"] = latent.kl
    series["completion_length"] = np.minimum(latent.length, LIMIT)
    step, value = np.array(held_out).T
    return PilotRun(
        id=f"{pathology}-{seed}",
        path="simulated",
        model="simulated",
        task=pathology,
        hyperparameters=PartialSettings(
            group_size=group, prompts_per_step=prompts, max_completion_length=LIMIT
        ),
        step=np.arange(1.0, rows + 1),
        series=series,
        eval_step=step,
        eval_reward=value,
        reward_floor=0.0,
        reward_ceiling=1.0,
    )
