"""The theory (arXiv:2606.30789 and what was derived from it); imports numpy only."""

from advisor.theory.arrays import BoolArray, FloatArray, IntArray, namespace
from advisor.theory.clock import cumulative_clock, policy_steps, schedule_factors
from advisor.theory.fluctuation import (
    PromptDifficulty,
    drift_factor,
    group_deviation,
    silent_group_share,
    temperature,
)
from advisor.theory.oscillator import (
    TAYLOR_RADIUS,
    Oscillator,
    coefficients,
    damping_ratio,
    decay,
    oscillatory_onset,
    overdamped_trajectory,
    trajectory,
)
from advisor.theory.refresh import (
    JUMP,
    SHARES,
    cycle_map,
    lag_in_cycles,
    spectral_radius,
    stiffness_limit,
)
from advisor.theory.spectrum import SMALLEST_MOMENTUM, inertial_time, spectrum_decay

__all__ = [
    "JUMP",
    "SHARES",
    "SMALLEST_MOMENTUM",
    "TAYLOR_RADIUS",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Oscillator",
    "PromptDifficulty",
    "coefficients",
    "cumulative_clock",
    "cycle_map",
    "damping_ratio",
    "decay",
    "drift_factor",
    "group_deviation",
    "inertial_time",
    "lag_in_cycles",
    "namespace",
    "oscillatory_onset",
    "overdamped_trajectory",
    "policy_steps",
    "schedule_factors",
    "silent_group_share",
    "spectral_radius",
    "spectrum_decay",
    "stiffness_limit",
    "temperature",
    "trajectory",
]
