"""How figures and tables write learning rates, models and configurations."""

from __future__ import annotations

import re

from advisor.model import Meta
from advisor.runs import Settings


def scientific(value: float) -> str:
    """Write a learning rate shortly.

    Examples
    --------
    >>> scientific(0.0003), scientific(1.2e-3)
    ('3e-4', '1.2e-3')
    """
    lead, power = f"{value:.1e}".split("e")
    return f"{lead.removesuffix('.0')}e{int(power)}"


def quantity(value: float) -> str:
    """Write a price or a count: plainly where that is short.

    Examples
    --------
    >>> quantity(0.05), quantity(20000.0), quantity(3e-5), quantity(2e6)
    ('0.05', '20,000', '3e-5', '2e6')
    """
    if value and not 1e-4 <= abs(value) < 1e6:
        return scientific(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


ROLES = {"recommendation": "advised", "next_pilot": "best pilot", "infeasible": "safest found"}
"""Kind of answer -> what its settings are called."""


def role_of(kind: str, *, is_dead: bool) -> str:
    """What the settings of an answer are called; of dead pilots none is the best."""
    return "gentlest pilot" if kind == "next_pilot" and is_dead else ROLES[kind]


def share_text(share: float) -> str:
    """Write a share to the percent: ``64 %``."""
    return f"{100 * share:.0f} %"


def settings_label(settings: Settings) -> str:
    """Name a configuration by what the advice chooses: ``lr 3e-4, G 8, K 2``."""
    return (
        f"lr {scientific(settings.learning_rate)}, "
        f"G {settings.group_size}, K {settings.refresh_interval}"
    )


def shorten(name: str, limit: int = 26) -> str:
    """Last part of a path-like name, cut in the middle to ``limit`` characters.

    Examples
    --------
    >>> shorten("Qwen/Qwen2.5-7B-Instruct")
    'Qwen2.5-7B-Instruct'
    """
    name = re.sub(r"\s+", " ", name.rstrip("/").rsplit("/", 1)[-1]).strip()
    if len(name) <= limit:
        return name
    left = (limit - 1) // 2
    return f"{name[:left]}…{name[-(limit - 1 - left) :]}"


def most_piloted(meta: Meta, limit: int) -> list[tuple[str, str]]:
    """Pairs of task and model with most pilots, at most ``limit``, in the posterior's order."""
    pilots = [sum((run.task, run.model) == pair for run in meta.runs) for pair in meta.groups]
    first = sorted(range(len(pilots)), key=lambda index: -pilots[index])[:limit]
    return [meta.groups[index] for index in sorted(first)]


def left_out_note(pairs: int) -> str:
    """Say how many (task, model) pairs a figure has no room for."""
    if not pairs:
        return ""
    return f"{pairs} pair{'s' if pairs > 1 else ''} of model and task with fewer pilots not drawn."
