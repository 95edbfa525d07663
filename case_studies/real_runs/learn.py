"""Learn what the package ships about language models from folders of real runs.

    python case_studies/real_runs/learn.py FOLDER... [--interim FOLDER] [--analogues]

Writes ``priors/full_finetuning.toml``, on which ``lora`` builds, and ``priors/analogues.json``, of
which the runs trained in `case_studies/language_model` are a part; with ``--analogues`` the latter
alone, which takes two minutes in place of an hour.
Only numbers leave the folders: presets, and for each run at some shares of its length ten numbers
that describe how it stood, with its repository as provenance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from analogue_learning import corpus_json, learned_corpus
from interim import BEFORE, interim_studies, learned_preset
from run import LEAST_REWARDS, Run, by_cohort, by_repository, load

from advisor.backtesting.cases import is_lora
from advisor.forecast.analogues import NAME
from advisor.model.presets import preset_toml
from advisor.model.priors import load_priors
from advisor.runs import PartialSettings, PilotRun

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Fit, learn, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--interim", type=Path, help="folder of interim fits, made where missing")
    parser.add_argument("--analogues", action="store_true", help="these alone")
    given = parser.parse_args()
    runs, unread = load(given.folders)
    print(f"{len(runs)} runs; unread: {unread or 'none'}")
    if not given.analogues:
        write_preset(runs, given.interim)
    write_analogues(runs)


def write_preset(runs: list[Run], interim: Path | None) -> None:
    """Fit every cohort under wide priors, and learn the preset from all of them."""
    cohorts = list(by_cohort(runs).values())
    with tempfile.TemporaryDirectory() as folder:
        fits = interim_studies(
            [[run.pilot for run in part] for part in cohorts], interim or Path(folder)
        )
    preset = learned_preset([fitted for _, fitted in fits], "learned")
    fitted = [run for number, _ in fits for run in cohorts[number]]
    preset = preset.model_copy(
        update={
            "name": "full_finetuning",
            "description": "Language models, the default; learned from public GRPO runs.",
            "evidence": evidence(fitted),
            # What presets without a repository said of it: stable.py.
            "stability_line": load_priors("full_finetuning").stability_line,
        }
    )
    (ROOT / "priors/full_finetuning.toml").write_text(
        preset_toml(preset, load_priors(BEFORE)), encoding="utf-8"
    )
    print(f"preset: {preset.evidence}")


def write_analogues(runs: list[Run]) -> None:
    """Describe every finished run, and learn what makes runs alike."""
    own = runs_of_tasks()
    named = by_repository(runs, set()) | own
    cohort_of = {run.pilot.id: run.cohort for run in runs}
    cohort_of |= {run.id: task for task, members in own.items() for run in members}
    trained = sum(map(len, own.values()))
    told = f"{evidence(runs)}; and {trained} runs of SmolLM2-135M on {len(own)} tasks, trained here"
    (ROOT / "priors" / NAME).write_text(
        corpus_json(learned_corpus(named, cohort_of), told), encoding="utf-8"
    )
    print(f"analogues: {told}")


def runs_of_tasks() -> dict[str, list[PilotRun]]:
    """Runs of the language model's table, by task: a task counts as a repository."""
    sys.path.append(str(ROOT / "case_studies/language_model"))
    from prompt_tasks import TASKS
    from run_store import unpack
    from trained_runs import Trained, trained

    def pilot(task: str, run: Trained) -> PilotRun:
        step, reward = run.rewards
        own = run.configuration
        return PilotRun(
            id=f"{task}/{run.name}",
            path=run.name,
            model="SmolLM2-135M-Instruct",
            task=task,
            parameters=134.5e6,
            hyperparameters=PartialSettings(learning_rate=own.rate, group_size=own.group),
            step=step,
            series={"reward": reward},
            logging_steps=1,
        )

    return {
        f"case_studies/language_model/{task}": [
            pilot(task, run)
            for run in trained(unpack(task))
            if run.rewards[0].size >= LEAST_REWARDS
        ]
        for task in TASKS
    }


def evidence(runs: list[Run]) -> str:
    """Say what something was learned from."""
    sizes = [run.pilot.parameters for run in runs if run.pilot.parameters]
    adapters = Counter("lora" if is_lora(run.pilot) else "full" for run in runs)
    return (
        f"adamw; {len(runs)} runs of {len({run.repository for run in runs})} repositories, "
        f"{adapters['full']} full fine-tuning or not told, {adapters['lora']} lora; "
        f"{np.min(sizes):.0e} to {np.max(sizes):.0e} parameters"
    )


if __name__ == "__main__":
    main()
