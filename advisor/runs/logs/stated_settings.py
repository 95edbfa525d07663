"""Settings that a user, a log or a config file states, in the package's names, each checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError

from advisor.errors import InputError, brief
from advisor.runs.logfiles.config_files import UNKNOWN, ConfigSource, flatten
from advisor.runs.logfiles.logged import Logged, Table, nearest
from advisor.runs.logs.located_run import RawRun
from advisor.runs.pilot_run import PilotRun, model_name
from advisor.runs.settings import PartialSettings, Positive, PositiveInt
from advisor.runs.trainers import Derived, KeyTable, Trainer, key_tables
from advisor.runs.trainers import generic as own_loop
from advisor.runs.trainers.derived import COUNTED, literal, number
from advisor.runs.trainers.key_table import COMMON_KEYS
from advisor.runs.trainers.keys import COLUMN_SETTINGS
from advisor.runs.trainers.registry import trainers


def _true_or_false(value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError("should be true or false")
    return text == "true"


def _size(value: Any) -> Any:
    """Parameters, also where a text such as '7B' states them."""
    named = PilotRun.parameters_in(value.strip()) if isinstance(value, str) else None
    return value if named is None else named


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class RunKeys(BaseModel, use_attribute_docstrings=True):
    """What a sidecar entry or an override may set next to the settings."""

    model: Text | None = None
    """Name of the base model; runs of one name pool."""
    task: Text | None = None
    """Name of the task; runs of one name pool."""
    parameters: Annotated[Positive, BeforeValidator(_size)] | None = None
    """All parameters of the base model: a number, or text such as '7B'."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Seed of the run."""
    reward_floor: Finite | None = None
    """Lowest reward that a completion can have."""
    reward_ceiling: Finite | None = None
    """Highest reward that a completion can have."""
    collapsed: Annotated[bool, BeforeValidator(_true_or_false)] | None = None
    """Whether the run collapsed, true or false, where you know it."""
    collapsed_at: Positive | None = None
    """Optimizer step from which it had collapsed."""
    gpus: PositiveInt | None = None
    """GPUs that the run was trained on, for its price."""
    logging_steps: PositiveInt | None = None
    """Optimizer steps that one row of the log averages."""


KEYS = (*PartialSettings.model_fields, *RunKeys.model_fields)
"""Every key that a sidecar entry or an override may set."""


class Setting(NamedTuple):
    """A value and where it was set; no path means a flag."""

    value: Any
    path: Path | None = None
    row: int | None = None

    @property
    def where(self) -> str:
        """For a message: the place that set it."""
        if self.path is None:
            return "the flag or override"
        return str(self.path) if self.row is None else f"{self.path} (row {self.row})"


def check_settings(
    given: Mapping[str, Any],
    *,
    path: Path | None = None,
    row: int | None = None,
    known: Sequence[str] = KEYS,
) -> dict[str, Setting]:
    """Settings whose names and values are allowed; anything else raises `InputError`."""
    settings = {}
    for key, value in given.items():
        if key not in KEYS:
            problem = "this key is not one that the package reads"
            advice = _in_our_words({key: value}) or nearest(key, known)
            raise InputError(problem, path=path, row=row, key=key, advice=advice)
        if value is not None:
            settings[key] = Setting(_check(key, value, path, row), path, row)
    return settings


def _in_our_words(given: Mapping[str, Any]) -> str:
    """What the package calls a setting that is given under a trainer's own name."""
    names = "|".join(re.escape(key.rpartition(".")[2]) for key in flatten(given) or given)
    for trainer in trainers():
        called = {**trainer.setting_names, **trainer.asked_as}
        found = [ours for ours in called if re.search(rf"(?<!\w)(?:{names})(?!\w)", called[ours])]
        if found := [f"{ours} ({trainer.name}: {called[ours]})" for ours in found if ours in KEYS]:
            return f"Write {', '.join(found)}"
    return ""


def _check(key: str, value: Any, path: Path | None, row: int | None) -> Any:
    try:
        # Keys that hold true or false.
        if isinstance(value, bool) and key not in ("importance_ratio", "collapsed"):
            raise ValueError("a switch, where a value is needed")
        kind = PartialSettings if key in PartialSettings.model_fields else RunKeys
        return getattr(kind.model_validate({key: value}), key)
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Input ").removeprefix("Value error, ")
    except ValueError as error:
        why = str(error)
    advice = f"Correct '{key}', or remove it where it is not known"
    problem = f"{value!r} is not allowed: {why}"
    raise InputError(problem, path=path, row=row, key=key, advice=advice) from None


def stated_settings(
    logged: Logged,
    sources: Sequence[ConfigSource],
    trainer_keys: KeyTable,
    path: Path,
    group_size: int | None = None,
) -> Derived:
    """Settings of a run from its own log, and from the config files beside it, nearest first."""
    check_settings(logged.facts, path=path, row=place_row(logged))
    merged, warnings = _merged(logged, sources)
    # The group size under the trainer's own name, where only the user gave it.
    name = Trainer.named(trainer_keys.name).setting_names.get("group_size")
    if group_size and merged and name:
        merged.setdefault(name, group_size)
    derived = derive_settings(merged, trainer_keys)
    names = [source.name for source in sources if source.settings]
    where = f" [{', '.join(names)}]" if names else " [the log]"
    found = _checked(derived, where)
    for key, value in logged.facts.items():
        found.put(key, value, f"{key} {value} [the log]")
    found.warnings = (*warnings, *found.warnings, *derived.warnings)
    return found


