"""A study: the folder that one answer leaves behind."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from advisor._compat import Progress
from advisor.advice import Recommendation
from advisor.errors import InputError
from advisor.integrations.export import trl_yaml
from advisor.posterior import Posterior

MANIFEST = "manifest.json"


def write_study(
    folder: str | Path, posterior: Posterior, advice: Recommendation, progress: Progress
) -> list[Path]:
    """Write a study folder, whole or not at all.

    Parameters
    ----------
    folder : path-like
        Replaced where it already holds a study; refused where it holds anything else.
    posterior : Posterior
    advice : Recommendation
    progress : callable

    Returns
    -------
    files : list of Path

    Raises
    ------
    InputError
        The folder exists and is no study, or cannot be written.
    """
    from advisor.report import draw_all, write_report

    out = Path(folder)
    check_folder(out)
    steps: list[tuple[str, Callable[[Path], object]]] = [
        ("Saving the posterior", lambda at: posterior.save(at / "posterior.nc")),
        (
            "Writing the recommendation",
            lambda at: (at / "recommendation.json").write_text(advice.to_json(), encoding="utf-8"),
        ),
        (
            "Writing the trainer config",
            lambda at: (at / "trl_config.yaml").write_text(trl_yaml(advice), encoding="utf-8"),
        ),
        ("Drawing figures", lambda at: draw_all(posterior, advice, at / "figures")),
        ("Writing the report", lambda at: write_report(posterior, advice, at / "report.html")),
    ]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
            draft = Path(scratch) / "study"
            draft.mkdir()
            for index, (what, write) in enumerate(steps):
                progress(what, index / len(steps), "")
                write(draft)
            names = sorted(str(p.relative_to(draft)) for p in draft.rglob("*") if p.is_file())
            manifest = {
                "kind": "grpo-advisor study",
                "files": names,
                "provenance": advice.provenance.model_dump(),
            }
            (draft / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")
            if out.exists():
                shutil.rmtree(out)
            draft.rename(out)
    except OSError as error:
        raise InputError(
            f"the study cannot be written ({error.strerror or error})",
            path=out,
            key="--out",
            advice="Choose a folder you may write to",
        ) from error
    return [out / name for name in [*names, MANIFEST]]


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something other than a study, before any work is done.

    Raises
    ------
    InputError
        It exists and is no study.
    """
    if not folder.exists():
        return
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if not is_empty and not (folder / MANIFEST).is_file():
        raise InputError(
            "it exists and is no study: nothing was overwritten",
            path=folder,
            key="--out",
            advice="Choose another folder",
        )
