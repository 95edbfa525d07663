"""Learn what the package ships about language models from folders of real runs.

    python case_studies/real_runs/learn.py FOLDER... [--interim FOLDER]

Writes ``priors/full_finetuning.toml``, on which ``lora`` builds, and ``priors/analogues.json``.
Only numbers leave the folders: presets, and for each run at some shares of its length ten numbers
that describe how it stood, with its repository as provenance.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from analogue_learning import corpus_json, learned_corpus
from interim import BEFORE, interim_studies, learned_preset
from run import Run, by_cohort, by_repository, load

from advisor.backtesting.cases import is_lora
from advisor.forecast.analogues import NAME
from advisor.model.presets import preset_toml
from advisor.model.priors import load_priors

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Fit, learn, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--interim", type=Path, help="folder of interim fits, made where missing")
    given = parser.parse_args()
    runs, unread = load(given.folders)
    print(f"{len(runs)} runs; unread: {unread or 'none'}")
    told = evidence(runs)
    cohorts = list(by_cohort(runs).values())
    with tempfile.TemporaryDirectory() as folder:
        fits = interim_studies(
            [[run.pilot for run in part] for part in cohorts], given.interim or Path(folder)
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
    corpus = learned_corpus(by_repository(runs, set()), {r.pilot.id: r.cohort for r in runs})
    (ROOT / "priors" / NAME).write_text(corpus_json(corpus, told), encoding="utf-8")
    print(f"preset: {preset.evidence}\nanalogues: {told}")


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
