"""Drawing: ranks by chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.model.compat import draw_ranks
from advisor.reporting.convergence import Ranks
from advisor.reporting.drawing import style
from advisor.reporting.names import shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3

CHAINS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.VERMILLION)


def draw_convergence(info: Ranks) -> Figure:
    """Draw one panel per parameter, with ArviZ's rank plot."""
    count = len(info.worst)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure = style.new_figure(3.1 * columns + 0.3, 2.7 * rows + 0.2)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in panels[count:]:
        axes.remove()
    panels = panels[:count]
    chains = info.worst[0].draws.shape[0]
    colors = [CHAINS[chain % len(CHAINS)] for chain in range(chains)]
    x, y = draw_ranks(panels, [one.draws for one in info.worst], colors)
    for index, (axes, one) in enumerate(zip(panels, info.worst, strict=True)):
        name, _, owner = one.name.partition("\n")
        style.tidy(
            axes,
            title=name,
            note=f"{shorten(owner, 36) or 'all pilots'}\n"
            f"R-hat {one.rhat:.3f}, {one.ess:,.0f} effective draws",
            x=x if index + columns >= count else "",
            y=y if index % columns == 0 else "",
        )
        axes.title.set_fontsize(style.LABEL)
    return figure
