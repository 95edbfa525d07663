"""Learn what the package ships about language models from folders of real runs.

    python case_studies/real_runs/learn.py FOLDER... [--interim FOLDER] [--analogues]
        [--without-task FOLDER]

Writes ``priors/full_finetuning.toml``, on which ``lora`` builds, and ``priors/analogues.json``; the
runs trained in `case_studies/language_model` are a part of both. With ``--analogues`` the latter
alone, which takes a minute in place of an hour. ``--without-task`` writes, and nothing else, what
the preset would be without each of those tasks: what the task is scored under.
With ``--interim`` fits are kept in a folder and gone on from. Fits that were kept before studies
left with their matrices are read entry by entry: name a new folder to learn from matrices.
Only numbers leave the folders: presets, and for each run at some shares of its length ten numbers
that describe how it stood, with its repository as provenance.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from analogue_learning import corpus_json, learned_corpus
from interim import BEFORE, interim_studies, learned_preset
from learned_priors import PastStudy
from preset_files import preset_toml
from run import Run, by_cohort, by_repository, known_optimum, load
from trained_tasks import full_finetuning_of_tasks, runs_of_tasks

from advisor.backtesting.cases import is_lora
from advisor.forecast.analogues import NAME
from advisor.model import Priors, load_priors
from advisor.runs import PilotRun

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Fit, learn, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--interim", type=Path, help="folder of interim fits, made where missing")
    parser.add_argument("--analogues", action="store_true", help="these alone")
    parser.add_argument("--without-task", type=Path, help="folder for presets without one task")
    given = parser.parse_args()
    runs, unread = load(given.folders)
    print(f"{len(runs)} runs; unread: {unread or 'none'}")
    if given.without_task:
        write_presets_without_a_task(runs, given.interim, given.without_task)
        return
    if not given.analogues:
        write_preset(runs, given.interim)
    write_analogues(runs)


def studies_of(runs: list[Run], interim: Path | None) -> dict[str, tuple[list[Run], PastStudy]]:
    """What every cohort and every task says under wide priors, by name; tasks have no `Run`."""
    members, tasks = by_cohort(runs), full_finetuning_of_tasks()
    cohorts = [[run.pilot for run in part] for part in members.values()] + list(tasks.values())
    names = [*members, *tasks]
    with tempfile.TemporaryDirectory() as folder:
        fits = interim_studies(cohorts, interim or Path(folder))
    return {names[number]: (members.get(names[number], []), study) for number, study in fits}


def write_preset(runs: list[Run], interim: Path | None) -> None:
    """Learn the preset from every cohort and every task."""
    found = studies_of(runs, interim)
    preset = learned_preset([study for _, study in found.values()], "learned")
    shipped = load_priors("full_finetuning")
    fitted = [run for members, _ in found.values() for run in members]
    preset = preset.model_copy(
        update={
            "name": "full_finetuning",
            "description": "Language models, the default; learned from GRPO runs.",
            "evidence": f"{evidence(fitted)}; {evidence_of_tasks(full_finetuning_of_tasks())}",
            **known_optimum(runs),
            # Measured with presets like this one: stable.py, said.py.
            "stability_line": shipped.stability_line,
            "extrapolation": shipped.extrapolation,
        }
    )
    _write(preset, ROOT / "priors/full_finetuning.toml")
    print(f"preset: {preset.evidence}")
    together = sum(bool(study.information) for _, study in found.values())
    print(f"{together} of {len(found)} fits hold their matrix; the others were kept without it")


def write_presets_without_a_task(runs: list[Run], interim: Path | None, folder: Path) -> None:
    """Learn the preset once without each task, under the last part of the task's name."""
    found = studies_of(runs, interim)
    shipped = load_priors("full_finetuning")
    measured = {"extrapolation": shipped.extrapolation, "stability_line": shipped.stability_line}
    update = {**known_optimum(runs), **measured}
    folder.mkdir(parents=True, exist_ok=True)
    for task in full_finetuning_of_tasks():
        kept = [study for name, (_, study) in found.items() if name != task]
        name = Path(task).name
        preset = learned_preset(kept, f"without {name}").model_copy(update=update)
        _write(preset, folder / f"{name}.toml")
        of_adapters = (ROOT / "priors/lora.toml").read_text(encoding="utf-8")
        based = of_adapters.replace('base = "full_finetuning"', f'base = "{name}.toml"')
        (folder / f"lora_{name}.toml").write_text(based, encoding="utf-8")


def _write(preset: Priors, path: Path) -> None:
    path.write_text(preset_toml(preset, load_priors(BEFORE)), encoding="utf-8")


def write_analogues(runs: list[Run]) -> None:
    """Describe every finished run, and learn what makes runs alike."""
    own = runs_of_tasks()
    named = by_repository(runs, set()) | own
    told = f"{evidence(runs)}; {evidence_of_tasks(own)}"
    (ROOT / "priors" / NAME).write_text(corpus_json(learned_corpus(named), told), encoding="utf-8")
    print(f"analogues: {told}")


def evidence_of_tasks(tasks: Mapping[str, Sequence[PilotRun]]) -> str:
    """Say what was learned from runs trained here."""
    trained = sum(map(len, tasks.values()))
    return f"and {trained} runs of SmolLM2-135M on {len(tasks)} tasks, trained here"


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
