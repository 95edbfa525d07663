"""What trainers' settings mean in the package's names: the rows of settings.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from stated import checked

from advisor.runs import Trainer

TABLE = yaml.safe_load(Path(__file__).with_name("settings.yaml").read_text(encoding="utf-8"))


def stated(trainer: str, base: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Settings of a base, if there is such a one, and over them others."""
    settings = {**TABLE[trainer].get("bases", {}).get(base, {}), **(more or {})}
    prefix = TABLE[trainer].get("A.", "A.")
    return {key.replace("A.", prefix): value for key, value in settings.items() if value != "_"}


def rows() -> Iterator[Any]:
    """Trainer, settings, facts that follow, and what is said of them: one for each row."""
    for trainer, titles in TABLE.items():
        for title, of_title in titles.items():
            if title in ("A.", "bases"):
                continue
            for place, (more, facts, *said) in enumerate(of_title):
                settings = stated(trainer, title.partition(",")[0], more)
                name = f"{trainer}: {title}, {place}"
                yield pytest.param(trainer, settings, facts, said[0] if said else {}, id=name)


@pytest.mark.parametrize(("trainer", "settings", "facts", "said"), list(rows()))
def test_settings_mean(
    trainer: str, settings: dict[str, Any], facts: dict[str, Any], said: dict[str, Any]
) -> None:
    derived = checked(Trainer.named(trainer).keys[0].derive(settings))
    wanted = {name: value for name, value in facts.items() if name != "only"}
    found = derived.facts if "only" in facts else {name: derived.facts.get(name) for name in wanted}
    assert found == {
        name: pytest.approx(value) if isinstance(value, float) else value
        for name, value in wanted.items()
    }
    assert said.get("arithmetic", {}).items() <= derived.arithmetic.items()
    told = {"assumed": derived.assumptions, "warned": derived.warnings}
    for kind in told.keys() & said.keys():
        assert len(told[kind]) == len(said[kind]), told[kind]
        assert all(any(part in line for line in told[kind]) for part in said[kind]), told[kind]
    assert not any(part in line for part in said.get("unassumed", ()) for line in told["assumed"])


@pytest.mark.parametrize(
    ("trainer", "written"), [("verl", '"{}"'), ("verl", "{}"), ("CS336", "{}")]
)
def test_settings_as_text_mean_the_same(trainer: str, written: str) -> None:
    derive, whole = Trainer.named(trainer).keys[0].derive, stated(trainer, "whole")
    place = "training." if trainer == "CS336" else ""
    text = {place + key: one if one is None else written.format(one) for key, one in whole.items()}
    assert derive(text).facts == derive(whole).facts
