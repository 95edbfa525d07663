"""Everything that is read: a whole example of each format, and what reading it means."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from injuries import damaged, packed

ROOT = Path(__file__).resolve().parents[2]
DRAWS = 12
"""Draws of a chain in the posterior that is damaged: the injuries should hit more than draws."""


@dataclass(frozen=True)
class Example:
    """A whole example of a format.

    Attributes
    ----------
    name : str
    files : dict of str to bytes
        By their names in a folder.
    targets : tuple of str
        Those that are damaged, one at a time.
    read : callable
        Reads the folder; what it gives in a word.
    is_log : bool
        Whether it may also stand compressed.
    is_slow : bool
        Whether it takes a process of its own.
    """

    name: str
    files: dict[str, bytes]
    targets: tuple[str, ...]
    read: Callable[[Path], str]
    is_log: bool = False
    is_slow: bool = False

    def damaged(self, chance: random.Random, others: list[bytes]) -> dict[str, bytes]:
        """Files of which at least one is damaged."""
        target, found = chance.choice(self.targets), {}
        for name, data in self.files.items():
            if name == target or (self.is_log and chance.randrange(4) == 0):
                data = damaged(data, chance, others)
                if self.is_log:
                    name, data = packed(name, data, chance)
            found[name] = data
        return found


def examples() -> list[Example]:
    """One example of every format: all readers of logs, and everything that is saved."""
    with tempfile.TemporaryDirectory() as place:
        return [*logs(Path(place)), *saved(Path(place))]


def logs(place: Path) -> list[Example]:
    """Sample logs of every reader's conformance test."""
    # What the tests there share.
    sys.path += [str(ROOT / one) for one in ("tests/trainers", "tests/logs", "tests")]
    from reader_conformance import REWARDS, ReaderConformance

    found = []
    paths = [*(ROOT / "tests/logs/readers").glob("test_*.py")]
    paths += [
        path
        for path in (ROOT / "tests/trainers").glob("test_*.py")
        if "ReaderConformance" in path.read_text(encoding="utf-8")
    ]
    for path in sorted(paths):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        for name, kind in vars(module).items():
            if not (isinstance(kind, type) and issubclass(kind, ReaderConformance)):
                continue
            if kind is ReaderConformance:
                continue
            folder = place / f"{path.stem}-{name}"
            folder.mkdir()
            log = kind().write_sample(folder, REWARDS[:12])
            target = log.relative_to(folder).as_posix()
            found.append(
                Example(f"log: {kind.reader.name}", _held(folder), (target,), read_log, True)
            )
    return found


def saved(place: Path) -> list[Example]:
    """An example of everything that the advisor writes and reads again."""
    return [*studies(place), *presets(), *sidecars(), *others(place)]


def studies(place: Path) -> list[Example]:
    """A study, its posterior, and both as older versions wrote them."""
    from simulated_runs import PLANS, made_up_posterior, rising

    from advisor.advice import advise
    from advisor.diagnosis import diagnose

    posterior = made_up_posterior(draws=DRAWS)
    study = place / "study"
    study.mkdir()
    advice = advise(posterior, trials=20, weigh_pilots=False)
    _write_study(study, posterior, advice, [diagnose(PLANS[0].run(rising()))])
    whole = _held(study)
    manifest = json.loads(whole["manifest.json"])
    del manifest["sha256"]
    older = whole | {"manifest.json": json.dumps(manifest).encode()}
    texts, draws = ("manifest.json", "recommendation.json", "diagnosis.json"), ("posterior.nc",)
    return [
        Example("study", whole, texts, read_study),
        Example("study, posterior", whole, draws, read_study),
        Example("study of an older version", older, texts, read_study),
        Example("posterior", {"posterior.nc": posterior.to_bytes()}, draws, read_posterior),
    ]


def presets() -> list[Example]:
    """A preset and a corpus of finished runs."""
    sys.path += [str(ROOT / "case_studies"), str(ROOT / "case_studies/real_runs")]
    from analogue_learning import corpus_json
    from preset_files import preset_toml

    from advisor.forecast import analogues
    from advisor.model import load_priors, preset_folder

    preset = preset_toml(load_priors("small_models")).encode()
    corpus = analogues.load_corpus(preset_folder() / "analogues.json")
    columns = {
        field.name: getattr(corpus, field.name)[:30]
        for field in fields(corpus)
        if np.ndim(getattr(corpus, field.name))
        and len(getattr(corpus, field.name)) == len(corpus.run)
    }
    few = corpus_json(replace(corpus, **columns), "few").encode()
    return [
        Example("preset", {"preset.toml": preset}, ("preset.toml",), read_preset),
        Example("analogues", {"analogues.json": few}, ("analogues.json",), read_analogues),
    ]


