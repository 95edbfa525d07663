"""Twenty replayed runs, of which those that died or cannot win are ended."""

from __future__ import annotations

import optuna
import optunahub

ROOT = "package"

problem = optunahub.load_local_module("benchmarks/grpo_replay", registry_root=ROOT).Problem("mod_m")
pruner = optunahub.load_local_module("pruners/grpo_advisor", registry_root=ROOT).AdvisorPruner(
    steps=problem.steps
)
study = optuna.create_study(direction="maximize", pruner=pruner)
study.optimize(problem, n_trials=20)
print(study.best_trial.params, study.best_value, "of", problem.best_value)