def _checked(derived: Derived, where: str) -> Derived:
    """What can be of the settings that a trainer's configuration gives, and whence it is."""
    found = Derived(assumptions=derived.assumptions, marks=derived.marks)
    for key, value in derived.facts.items():
        try:
            check_settings({key: value})
        except InputError as error:
            found.warn(f"{key} = {brief(repr(value))} was left out: {error.problem}")
        else:
            found.put(key, value, derived.arithmetic.get(key, f"{key} {value}") + where)
    return found


def _merged(logged: Logged, sources: Sequence[ConfigSource]) -> tuple[dict[str, Any], list[str]]:
    """Settings under the trainer's own names, and what contradicts them."""
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    warnings = [source.note for source in sources if source.note]
    places = [("the log", logged.settings)]
    for name, settings in places + [(source.name, source.settings) for source in sources]:
        for key, value in settings.items():
            if key not in merged:
                merged[key], origin[key] = value, name
            elif literal(merged[key]) != literal(value) and UNKNOWN not in (merged[key], value):
                used = f"{key} = {merged[key]} in {origin[key]} is used"
                warnings.append(f"{used}; {name} says {value}")
    return merged, warnings


def derive_settings(merged: Mapping[str, Any], trainer_keys: KeyTable) -> Derived:
    """Settings in the package's names, from those under the names of a trainer."""
    if not merged:
        return trainer_keys.derive({})  # what a trainer does whatever is set
    trainer_keys, is_known = _trainer_of(merged, trainer_keys)
    derived = trainer_keys.derive(merged)
    # Deep in a known trainer's settings a common name may mean another thing.
    # Sections of configs that people write themselves, in which common names mean what they mean.
    shallow = {
        key: value
        for key, value in merged.items()
        if not is_known
        or "." not in key
        or key.rpartition(".")[0] in ("training", "grpo", "rl", "lora")
    }
    if derived.facts.get("optimizer") == "sgd":
        # Trainers list Adam's decay whatever the optimizer is.
        shallow = {
            k: shallow[k] for k in shallow if k.rpartition(".")[2] not in ("adam_beta1", "beta1")
        }
    common = COMMON_KEYS.derive(shallow)
    _put_model(common, merged, derived.facts.get("model", common.facts.get("model", "")))
    arithmetic = common.arithmetic | derived.arithmetic
    facts, marks = common.facts | derived.facts, common.marks | derived.marks
    return replace(derived, facts=facts, arithmetic=arithmetic, marks=marks)


def _put_model(found: Derived, settings: Mapping[str, Any], model: str) -> None:
    """Name of a model in its own config; where that has no size, parameters of a dense one."""
    config = {
        key.removeprefix("model_config."): value
        for key, value in settings.items()
        if key.startswith("model_config.")
    }
    name = model_name(str(config.get("_name_or_path") or ""))
    if name and not model and not name.startswith(("/", ".", "~")):
        model = name
        found.note("model", name, "model_config._name_or_path")
    shape = ("hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size")
    width, inner, layers, words, heads = (
        number(config.get(name)) for name in (*shape, "num_attention_heads")
    )
    is_other = any("expert" in key or "vision" in key for key in config)
    if PilotRun.parameters_in(model):
        return
    if is_other or not (width and inner and layers and words and heads):
        if size := number(settings.get("base_parameters")):
            found.put(
                "parameters", float(f"{size:.3g}"), f"parameters {size:,.0f} (Unsloth's count)"
            )
            found.mark(COUNTED)
        return
    own = (number(config.get("head_dim")) or width / heads) * width
    attention = 2 * own * (heads + (number(config.get("num_key_value_heads")) or heads))
    matrices = 2 if config.get("hidden_act") in ("gelu", "gelu_new", "relu") else 3
    tables = 1 if literal(config.get("tie_word_embeddings")) is True else 2
    size = tables * words * width + layers * (attention + matrices * width * inner)
    why = f"{layers:g} layers of width {width:g}, {inner:g} inside; {words:g} words"
    found.put("parameters", float(f"{size:.3g}"), f"parameters {size:.3g} ({why})")


def column_settings(table: Table, framework: KeyTable) -> Derived:
    """Settings from columns of one run that hold one value in all rows that have any."""
    settings: dict[str, Any] = {}
    for key in table.keys:
        name = key.strip().lower().replace(".", "/").rpartition("/")[2]
        if name not in COLUMN_SETTINGS:
            continue
        value = table.constant(key)
        if value is not None:
            settings.setdefault(COLUMN_SETTINGS[name], value)
    if not settings:
        return Derived()
    return _checked(derive_settings(settings, framework), " [a column of the log]")


def place_row(run: Logged | RawRun) -> int | None:
    """Row of the file in which a run stands, where each has its own."""
    label = run.label or ""
    is_place = not run.has_own_id and label.isascii() and label.isdigit() and len(label) < 10
    return int(label) if is_place else None


def _trainer_of(settings: Mapping[str, Any], keys: KeyTable) -> tuple[KeyTable, bool]:
    """Keys of the trainer whose settings these are, and whether they bear its marks."""
    ends = {key.rpartition(".")[2] for key in settings}
    starts = {key[: at + 1] for key in settings for at, sign in enumerate(key) if sign == "."}
    seen = {*settings, *ends, *starts}
    best = max((keys, *key_tables()), key=lambda table: len(seen.intersection(table.setting_marks)))
    if not seen.isdisjoint(best.setting_marks):
        return best, True
    return (own_loop.KEY_TABLE if keys is COMMON_KEYS else keys), False
