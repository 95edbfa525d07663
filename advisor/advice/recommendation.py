"""The answer: what to run, how sure that is, and what it rests on."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from advisor.advice.answer_fields import Alternative, AnswerFields, NextPilot
from advisor.advice.wording import details_text, in_trainer_names, percent, summary_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TITLES", "Alternative", "NextPilot", "Recommendation"]

TITLES = {
    "recommendation": "Recommended configuration",
    "next_pilot": "Run one more pilot first",
    "infeasible": "No feasible configuration",
}
"""What an answer is headed by."""


class Recommendation(AnswerFields):
    """What the advisor says, as numbers, table and text; its fields are those of `AnswerFields`."""

    @property
    def table(self) -> pd.DataFrame:
        """The advised configuration beside trade-offs and recipes."""
        import pandas as pd

        own = {"recommendation": "advised", "next_pilot": "piloted", "infeasible": "nearest"}
        rows = [
            (own[self.kind], self.settings, self.reward.mean, self.stability, self.cost),
            *(
                (other.name, other.settings, other.reward, other.stability, other.cost)
                for other in (
                    *self.alternatives,
                    *self.equal_completions,
                    self.best_piloted,
                    *self.recipes,
                )
            ),
        ]
        return pd.DataFrame(
            {
                "learning rate": [s.learning_rate for _, s, _, _, _ in rows],
                "group size": [s.group_size for _, s, _, _, _ in rows],
                "prompts per step": [s.prompts_per_step for _, s, _, _, _ in rows],
                "mini-batches": [s.minibatches_per_refresh for _, s, _, _, _ in rows],
                "epochs": [s.epochs_per_refresh for _, s, _, _, _ in rows],
                "steps": [cost.steps for *_, cost in rows],
                "reward at the last step": [reward for _, _, reward, _, _ in rows],
                "P(stable)": [stability.probability for _, _, _, stability, _ in rows],
                "completions": [cost.completions for *_, cost in rows],
                "GPU-hours": [
                    math.nan if cost.gpu_hours is None else cost.gpu_hours for *_, cost in rows
                ],
            },
            index=pd.Index([name for name, *_ in rows], name="configuration"),
        )

    @property
    def summary(self) -> str:
        """The answer as a person would write it; its first line can be pasted into a config."""
        return summary_text(self)

    @property
    def text(self) -> str:
        """The answer, and what stands behind it."""
        return f"{self.summary}\n\n{details_text(self)}"

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=2)

    def __repr__(self) -> str:
        """Kind of answer, target, reward and P(stable), and a line to paste."""
        return (
            f"Recommendation({self.kind} for {self.target.model} on {self.target.task}, "
            f"{self.steps} steps: {self.measure} {self.reward.mean:.3f}, P(stable) "
            f"{percent(self.stability.probability)})\n"
            f"{in_trainer_names(self.settings, self.trainer)}"
        )

    def __str__(self) -> str:
        """The answer in full."""
        return self.text

    def _repr_html_(self) -> str:
        """Answer and table, as notebooks show them."""
        from advisor.common import heading, paragraph, table, whole

        frame = self.table
        rows = []
        for name, values in zip(frame.index, frame.itertuples(index=False), strict=True):
            told = dict(zip(frame.columns, values, strict=True))
            # A probability never rounds to certainty.
            rows.append([name, *(told | {"P(stable)": percent(told["P(stable)"])}).values()])
        first, _, rest = self.summary.partition("\n")
        return whole(
            heading(TITLES[self.kind]),
            heading(first),
            paragraph(rest.strip()),
            table([str(frame.index.name), *map(str, frame.columns)], rows),
        )
