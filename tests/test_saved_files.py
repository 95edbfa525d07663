"""Files of 1.0, one of each kind, load, and hold what they held: any 1.x must read them.

A test that fails here found a change after which people's own files are not read, or lose a value.
Such a change waits for 2.0: the files are not made again.
"""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from past_studies import SCHEMA

import advisor
from advisor.advice import NextPilot

DATA = Path(__file__).parent / "data"
STUDY, SAVED = DATA / "study", DATA / "saved"


def lost(old: Any, new: Any, at: str = "") -> list[str]:
    """Places of a document whose value is not the same in a newer one; new keys are no loss."""
    pairs = []
    if isinstance(old, dict) and isinstance(new, dict):
        gone = sorted(f"{at}.{key}" for key in old.keys() - new.keys())
        pairs = [(old[key], new[key], f"{at}.{key}") for key in old if key in new]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        gone = []
        pairs = [(*pair, f"{at}[{n}]") for n, pair in enumerate(zip(old, new, strict=True))]
    elif isinstance(old, float) and isinstance(new, int | float):
        gone = [] if math.isclose(old, new) else [at]
    else:
        gone = [] if old == new else [at]
    return gone + [place for pair in pairs for place in lost(*pair)]


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_lost_value_is_found():
    old = {"a": [1, {"b": 2.5}], "c": None}
    assert lost(old, {"a": [1, {"b": 2.5, "new": 3}], "c": None}) == []
    assert lost(old, {"a": [1, {"b": 2.6}]}) == [".c", ".a[1].b"]
    assert lost(old, {"a": [1], "c": 0}) == [".a", ".c"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [(STUDY / "recommendation.json", "recommendation"), (SAVED / "infeasible.json", "infeasible")],
    ids=["recommendation", "infeasible"],
)
def test_an_answer(path, kind):
    read = advisor.Recommendation.model_validate_json(path.read_bytes())
    assert read.kind == kind
    # What 1.1 has no more: `what-if` answers the first, and nothing showed the second.
    gone = [".equal_completions", ".frontier"]
    assert lost(document(path), json.loads(read.to_json())) == gone


def test_a_next_pilot():
    path = SAVED / "next_pilot.json"
    read = NextPilot.model_validate_json(path.read_bytes())
    assert read.steps == 40
    assert lost(document(path), read.model_dump(mode="json")) == []


def test_a_posterior_and_its_study():
    study = advisor.Study.load(STUDY)
    assert study.posterior.meta.provenance.schema_version == SCHEMA
    assert study.posterior.draws.keys() >= {"hazard.level", "log_slope", "run_offset.shape"}
    assert advisor.Posterior.load(STUDY / "posterior.nc").meta == study.posterior.meta
    assert len(study.posterior.meta.runs) == 12
    assert study.recommendation.kind == "recommendation"
    assert study.recommendation.stability.probability > 0.9
    manifest = document(STUDY / "manifest.json")
    provenance = study.recommendation.provenance.model_dump(mode="json")
    assert lost(manifest["provenance"], provenance) == []


def test_a_learned_preset():
    path = SAVED / "team.toml"
    read = advisor.load_priors(path).model_dump(mode="json")
    assert lost(tomllib.loads(path.read_text(encoding="utf-8")), read) == []


def test_settings_in_toml():
    first, second = advisor.read_runs(SAVED / "logs")
    assert (first.id, first.model, first.parameters, first.task) == ("a", "m-500m", 5e8, "sort")
    own = first.hyperparameters
    known = {
        "learning_rate": 1e-6,
        "group_size": 8,
        "prompts_per_step": 16,
        "minibatches_per_refresh": 2,
        "epochs_per_refresh": 1,
        "lag": 1,
        "optimizer": "adamw",
        "momentum": 0.9,
        "schedule": "cosine",
        "warmup_steps": 3,
        "planned_steps": 24,
        "kl_coefficient": 0.01,
        "clip_low": 0.2,
        "clip_high": 0.28,
        "advantage_scaling": "group",
        "importance_ratio": True,
        "adapter": "lora",
        "adapter_rank": 16,
        "adapter_alpha": 32,
        "adapter_targets": "all-linear",
        "loss_averaging": "token",
        "precision": "bf16",
        "max_prompt_length": 512,
        "max_completion_length": 1024,
    }
    assert {name: getattr(own, name) for name in known} == known
    assert (first.reward_floor, first.reward_ceiling) == (0.0, 1.0)
    assert second.hyperparameters.learning_rate == 2e-6
    assert second.collapsed
    assert second.collapsed_at == 20
