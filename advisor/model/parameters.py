"""The parameters of the model: one row each, from which names, vectors, priors and pages follow.

To add one, write its row in parameters.toml, use it in `model.equations`, and give it a number with
a source in `priors/theory.toml` and `priors/uninformative.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from advisor.text import read_toml
from advisor.theory import FloatArray


class Parameter(NamedTuple):
    """One parameter of the model; its prior is normal on the scale on which it is sampled."""

    name: str  # as draws are called; a term of a law is `law.term`
    level: str  # what has a value of its own: "population", "task", or "group", a (task, model)
    scale: str  # what turns the sampled value into its natural scale: "as is", "exp", "logistic"
    label: str  # what it is on the natural scale, with its unit

    @property
    def entry(self) -> str:
        """Name of its entry in a prior preset."""
        return self.name.replace(".", "_")

    @property
    def law(self) -> str | None:
        """Law that it is a term of, if any."""
        return self.name.split(".")[0] if "." in self.name else None


PARAMETERS = tuple(
    Parameter(name, level, *row)
    for level, rows in read_toml(__file__, "parameters.toml").items()
    for name, row in rows.items()
)
"""In the order of the vector that the fast path samples."""

POPULATION = tuple(p.name for p in PARAMETERS if p.level == "population")
TASK_LEVELS = tuple(p.name for p in PARAMETERS if p.level == "task")
GROUP_LEVELS = tuple(p.name for p in PARAMETERS if p.level == "group")
LEVELS = TASK_LEVELS + GROUP_LEVELS
"""Names by level, in the order of the table; levels of tasks and groups are stacked in theirs."""

LAWS: dict[str, tuple[str, ...]] = {
    law: tuple(p.name.removeprefix(f"{law}.") for p in PARAMETERS if p.law == law)
    for law in dict.fromkeys(p.law for p in PARAMETERS if p.law is not None)
}
"""The linear laws and their terms."""

SCALARS = tuple(name for name in POPULATION if "." not in name)
"""What all runs share besides the laws."""

RUN_EFFECTS = ("run_offset.plateau", "run_offset.stiffness", "run_offset.shape")
"""Run effects in standard deviations: seed noise on plateau and stiffness, shape of the curve."""

GROUP_EFFECTS = ("group_offset.headroom", "group_offset.stiffness")
"""Effects of a (task, model) in standard deviations."""

STACKED = {
    "shared": (SCALARS, ("shared_term",)),
    **{
        law: (tuple(f"{law}.{t}" for t in terms if t != "level"), (f"{law}_term",))
        for law, terms in LAWS.items()
    },
    "group_offset": (GROUP_EFFECTS, ("group_effect", "group")),
    "run_offset": (RUN_EFFECTS, ("run_effect", "run")),
}
"""Variables of the model that stack several parameters: those, and the variable's dimensions."""

ALONE = {
    **{f"{law}_level": f"{law}.level" for law, terms in LAWS.items() if "level" in terms},
    **{name: name for name in LEVELS},
}
"""Variables of the model that hold one parameter, and its name."""

DIMS: dict[str, tuple[str, ...]] = {
    **{variable: dims for variable, (_, dims) in STACKED.items()},
    **dict.fromkeys(TASK_LEVELS, ("task",)),
    **dict.fromkeys((*GROUP_LEVELS, "start", "plateau", "stiffness", "collapse_rate"), ("group",)),
}
"""Dimensions of variables and Deterministics besides chain and draw; of others there are none."""


def model_variables(draws: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Draws as the free variables of the PyMC model."""
    out = {variable: draws[name] for variable, name in ALONE.items()}
    for variable, (names, _) in STACKED.items():
        out[variable] = np.stack([draws[name] for name in names], axis=2)
    return out


def named_draws(variables: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Undo :func:`model_variables`; further variables are taken over as they are."""
    out = {name: variables[variable] for variable, name in ALONE.items()}
    for variable, (names, _) in STACKED.items():
        for index, name in enumerate(names):
            out[name] = variables[variable][:, :, index]
    rest = set(variables) - set(ALONE) - set(STACKED)
    return out | {name: variables[name] for name in sorted(rest)}
