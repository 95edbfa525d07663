"""Bayesian hyperparameter advice for GRPO runs, from short pilot logs.

Importing the package is cheap: PyMC, ArviZ, Optuna and matplotlib load when they are first needed.
Type checkers read the same names from ``__init__.pyi``.
"""

import functools as _functools
import importlib as _importlib
from collections.abc import Callable as _Callable
from collections.abc import Iterable as _Iterable
from typing import Any as _Any

from advisor.common import VERSION as _VERSION

__version__ = _VERSION

_NAMES = {
    "advisor.advice": "CostModel Recommendation Request Search advise export next_pilot what_if",
    "advisor.advice.pilot_plan": "PilotPlan plan",
    "advisor.advice.piloting": "pilots",
    "advisor.backtesting": "backtest",
    "advisor.runs.diagnosis": "diagnose find_collapse",
    "advisor.errors": "AdvisorError CannotTellError InputError NotConvergedError StudyError",
    "advisor.findings.learned_priors": "learn_priors",
    "advisor.findings.text": "describe",
    "advisor.forecast.fitting": "fit",
    "advisor.forecast.forecaster": "Forecaster",
    "advisor.forecast.target": "Target",
    "advisor.runs.logs": "Inspection demo_folder inspect read_runs",
    "advisor.model.posterior": "Posterior",
    "advisor.model.priors": "Priors load_priors preset_names",
    "advisor.model.pymc_model": "build_model",
    "advisor.model.sampling": "Sampling cohort_of",
    "advisor.monitoring": "Watch watch",
    "advisor.reporting": "plot report",
    "advisor.runs.pilot_run": "PilotRun",
    "advisor.runs.settings": "PartialSettings Settings",
    "advisor.study.comparison": "compare table",
    "advisor.study.study": "Study",
}
"""Public names by the module that they come from."""

_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'advisor' has no attribute '{name}'")
    found = getattr(_importlib.import_module(_HOME[name]), name)
    return found if isinstance(found, type) else _guarded(found)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)


@_functools.cache
def _guarded(function: _Callable[..., _Any]) -> _Callable[..., _Any]:
    """Return a function that names the argument of another type where it fails for one."""

    @_functools.wraps(function)
    def guarded(*given: _Any, **named: _Any) -> _Any:
        try:
            return function(*given, **named)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            _refuse(function, given, named, error)
            raise

    guarded.__module__ = __name__  # where pickle looks for it
    return guarded


def _refuse(function: _Callable[..., _Any], given: _Any, named: _Any, error: Exception) -> None:
    """Raise an ``InputError`` where an argument of a call is of no type that its function takes."""
    import inspect
    import re

    from advisor.errors import InputError

    sources = {
        "Sequence[PilotRun]": "`advisor.read_runs(folder)` gives a list of them",
        "PilotRun": "Give one run at a time of the list that `advisor.read_runs(folder)` gives",
        "Posterior": "Give what `advisor.fit(runs)` returns, or the `posterior` of a saved study",
        "Recommendation": "Give what `advisor.advise(posterior)` returns",
    }
    try:
        arguments = inspect.signature(function).bind(*given, **named).arguments
    except TypeError:  # too few or too many: Python has named them
        return
    for name, value in arguments.items():
        wanted = function.__annotations__[name]
        public = {word: __getattr__(word) for word in re.findall(r"\w+", wanted) if word in _HOME}
        scope = vars(_importlib.import_module(function.__module__)) | public
        if not _fits(value, eval(wanted, scope)):
            kinds = {type(part).__name__ for part in value} if isinstance(value, list) else ()
            own = "None" if value is None else type(value).__name__
            own += f"[{', '.join(sorted(kinds))}]" if kinds else ""
            problem = f"{own} is given, where {wanted.replace(' | ', ' or ')} is expected"
            more = f"`help(advisor.{function.__name__})` tells more"
            how = next((sources[of] for of in sources if wanted.startswith(of)), more)
            raise InputError(problem, argument=name, advice=how) from error


def _fits(value: _Any, kind: _Any) -> bool:
    """Whether a value is of a type, as far as can be seen."""
    import types
    import typing

    kind = getattr(typing.get_origin(kind), "__value__", kind)  # numpy's alias, on newer Pythons
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return any(_fits(value, part) for part in parts)
    kind = {int: typing.SupportsIndex, float: typing.SupportsFloat}.get(kind, origin or kind)
    try:
        is_one = isinstance(value, kind)
        if is_one and len(parts) == 1 and issubclass(kind, _Iterable):
            return not isinstance(value, str) and all(_fits(part, parts[0]) for part in value)
    except TypeError:  # known to type checkers alone
        return True
    return is_one
