"""What runs lack, asked for at once: in the words of their trainer, with the lines to paste."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from advisor.runs.pilot_run import PilotRun
from advisor.runs.readiness import WHY, questions
from advisor.runs.trainers.registry import find_trainer

PLAIN = {
    "parameters": "all parameters of the base model, as 7e9",
    "adapter": '"lora" or "full"',
}
"""Words for what has the same name everywhere."""


class Asked(NamedTuple):
    """Sentences, the lines of a ``pilots.toml``, and which config would answer instead."""

    sentences: tuple[str, ...]
    block: tuple[str, ...]
    configs: str

    @property
    def text(self) -> str:
        """All of it, as the end of an error."""
        lines = ["Paste into pilots.toml beside the logs:", *self.block]
        if self.configs:
            lines.append(f"Or put beside the log what tells it: {self.configs}")
        return "\n".join(lines)


def asked_of(runs: Sequence[PilotRun]) -> Asked | None:
    """All that runs are asked for; None where nothing that can be given is lacking."""
    lacking = Counter(name for run in runs for name in questions(run))
    if not lacking:
        return None
    first = next(run for run in runs if questions(run))
    sentences = []
    for name, count in lacking.most_common():
        concerned = next(run for run in runs if name in questions(run))
        own = words_of(concerned, name)
        who = "1 run" if count == 1 else "all" if count == len(runs) else f"{count} runs"
        sentences.append(f"{who}: {WHY[name]}" + (f" ({own})" if own else ""))
    # Not to be given as a setting: it says how the log counts.
    given = [name for name in lacking if name != "step_unit"]
    everywhere = [name for name in given if lacking[name] == len(runs)]
    block = ["  [defaults]", *(_line(first, name) for name in everywhere)] if everywhere else []
    for run in runs:
        rest = [name for name in questions(run) if name in given and name not in everywhere]
        if rest:
            block += ["  [[run]]", f'  path = "{Path(run.path).name}"']
            block += [_line(run, name) for name in rest]
            break
    if "step_unit" in lacking:
        block += ["  [columns]", '  step_unit = "optimizer"  # or "refresh"']
        sentences.append('Say in a column map: step_unit = "optimizer" or "refresh"')
    trainer = find_trainer(first.framework)
    return Asked(tuple(sentences), tuple(block), "" if trainer is None else trainer.configs)


def words_of(run: PilotRun, setting: str) -> str:
    """What a setting is in the run's trainer; empty where the trainer has no words for it."""
    trainer = find_trainer(run.framework)
    if trainer is None:
        return ""
    name = trainer.asked_as.get(setting) or trainer.setting_names.get(setting)
    return f"{trainer.name}: {name}" if name else ""


def _line(run: PilotRun, name: str) -> str:
    words = [part for part in (PLAIN.get(name), words_of(run, name)) if part]
    return f"  {name} = ..." + (f"  # {'; '.join(words)}" if words else "")
