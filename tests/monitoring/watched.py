"""Plans of the pilots behind the posterior of these tests; the first is that of the watched run."""

from __future__ import annotations

from simulated_runs import Plan

PLAN = Plan(3e-4, 8, 2, steps=100)
PLANS = (PLAN, Plan(1e-3, 16, 4), Plan(1e-4, 16, 1), Plan(3e-3, 8, 2, collapse=25))