def sidecars() -> list[Example]:
    """What users write beside their logs."""
    from advisor import demo_folder

    pilot = (demo_folder() / "s_lr3e-4_g8_k2" / "trainer_state.json").read_bytes()
    told = (demo_folder() / "pilots.toml").read_bytes()
    return [
        Example(f"sidecar ({name})", {"a/trainer_state.json": pilot, file: data}, (file,), read_log)
        for name, file, data in (("TOML", "pilots.toml", told),)
    ]


def others(place: Path) -> list[Example]:
    """A plan of pilots, compiled code, and a log that is followed."""
    from advisor.advice import PLAN, plan, planned_settings
    from advisor.forecast import Target
    from advisor.model.fast.machine_code import write_code

    stated, _ = planned_settings(
        {"learning_rate": "1e-6", "group_size": "8", "prompts_per_step": "128"}
    )
    planned = plan(stated, 200, Target("task", "m-1B", 1e9, 0.3), share=0.2, seed=0)
    write_code(place / "code" / "x.code", b"machine code" * 500)
    rows = "".join(json.dumps({"step": n, "reward": 0.1}) + "\n" for n in range(1, 30))
    return [
        Example("plan", {PLAN: planned.model_dump_json().encode()}, (PLAN,), read_plan),
        Example("compiled code", _held(place / "code"), ("x.code",), read_code),
        Example("watched log", {"run.jsonl": rows.encode()}, ("run.jsonl",), read_watched),
    ]


def read_log(folder: Path) -> str:
    """Inspect and diagnose."""
    from advisor.diagnosis import Diagnosis, diagnose
    from advisor.runs import inspect

    found = inspect([folder])
    json.loads(found.to_json())
    json.loads(Diagnosis.json_of([diagnose(run) for run in found.runs[:5]]))
    return "read" if found.runs else "refused" if found.unread else "nothing"


def read_study(folder: Path) -> str:
    """Load, and give the answer again."""
    from advisor.study import Study

    study = Study.load(folder)
    assert study.recommendation.text
    assert study.files
    json.loads(study.recommendation.to_json())
    return "read"


def read_posterior(folder: Path) -> str:
    """Load, and say what it says."""
    from advisor.findings import describe
    from advisor.model import Posterior

    posterior = Posterior.load(folder / "posterior.nc")
    assert describe(posterior)
    json.loads(posterior.to_json())
    return "read"


def read_preset(folder: Path) -> str:
    """Load and list it."""
    from advisor.model import load_priors, prior_table

    assert prior_table(load_priors(folder / "preset.toml"))
    return "read"


def read_plan(folder: Path) -> str:
    """Load, and say it."""
    from advisor.advice import PilotPlan

    assert PilotPlan.load(folder).text
    return "read"


def read_analogues(folder: Path) -> str:
    """Load the corpus."""
    from advisor.forecast import analogues

    analogues.load_corpus(folder / "analogues.json")
    return "read"


def read_code(folder: Path) -> str:
    """Take what is whole."""
    from advisor.model.fast.machine_code import read_code

    return "refused" if read_code(folder / "x.code") is None else "read"


def read_watched(folder: Path) -> str:
    """Look three times, the last at a longer log."""
    from advisor.monitoring import Follower, reader

    follower = Follower(folder / "run.jsonl", reader())
    found = [follower.growth()]
    with (folder / "run.jsonl").open("ab") as log:
        log.write(b'\n{"step": 400, "reward": 0.5}\n{"step": 401, "reward": 0.5}\n')
    found += [follower.growth(), follower.growth()]
    return "read" if any(one is not None and one.run is not None for one in found) else "refused"


def _write_study(folder: Path, posterior: object, advice: object, judged: list[object]) -> None:
    """Save a study without its figures, which are never read."""
    from unittest import mock

    from advisor import reporting
    from advisor.study import Study

    with (
        mock.patch.object(reporting, "drawings_made", return_value=[]),
        mock.patch.object(reporting, "plot", return_value=None),
        mock.patch.object(reporting, "report", return_value=None),
    ):
        Study(posterior, advice, tuple(judged)).save(folder)  # type: ignore[arg-type]


def _held(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
