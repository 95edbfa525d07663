"""Where the best learning rate is looked for: cells of three models, fixed before they are trained.

A cell is everything but the rate and the seed. Each gets a ladder of six rates, half a decade
apart, with one seed, and a second seed at the three rates that end highest. Rates are constant, so
that the first 30 steps of a run of 60 are a run of 30: shorter horizons of a cell cost nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from run_plan import Configuration, Planned

CELL_SEED = 50
REPEATED_RATES = 3
SECOND_SEED = 2
LOWEST = {
    # model -> lowest rate of full fine-tuning, of adapters
    "smollm2": (1e-6, 1e-5),
    "gemma": (1e-7, 1e-6),
    "qwen": (3e-8, 3e-7),
}
"""Six half-decades upwards. Of full fine-tuning from scouting: 1e-5 is best for SmolLM2 and kills
Gemma, 3e-6 kills Qwen. Adapters stand ten times as much (Schulman et al., 2025)."""

DIGITS = (1.0, 3.0)
GROUPS = (4, 16, 32)
"""Group sizes at the best rate of a cell of 64 completions, beside its groups of eight."""

CONSTANT = {False: 1e-5, True: 1e-4}
"""Rate that the advisor names in 143 of 144 stored answers, by whether an adapter is trained."""

HORIZONS = (30, 60, 120, 300)


class Cell(NamedTuple):
    """What a ladder of rates is trained at.

    Attributes
    ----------
    model : str
        Key of the model; empty for a ladder of the first table.
    rank : int
        Of the adapter; 0 for full fine-tuning.
    completions : int
        Of an optimizer step, in groups of ``group``.
    steps : int
        Optimizer steps, the longest horizon.
    minibatches, epochs : int
        Their product is the refresh interval.
    """

    model: str
    task: str
    rank: int = 0
    completions: int = 16
    steps: int = 60
    minibatches: int = 1
    epochs: int = 1
    group: int = 8
    clip: float = 0.2

    @property
    def rates(self) -> list[float]:
        """Six rates over 2.5 decades."""
        lowest = LOWEST[self.model or "smollm2"][self.rank > 0]
        first = f"{lowest:e}".split("e")
        power, digit = int(first[1]), DIGITS.index(float(first[0]))
        return [float(f"{DIGITS[n % 2]:g}e{power + n // 2}") for n in range(digit, digit + 6)]

    @property
    def name(self) -> str:
        """Such as ``gemma largest full c16 K1 n60``."""
        adapter = f"lora{self.rank}" if self.rank else "full"
        refresh = self.minibatches * self.epochs
        words = [self.model, self.task, adapter, f"c{self.completions}", f"K{refresh}"]
        words += [f"G{self.group}"] if self.group != 8 else []
        words += [f"clip{self.clip:g}"] if self.clip != 0.2 else []
        return " ".join([*words, f"n{self.steps}"])

    def run(self, rate: float, seed: int) -> Planned:
        """The run of a rate and a seed."""
        adapter = {"lora": True, "rank": self.rank} if self.rank else {}
        own = Configuration(
            rate,
            self.group,
            self.minibatches,
            self.epochs,
            completions=self.completions,
            clip=self.clip,
            **adapter,
        )
        return Planned(self.task, own, self.steps, seed, self.model)

    def ladder(self) -> list[Planned]:
        """One run a rate; in an order by seed, so that a part of a ladder spans it."""
        runs = [self.run(rate, 1) for rate in self.rates]
        return sorted(runs, key=lambda one: random.Random(f"{CELL_SEED} {one.name}").random())

    def repeats(self, ends: Mapping[float, float]) -> list[Planned]:
        """Second seeds, at the rates that end highest once the ladder is trained."""
        if not set(self.rates) <= ends.keys():
            return []
        best = sorted(self.rates, key=lambda rate: -ends[rate])[:REPEATED_RATES]
        runs = [self.run(rate, SECOND_SEED) for rate in sorted(best)]
        if self == Cell(self.model, "largest", completions=64, steps=30):
            runs += [self._replace(group=group).run(best[0], 1) for group in GROUPS]
        return runs


CELLS = (
    *(Cell(model, "largest") for model in ("gemma", "smollm2")),
    *(Cell(model, "reversed", steps=30) for model in ("gemma", "smollm2")),
    *(Cell(model, "largest", 32, steps=30) for model in ("gemma", "smollm2")),
    Cell("qwen", "largest", steps=30),
    # Rollouts that serve sixteen steps are cheap.
    *(Cell(model, "largest", minibatches=8, epochs=2) for model in ("gemma", "smollm2")),
    *(
        Cell(model, "reversed", minibatches=8, epochs=2, group=4, clip=10.0)
        for model in ("gemma", "smollm2")
    ),
    *(Cell(model, "largest", completions=64, steps=30) for model in ("smollm2", "gemma")),
    *(Cell(model, "reversed", 4, steps=30) for model in ("gemma", "smollm2")),
    Cell("qwen", "largest", 32, steps=30),
    Cell("qwen", "three_sum", steps=30),
    Cell("qwen", "two_steps", 4, steps=30),
    # Added at 113 runs: three horizons of one ladder, and K 4 beside it.
    Cell("smollm2", "sorting", completions=8, steps=120, group=4),
    Cell("smollm2", "sorting", completions=8, minibatches=4, group=4),
    # From here on it is long or dear: for when the above is there.
    *(Cell(model, "sorting", steps=120, minibatches=4) for model in ("gemma", "smollm2")),
    Cell("gemma", "three_sum", completions=64, steps=120),
    Cell("qwen", "two_steps", completions=64),
    Cell("qwen", "three_sum", minibatches=4),
    Cell("smollm2", "second", completions=256, steps=30),
    Cell("gemma", "reversed", completions=256, steps=30),
    Cell("smollm2", "sorting", 4, steps=300),
    # Added at 232 runs: five times the usual steps without an adapter.
    Cell("smollm2", "sorting", steps=300),
)
"""In the order in which they are trained; the dearer of those planned come after the cheaper."""


EDGES: tuple[tuple[Cell, tuple[float, ...], tuple[int, ...]], ...] = (
    # Cell, rates, seeds.
    (Cell("smollm2", "reversed", completions=8, steps=30, group=4), (5e-5, 7e-5, 1e-4), (1, 2)),
    (Cell("gemma", "reversed", completions=8, steps=30, group=4), (1e-5, 2e-5, 3e-5), (1, 2)),
    (Cell("gemma", "largest", completions=8, steps=30, group=4), (1e-5, 2e-5, 3e-5), (1, 2)),
    (Cell("smollm2", "largest", completions=8, steps=30, group=4), (5e-5, 7e-5, 1e-4), (1, 2)),
    (Cell("smollm2", "reversed", completions=8, steps=60, group=4), (3e-5, 5e-5), (1, 3)),
    (Cell("gemma", "reversed", 4, completions=8, steps=60, group=4), (1e-3, 2e-3), (1, 2)),
    # Added when 12 of the above were trained: longer, and reused rollouts without clipping.
    (Cell("smollm2", "largest", completions=8, steps=60, group=4), (3e-5, 5e-5, 7e-5), (1, 3)),
    (Cell("gemma", "largest", completions=8, steps=60, group=4), (2e-5, 3e-5), (3, 4)),
    (
        Cell("smollm2", "reversed", completions=8, steps=60, epochs=4, group=4, clip=10.0),
        (3e-5, 5e-5),
        (1, 2),
    ),
    (
        Cell("gemma", "largest", completions=8, steps=60, epochs=4, group=4, clip=10.0),
        (1e-5, 2e-5),
        (1, 2),
    ),
    # Added at 113 runs, of which six died late: longer at rates that live for 30 steps.
    (Cell("smollm2", "second", completions=8, group=4), (3e-5, 5e-5, 7e-5, 1e-4), (1, 2)),
    (Cell("smollm2", "sorting", completions=8, steps=120, group=4), (5e-5, 7e-5), (1, 2)),
    (
        Cell("smollm2", "sorting", completions=8, epochs=4, group=4, clip=10.0),
        (3e-5, 5e-5, 1e-4),
        (1, 2),
    ),
    (Cell("smollm2", "reversed", completions=8, steps=120, group=4), (5e-5, 7e-5, 1e-4), (4, 5)),
    (Cell("smollm2", "largest", completions=8, steps=120, group=4), (3e-5, 5e-5, 7e-5), (4, 5)),
    (Cell("gemma", "reversed", completions=8, group=4), (1e-5, 2e-5), (3, 4)),
    (Cell("gemma", "largest", completions=8, group=4), (1e-5,), (3, 4)),
    (Cell("qwen", "three_sum", completions=8, steps=30, group=4), (2e-6, 3e-6, 5e-6, 1e-5), (1, 2)),
    (Cell("qwen", "largest", completions=8, steps=30, group=4), (2e-6, 3e-6, 5e-6, 1e-5), (1, 2)),
    # Added at 143 runs, of which 24 died: rollouts that serve four steps are cheap.
    (
        Cell("smollm2", "largest", completions=8, steps=30, epochs=4, group=4, clip=10.0),
        (3e-5, 5e-5, 7e-5, 1e-4),
        (5, 6),
    ),
    (
        Cell("gemma", "largest", completions=8, steps=30, epochs=4, group=4, clip=10.0),
        (1e-5, 2e-5, 3e-5),
        (5, 6),
    ),
)
"""Where runs are expected to die: at and above the edge of ladders, few completions in groups of
four, which strays more. Fixed before any was trained; no best rate is read from them.

A shorter run of the same rate and seed is the beginning of a longer one: seeds of lengths differ,
but for three pairs that were trained before this was seen."""


def planned(model: str) -> int:
    """Number of runs of a model: ladders, what follows them, edges."""
    cells = [cell for cell in CELLS if cell.model == model]
    follow = sum(len(cell.repeats(dict.fromkeys(cell.rates, 0.0))) for cell in cells)
    edges = sum(len(rates) * len(seeds) for cell, rates, seeds in EDGES if cell.model == model)
    return sum(len(cell.rates) for cell in cells) + follow + edges
