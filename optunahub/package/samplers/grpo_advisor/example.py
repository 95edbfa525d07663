"""Eight replayed runs, chosen by the model from the fourth on."""

from __future__ import annotations

import optuna
import optunahub

ROOT = "package"

problem = optunahub.load_local_module("benchmarks/grpo_replay", registry_root=ROOT).Problem("mod_m")
package = optunahub.load_local_module("samplers/grpo_advisor", registry_root=ROOT)
sampler = package.AdvisorSampler(problem.run, steps=problem.steps, seed=0)
study = optuna.create_study(direction="maximize", sampler=sampler)
study.optimize(problem, n_trials=8)
print(study.best_trial.params, study.best_value, "of", problem.best_value)
print(len(package.pilots_of_study(study, problem.run)), "pilots")
