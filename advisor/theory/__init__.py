"""The theory (arXiv:2606.30789 and what was derived from it); imports numpy only."""

from advisor.theory.arrays import BoolArray as BoolArray
from advisor.theory.arrays import FloatArray as FloatArray
from advisor.theory.arrays import IntArray as IntArray
from advisor.theory.arrays import namespace as namespace
from advisor.theory.clock import cumulative_clock as cumulative_clock
from advisor.theory.clock import policy_steps as policy_steps
from advisor.theory.clock import schedule_factors as schedule_factors
from advisor.theory.fluctuation import PromptDifficulty as PromptDifficulty
from advisor.theory.fluctuation import group_deviation as group_deviation
from advisor.theory.fluctuation import silent_group_share as silent_group_share
from advisor.theory.fluctuation import temperature as temperature
from advisor.theory.oscillator import Oscillator as Oscillator
from advisor.theory.oscillator import coefficients as coefficients
from advisor.theory.oscillator import damping_ratio as damping_ratio
from advisor.theory.oscillator import decay as decay
from advisor.theory.oscillator import oscillatory_onset as oscillatory_onset
from advisor.theory.oscillator import overdamped_trajectory as overdamped_trajectory
from advisor.theory.oscillator import trajectory as trajectory
from advisor.theory.refresh import SHARES as SHARES
from advisor.theory.refresh import cycle_map as cycle_map
from advisor.theory.refresh import lag_in_cycles as lag_in_cycles
from advisor.theory.refresh import spectral_radius as spectral_radius
from advisor.theory.refresh import stiffness_limit as stiffness_limit
from advisor.theory.spectrum import SMALLEST_MOMENTUM as SMALLEST_MOMENTUM
from advisor.theory.spectrum import inertial_time as inertial_time
from advisor.theory.spectrum import spectrum_decay as spectrum_decay
