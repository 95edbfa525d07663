"""Settings from inside a log and from files beside it, in the package's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.logfiles.configs import ConfigSource
from advisor.logfiles.logged import Logged
from advisor.logs.rows.raw_run import RawRun
from advisor.logs.settings.setting_keys import check_settings
from advisor.trainers import Derived, KeyTable, common_keys, key_tables
from advisor.trainers.values import literal

OF_ADAM = ("adam_beta1", "beta1")


@dataclass(frozen=True)
class StatedSettings:
    """Settings of one run that its log or the files beside it state.

    Attributes
    ----------
    facts : dict of str to object
        By ``advisor.logs.settings.setting_keys.KEYS``, each allowed.
    arithmetic : dict of str to str
        Where each comes from.
    assumptions, warnings : tuple of str
    """

    facts: dict[str, Any] = field(default_factory=dict)
    arithmetic: dict[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def settings_of(
    logged: Logged, sources: Sequence[ConfigSource], framework: KeyTable, path: Path
) -> StatedSettings:
    """Settings of a run from its own log and from what lies beside it.

    Parameters
    ----------
    logged : Logged
        Its own settings come before those of other files.
    sources : sequence of ConfigSource
        Nearest first.
    framework : KeyTable
        Of the log's keys; settings may be another's where the log is a plain table.
    path : Path
        The log, for messages.

    Returns
    -------
    stated : StatedSettings

    Raises
    ------
    InputError
        A setting that the log itself states in the package's names is not allowed.
    """
    check_settings(logged.facts, path=path, row=place_row(logged))
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    warnings = [source.note for source in sources if source.note]
    for name, settings in (
        ("the log", logged.settings),
        *((source.path.name, source.settings) for source in sources),
    ):
        for key, value in settings.items():
            if key not in merged:
                merged[key], origin[key] = value, name
            elif literal(merged[key]) != literal(value):
                warnings.append(
                    f"{key} = {merged[key]} in {origin[key]} is used; {name} says {value}"
                )
    own, is_known = _framework_of(merged, framework)
    derived = own.derive(merged)
    # Deep in a known trainer's settings a common name may mean another thing.
    plain = {key: value for key, value in merged.items() if not (is_known and "." in key)}
    if derived.facts.get("optimizer") == "sgd":
        # Trainers list Adam's decay whatever the optimizer is.
        plain = {key: plain[key] for key in plain if key.rpartition(".")[2] not in OF_ADAM}
    common = common_keys.derive(plain)
    derived = Derived(
        common.facts | derived.facts, common.arithmetic | derived.arithmetic, derived.assumptions
    )
    facts, arithmetic = {}, {}
    for key, value in derived.facts.items():
        try:
            check_settings({key: value}, path=path)
        except InputError as error:
            warnings.append(f"{key} = {value!r} was left out: {error.problem}")
            continue
        facts[key], arithmetic[key] = value, derived.arithmetic.get(key, f"{key} {value}")
    used = [source.path.name for source in sources if source.settings]
    where = f" [{', '.join(used)}]" if used else " [the log]"
    return StatedSettings(
        {**facts, **logged.facts},
        {
            **{key: line + where for key, line in arithmetic.items()},
            **{key: f"{key} {value} [the log]" for key, value in logged.facts.items()},
        },
        derived.assumptions,
        tuple(warnings),
    )


def place_row(run: Logged | RawRun) -> int | None:
    """Row of the file in which a run stands, where each has its own."""
    label = run.label or ""
    is_place = not run.has_own_id and label.isascii() and label.isdigit() and len(label) < 10
    return int(label) if is_place else None


def _framework_of(settings: Mapping[str, Any], framework: KeyTable) -> tuple[KeyTable, bool]:
    """KeyTable whose settings these are, and whether they bear its marks.

    The one with most marks, the log's own among equals.
    """
    ends = {key.rpartition(".")[2] for key in settings} | set(settings)

    def marks(candidate: KeyTable) -> int:
        return sum(
            any(key.startswith(mark) for key in settings) if mark.endswith(".") else mark in ends
            for mark in candidate.setting_marks
        )

    best = max((framework, *key_tables()), key=marks)
    return (best, True) if marks(best) else (framework, False)
