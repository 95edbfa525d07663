"""One line of a training loop's console: counter, pairs, and the settings that headers print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from advisor.runs.trainers.generic import keys as own_loop
from advisor.runs.trainers.key_table import plain
from advisor.runs.trainers.keys import has_evaluation_key, has_reward_key
from advisor.runs.trainers.likely import words

LONGEST = 4000
"""Characters of a line that are looked at."""

LATEST = 300
"""Characters within which the counter stands: before it only loggers' words do."""

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
OTHERS = re.compile(
    r"\bstep:\d+ - \S+:|[\"'](?:loss|policy_loss|act_loss)[\"']\s*:"
    r"|[\"']reward[\"']\s*:.{0,2000}[\"'](?:epoch|reward_std|learning_rate)[\"']\s*:"
)
"""Lines of verl, TRL and OpenRLHF, which readers of their own take."""

HINT = re.compile(r"[Rr]eward|REWARD|[Ee]val|EVAL|(?:[Vv]al|[Tt]est)[_ ]")
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
COUNT = r"(?P<step>\d{1,9})(?:\s{0,3}/\s{0,3}(?P<planned>\d{1,9}))?"
BARE = re.compile(
    r"\s{0,20}(?:\[(?P<tag>[^\]]{1,80})\]\s{1,8})?(?P<step>\d{1,9})/(?P<planned>\d{1,9})\s*\|"
)
WORDED = re.compile(
    rf"(?:^|[\s\[\]|>:(])(?:(?:global|train|training|grpo|rl)[\s_-])?"
    rf"(?:step|iter|iteration|update)"
    rf"\s{{0,3}}[:=#]?\s{{0,8}}[\[(]?{COUNT}[\])]?(?=[\s|:,;)-])",
    re.IGNORECASE,
)
EPOCH = re.compile(
    r"(?:^|[\s\[\]|>:(])epochs?\s{0,3}[:=#]?\s{0,3}[\[(]?(?P<epoch>\d{1,6})"
    r"(?:\s{0,3}/\s{0,3}(?P<epochs>\d{1,6}))?[\])]?",
    re.IGNORECASE,
)
WITHIN = re.compile(rf"[\s,|:-]{{0,4}}[\[(]{COUNT}[\])](?=[\s|:,;)-])")
"""Counter of the steps within an epoch, right behind it: ``Epoch:[1/2](40/500),``."""

OF_EPISODES = re.compile(r"\b(?:done|terminated)\s?[:=]\s?(?:true|false)\b", re.IGNORECASE)
"""What the lines of an agent at play hold, one for each of its actions."""

TAG = re.compile(r"\s{0,20}\[(?P<tag>[A-Za-z][^\]\s]{0,79})\]\s")
NO_TAGS = re.compile(
    r"(?:info|debug|warning|warn|error|success|train\w*|grpo|main|rank\s?\d+|step)", re.I
)
SEPARATOR = re.compile(r"[|,;]|\s[-–—]\s")
WORDS_PAIR = re.compile(
    rf"\s*(?P<key>[A-Za-z][\w./@]*(?:[ -][A-Za-z.][\w./@]*){{0,3}})\s?[=:]\s*(?P<value>{NUMBER})"
    r"(?P<unit>\s?%|[A-Za-z/]{1,12})?(?![\w.])"
)
PAIR = re.compile(
    rf"(?<![\w./@\"'-])(?P<key>[A-Za-z][\w./@-]{{0,60}})\s?[=:]\s*(?P<value>{NUMBER})"
    r"(?P<unit>\s?%|[A-Za-z/]{1,12})?(?![\w.\"'])"
)
BLANK_PAIR = re.compile(
    rf"\s*(?P<key>[A-Za-z][A-Za-z.-]*(?: [A-Za-z.-]+){{0,2}}) (?P<value>{NUMBER})"
    r"(?P<unit>\s?%|[A-Za-z/]{1,12})?\s*(?:\(|[a-z/]*\s*$)"
)

LEAST_COMMAS = 3
"""Commas of a line whose parts may be names and numbers with a blank between them."""

IN_DICT = re.compile(rf"[\"'](\w{{1,60}})[\"']\s?:\s?({NUMBER})(?=\s?[,}}])")
IN_BRACES = re.compile(r"\{[^{}]*\}")
BEST = re.compile(r"\b(?:best|final|initial)\b", re.IGNORECASE)
OF_AN_UPDATE = frozenset({"loss", "kl", "entropy", "grad", "gradient", "norm", "lr", "advantage"})
"""Words of the keys that stand beside a reward in a line that logs an update."""

COUNTS = ("total_num", "num_total", "num_samples", "num_rollouts", "count", "total", "n")
TOTALS = ("total_reward", "reward_sum", "sum_reward", "total_rewards")
"""Completions of an update, and the sum of their rewards."""

SETTING = re.compile(
    r"(?<![\w.])(?P<key>model(?:[ _]name)?|base[ _]model|seed|lora[ _](?:rank|r)|rank|lr|"
    r"learning[ _]rate|group(?:[ _]size)?|num_generations|temp(?:erature)?|batch|"
    r"prompts_per_step|(?:max[ _])?steps|dataset|task|kl_coef|kl[ _]coefficient|"
    r"max_(?:new_|completion_)?tokens|num_iterations|optimizer)\s?[=:]\s?(?P<value>[^\s|,;)]{1,120})",
    re.IGNORECASE,
)
NAMES = frozenset({"model", "model_name", "base_model", "dataset", "task", "optimizer"})
A_NAME = re.compile(r"(?=[^\d]*[A-Za-z])[\w./-]{2,120}")


