"""Console logs of OpenRLHF: ``Global step 12: {...}``, or progress bars with their postfix.

All that it prints counts batches of rollouts. Since 0.8.2 a dict is printed for each; before, the
bar of an episode had its means as postfix. The bar over the mini-batches of one batch has had a
shorter postfix ever since, and is read where nothing better is there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from advisor.errors import InputError
from advisor.runs.logfiles.columns import Columns
from advisor.runs.logfiles.console_text import find_dicts, find_in_console
from advisor.runs.logfiles.log_file import LogFile
from advisor.runs.logfiles.logged import Claim, Logged, Reader
from advisor.runs.logfiles.table import TableBuilder
from advisor.runs.trainers.keys import kept_keys
from advisor.runs.trainers.openrlhf.printed_arguments import PrintedArguments
from advisor.runs.trainers.openrlhf.progress_bars import Bar, Batches, Episodes, find_bars

STEP = "global_step"
"""Key under which the count of rollouts is handed over."""

ROW = re.compile(rb"[Gg]lobal step \d{1,12}: \{'|(?:Train epoch|Episode) \[\d{1,9}/\d{1,9}\]:")
STEP_DICT = re.compile(r"[Gg]lobal step (\d{1,12}): (?=\{')")
EVAL_DICT = re.compile(
    r"(?:Evaluation completed in [^{}]{0,60}global_step (\d{1,12}), eval_metrics"
    r"|Eval at step (\d{1,12})): (?=\{')"
)
LONGEST = 1 << 16
"""Characters of a printed dict."""

MOST_IN_A_LINE = 4
OWN_KEYS = frozenset(
    {"actor_lr", "actor_grad_norm", "ppo_clip_ratio", "group_reward_std", "rollout/reward_mean"}
)
BAR_RATES = ("act_lr", "actor_lr")

FEW_DIGITS = "progress bars show three significant digits"
COUNTED = f"{STEP} = count of the bars 'Train epoch', one batch of rollouts each"


class Printed(NamedTuple):
    """A printed dict: the step before it, its cells, and whether its end is lost."""

    step: int
    cells: Mapping[str, str]
    is_cut: bool


def claims(log: LogFile) -> bool:
    """Whether a file is a console log with a step of OpenRLHF."""
    return find_in_console(log, b"_lr", ROW, _holds_row)


def _holds_row(line: str) -> bool:
    if any(not OWN_KEYS.isdisjoint(row) for _, row, _ in _steps(line)):
        return True
    return any(
        _is_trained(bar) and any(k in bar.cells for k in BAR_RATES) for bar in find_bars(line)
    )


def read(logs: Sequence[LogFile], columns: Columns) -> Iterator[Logged]:
    """Read the one run of a console log."""
    (log,) = logs
    rows, episodes, batches = (TableBuilder(log.path, kept_keys(columns)) for _ in range(3))
    by_episode = Episodes(lambda line, step, cells: episodes.add(line, {STEP: step, **cells}))
    by_batch = Batches(lambda line, step, cells: batches.add(line, {STEP: step, **cells}))
    arguments = PrintedArguments()
    has_steps = False
    for number, text, is_long, *_ in log.lines(strict=False):
        arguments.feed(text)
        for step, cells, is_cut in _evaluations(text):
            rows.add(number, {STEP: step, **cells}, is_cut=is_cut)
        for step, cells, is_cut in _steps(text):
            rows.add(number, {STEP: step, **cells}, is_cut=is_cut or is_long)
            has_steps = True
        for bar in find_bars(text):
            arguments.see(bar)
            if not has_steps and _is_trained(bar):
                (by_episode if bar.is_episode else by_batch).see(number, bar)
    by_episode.close()
    by_batch.close()
    settings = arguments.settings
    if has_steps:
        yield Logged(rows.build(), framework="OpenRLHF", settings=settings)
    elif len(episodes):
        yield Logged(
            episodes.build(),
            framework="OpenRLHF",
            settings=settings,
            planned_steps=by_episode.planned,
            assumptions=(FEW_DIGITS, by_episode.remark),
        )
    elif len(batches):
        yield Logged(
            batches.build(),
            framework="OpenRLHF",
            settings=settings,
            assumptions=(FEW_DIGITS, COUNTED),
        )
    else:
        raise InputError(
            "the log has no step of OpenRLHF (Global step 1: {...}, or a bar with a reward)",
            path=log.path,
            advice="Give the log once the first batch of rollouts was trained on",
        )


def _steps(text: str) -> Iterator[Printed]:
    """Steps printed as dicts."""
    return _printed(STEP_DICT, text) if "lobal step " in text else iter(())


def _evaluations(text: str) -> Iterator[Printed]:
    return _printed(EVAL_DICT, text) if "Eval" in text else iter(())


def _printed(pattern: re.Pattern[str], text: str) -> Iterator[Printed]:
    for found in itertools.islice(pattern.finditer(text), MOST_IN_A_LINE):
        printed = next(find_dicts(text[found.end() : found.end() + LONGEST]), None)
        if printed is not None:
            yield Printed(int(found[found.lastindex or 1]), printed.cells, printed.is_cut)


def _is_trained(bar: Bar) -> bool:
    """Whether a bar tells of the policy; the critic has bars of its own."""
    return "reward" in bar.cells or "rm" in bar.cells


READER = Reader("OpenRLHF console log", claims, read, claim=Claim.LINE)
