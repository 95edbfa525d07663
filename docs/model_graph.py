"""Draw docs/model_graph.svg from the model itself: needs the graphviz package and its dot."""

from __future__ import annotations

import warnings
from pathlib import Path

import advisor
from advisor.model.compat import import_arviz


def main() -> None:
    """Build the model of the demo's pilots and draw it."""
    import_arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymc

        cohort = advisor.cohort_of(advisor.read_runs(advisor.demo_folder()))
        model = advisor.build_model(cohort, "small_models")
        drawn = pymc.model_to_graphviz(model)
    # What is known of the runs would hide what is learned from them.
    known = [variable.name for variable in model.data_vars]
    drawn.body[:] = [line for line in drawn.body if not any(_names(line, name) for name in known)]
    drawn.graph_attr["rankdir"] = "LR"
    path = Path(__file__).with_name("model_graph")
    drawn.render(path, format="svg", cleanup=True)


def _names(line: str, variable: str) -> bool:
    """Whether a line of the drawing is a node, or an arrow from it."""
    words = line.split()
    return bool(words) and words[0] == variable


if __name__ == "__main__":
    main()