class Step(NamedTuple):
    """A logged step.

    Attributes
    ----------
    tag : str or None
        Name of the run that the line begins with.
    step, planned : int, int or None
        Of the epoch, where the counter starts anew in each.
    epoch, epochs : int or None
    cells : dict of str to float
        Percentages as fractions.
    percents : tuple of str
        Keys of those.
    last : str
        The last value as it is written.
    """

    tag: str | None
    step: int
    planned: int | None
    cells: dict[str, float]
    percents: tuple[str, ...]
    last: str
    epoch: int | None = None
    epochs: int | None = None


def parse_step(line: str) -> Step | None:
    """A step with a reward or an evaluation, if the line logs one."""
    if not HINT.search(line, 0, LONGEST):
        return None
    text = ANSI.sub("", line[:LONGEST])
    epoch = EPOCH.search(text, 0, LATEST)
    counter = BARE.match(text) or WORDED.search(text, 0, LATEST)
    if counter is None and epoch is not None:
        counter = WITHIN.match(text, epoch.end())
    if counter is None or is_of_another(text) or OF_EPISODES.search(text) is not None:
        return None
    cells: dict[str, float] = {}
    percents: list[str] = []
    last = ""
    for key, value, unit in _pairs(text[counter.end() :]):
        number = float(value)
        if unit.strip() == "%":
            number /= 100
            percents.append(key)
        cells[key], last = number, value
    if not (_has_reward(cells) or has_evaluation_key(cells)):
        return None
    planned = counter.group("planned")
    return Step(
        _tag(text, counter),
        int(counter.group("step")),
        int(planned) if planned else None,
        cells,
        tuple(percents),
        last,
        int(epoch.group("epoch")) if epoch is not None else None,
        int(epoch.group("epochs")) if epoch is not None and epoch.group("epochs") else None,
    )


def parse_uncounted(line: str) -> dict[str, float] | None:
    """Cells of a line that logs an update or an evaluation and does not say of which step.

    A reward alone is none: it may be that of one sample. Beside it stands what an update has.
    """
    if not HINT.search(line, 0, LONGEST) or is_of_another(line):
        return None
    text = ANSI.sub("", line[:LONGEST])
    inside = {key: float(value) for key, value in IN_DICT.findall(text)}
    cells = {
        key: float(value) / (100 if unit.strip() == "%" else 1)
        for key, value, unit in _pairs(IN_BRACES.sub(" ", text))
    }
    if not inside and not cells:
        return None
    cells = {**inside, **cells}
    if BEST.search(text) is None and has_evaluation_key(cells) and not _has_reward(cells):
        return cells
    if not any(OF_AN_UPDATE.intersection(words(key)) for key in cells):
        return None
    count = next((cells[key] for key in COUNTS if cells.get(key, 0.0) > 0), None)
    total = next((cells[key] for key in TOTALS if key in cells), None)
    if count is not None and total is not None:
        cells["reward"] = total / count
    return cells if _has_reward(cells) else None


def _has_reward(cells: Mapping[str, float]) -> bool:
    return any(is_reward(key) for key in cells)


def is_of_another(line: str) -> bool:
    """Whether a line is one of verl, TRL or OpenRLHF."""
    return OTHERS.search(line, 0, LONGEST) is not None


def is_reward(key: str) -> bool:
    """Whether a key of a console names the reward of a step."""
    name = plain(key)
    return "reward" in name and (
        has_reward_key([name]) or any(name in level for level in own_loop.KEY_TABLE.reward)
    )


def parse_settings(line: str) -> tuple[str | None, dict[str, str]]:
    """Tag of a line, and the settings that it states, in lower case and without blanks."""
    text = ANSI.sub("", line[:LONGEST])
    settings: dict[str, str] = {}
    for found in SETTING.finditer(text):
        key = found.group("key").lower().replace(" ", "_")
        value = found.group("value").strip("\"'.")
        if A_NAME.fullmatch(value) if key in NAMES else re.fullmatch(NUMBER, value):
            settings.setdefault(key, value)
    tag = TAG.match(text)
    is_tag = tag is not None and not NO_TAGS.fullmatch(tag.group("tag"))
    return (tag.group("tag") if tag is not None and is_tag else None), settings


def _tag(text: str, counter: re.Match[str]) -> str | None:
    if "tag" in counter.re.groupindex:
        tag = counter.group("tag")
        return None if tag is None or NO_TAGS.fullmatch(tag) else tag
    found = TAG.match(text)
    if found is None or text[found.end() : counter.start()].strip():
        return None
    return None if NO_TAGS.fullmatch(found.group("tag")) else found.group("tag")


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """Keys and values, with ``=``, ``:`` or, between bars, a blank between them."""
    has_bars = "|" in text or text.count(", ") >= LEAST_COMMAS
    for part in SEPARATOR.split(text):
        first = WORDS_PAIR.match(part)
        if first is None and has_bars:
            first = BLANK_PAIR.match(part)
            if first is not None:
                yield first.group("key"), first.group("value"), first.group("unit") or ""
                continue
        at = 0
        if first is not None:
            yield first.group("key"), first.group("value"), first.group("unit") or ""
            at = first.end()
        for found in PAIR.finditer(part, at):
            yield found.group("key"), found.group("value"), found.group("unit") or ""
