"""Figure: ranks of the draws of the parameters that mixed worst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.model import RUN_EFFECTS, Convergence, Meta, Posterior, convergence
from advisor.reporting import style
from advisor.reporting.figure import FigureKind
from advisor.theory import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MAX_PANELS, BARS = 3, 20


@dataclass(frozen=True)
class Mixed:
    """One parameter: draws of shape (chains, draws), rank-normalised split R-hat, bulk ESS."""

    name: str
    draws: FloatArray
    rhat: float
    ess: float


@dataclass(frozen=True)
class Ranks:
    """The whole figure: the worst parameters, largest R-hat first, out of how many."""

    worst: tuple[Mixed, ...]
    parameters: int
    overall: Convergence  # of the sampler's own coordinates, which the gate judges

    @property
    def text(self) -> str:
        """What the figure shows, for those who do not see it."""
        listed = "; ".join(f"{one.name}: R-hat {one.rhat:.3f}" for one in self.worst)
        return f"Ranks of the draws by chain, of the parameters with the largest R-hat: {listed}."

    @property
    def note(self) -> str:
        """What the figure leaves out, if anything."""
        rest = self.parameters - len(self.worst)
        return (
            (f"{rest} parameters that mixed better not drawn. " if rest else "")
            + f"Over all coordinates of the sampler: R-hat {self.overall.rhat:.3f}, at least "
            f"{self.overall.ess:,.0f} effective draws, {self.overall.divergent_share:.2%} diverged."
        ).replace("%", " %")


def convergence_info(posterior: Posterior) -> Ranks:
    """Find the parameters that mixed worst."""
    flat = _scalars(posterior.draws, posterior.meta)
    with np.errstate(invalid="ignore", divide="ignore"):  # a chain that never moved
        found = convergence(flat)
    # Of a parameter that moved in no chain R-hat is not a number: the worst there is.
    order = sorted(flat, key=lambda name: -float(np.nan_to_num(found[name][0], nan=np.inf)))
    return Ranks(
        tuple(
            Mixed(name, flat[name], float(found[name][0]), float(found[name][1]))
            for name in order[:MAX_PANELS]
        ),
        len(flat),
        posterior.convergence,
    )


def _scalars(draws: Mapping[str, FloatArray], meta: Meta) -> dict[str, FloatArray]:
    """Every parameter alone, by a name that says of what it is; constants left out."""
    tasks = [style.shorten(task) for task in meta.tasks]
    groups = [" on ".join(style.shorten(part, 16) for part in pair[::-1]) for pair in meta.groups]
    runs = [style.shorten(run.id) for run in meta.runs]
    out: dict[str, FloatArray] = {}
    for name, values in draws.items():
        # Not sampled: the same as another parameter, or a constant.
        if name in ("start", "is_oscillator"):
            continue
        law, _, term = name.replace("_", " ").rpartition(".")
        title = f"{law}: {term}" if law else term
        if values.ndim == 2:
            out[title] = values
            continue
        per_task = name in ("headroom_logit", "log_slope", "log_onset")
        owners = tasks if per_task else runs if name in RUN_EFFECTS else groups
        for index, owner in enumerate(owners):
            label = f"{title}\n{owner}"
            # Two runs may be called the same where only their folders differ.
            label += f" ({index + 1})" if label in out else ""
            out[label] = values[..., index]
    return {label: values for label, values in out.items() if np.ptp(values) > 0}


def draw_convergence(info: Ranks) -> Figure:
    """Draw one panel per parameter: of each chain, how many draws each slice of the ranks has."""
    from scipy.stats import rankdata

    count = len(info.worst)
    figure = style.new_figure(3.1 * count + 0.3, 2.9)
    for axes, one in zip(figure.subplots(1, count, squeeze=False).flat, info.worst, strict=True):
        chains, draws = one.draws.shape
        edges = np.linspace(0, one.draws.size, BARS + 1)
        for chain, ranks in enumerate(np.reshape(rankdata(one.draws), (chains, draws))):
            height = np.histogram(ranks, edges)[0] / (2 * draws / BARS)
            color = style.CYCLE[chain % len(style.CYCLE)]
            look = {"bottom": chain, "align": "edge", "color": color, "alpha": 0.8}
            axes.bar(edges[:-1], height, edges[1], **look)
            axes.axhline(chain + 0.5, color=style.MUTED, linewidth=0.8)
        axes.set_yticks(range(chains), [str(1 + chain) for chain in range(chains)])
        name, _, owner = one.name.partition("\n")
        mixed = f"R-hat {one.rhat:.3f}, {one.ess:,.0f} effective draws"
        note = f"{style.shorten(owner, 36) or 'all pilots'}\n{mixed}"
        y = "chain" if axes is figure.axes[0] else ""
        style.tidy(axes, title=name, note=note, x="rank among all draws", y=y)
        axes.title.set_fontsize(style.LABEL)
    return figure


FIGURE = FigureKind(
    "convergence", lambda posterior, _: convergence_info(posterior), draw_convergence
)
