"""How far twenty replayed runs of Optuna's own sampler and pruner come."""

from __future__ import annotations

import optuna
import optunahub

problem = optunahub.load_local_module("benchmarks/grpo_replay", registry_root="package").Problem()
study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner())
study.optimize(problem, n_trials=20)
print(study.best_trial.params, study.best_value, "of", problem.best_value)
