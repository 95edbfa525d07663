"""The advice: a configuration that meets a probabilistic stability margin, and its reasons."""

from advisor.advice.answer import advise
from advisor.advice.assumed import SAID, weightiest
from advisor.advice.candidates import AXES, RATE_REACH, Lattice, default_lattice
from advisor.advice.cost import Cost, CostModel, learn_cost
from advisor.advice.objective import Budget, Objective
from advisor.advice.pilot_choice import next_pilot
from advisor.advice.pilot_plan import PLAN, PilotPlan, PlannedPilot, plan, planned_settings, size_of
from advisor.advice.pilot_words import Piloting
from advisor.advice.piloting import fit_pilots, pilots
from advisor.advice.reach import KNOBS, SAME, Ranges, outside, piloted, range_text
from advisor.advice.recommendation import TITLES, Alternative, NextPilot, Recommendation
from advisor.advice.request import Request, Search
from advisor.advice.savings import saving
from advisor.advice.scenario import evaluated, evaluated_rows, what_if
from advisor.advice.search import check_storage
from advisor.advice.trainer_config import export, export_pilot, missing_configs, trainer_configs
from advisor.advice.wording import (
    NEARLY_ALL,
    evidence_text,
    explanation_text,
    gpu_time,
    gpu_unit,
    in_trainer_names,
    level_text,
    percent,
    pilot_reason,
    stability_interval,
)
from advisor.forecast import Stability, stability

__all__ = [
    "AXES",
    "KNOBS",
    "NEARLY_ALL",
    "PLAN",
    "RATE_REACH",
    "SAID",
    "SAME",
    "TITLES",
    "Alternative",
    "Budget",
    "Cost",
    "CostModel",
    "Lattice",
    "NextPilot",
    "Objective",
    "PilotPlan",
    "Piloting",
    "PlannedPilot",
    "Ranges",
    "Recommendation",
    "Request",
    "Search",
    "Stability",
    "advise",
    "check_storage",
    "default_lattice",
    "evaluated",
    "evaluated_rows",
    "evidence_text",
    "explanation_text",
    "export",
    "export_pilot",
    "fit_pilots",
    "gpu_time",
    "gpu_unit",
    "in_trainer_names",
    "learn_cost",
    "level_text",
    "missing_configs",
    "next_pilot",
    "outside",
    "percent",
    "pilot_reason",
    "piloted",
    "pilots",
    "plan",
    "planned_settings",
    "range_text",
    "saving",
    "size_of",
    "stability",
    "stability_interval",
    "trainer_configs",
    "weightiest",
    "what_if",
]
