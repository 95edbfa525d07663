"""The advice: a configuration that meets a probabilistic stability margin, and its reasons."""

from advisor.advice.answer import advise
from advisor.advice.answer_fields import Alternative, NextPilot
from advisor.advice.candidates import AXES, RATE_REACH, Lattice, default_lattice
from advisor.advice.cost import Cost, CostModel, learn_cost
from advisor.advice.evaluate import what_if, what_if_rows
from advisor.advice.pilot_choice import next_pilot
from advisor.advice.pilot_plan import PLAN, PilotPlan, PlannedPilot, plan, planned_settings, size_of
from advisor.advice.piloting import Piloting, fit_pilots, pilots
from advisor.advice.recommendation import (
    TITLES,
    Recommendation,
    export,
    export_pilot,
    missing_configs,
    trainer_configs,
)
from advisor.advice.request import Budget, Objective, Request, Search
from advisor.advice.search import check_storage
from advisor.advice.support import KNOBS, SAME, Ranges, outside, piloted, range_text
from advisor.advice.trade_offs import saving
from advisor.advice.wording import (
    NEARLY_ALL,
    SAID,
    evidence_text,
    explanation_text,
    gpu_time,
    gpu_unit,
    in_trainer_names,
    level_text,
    percent,
    pilot_reason,
    stability_interval,
    weightiest,
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
    "what_if_rows",
]
