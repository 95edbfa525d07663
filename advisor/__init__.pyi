"""Public names for type checkers; a test holds them to the table in ``__init__.py``."""

from collections.abc import Callable as _Callable
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from numpy.typing import ArrayLike as _ArrayLike
from pandas import DataFrame as _DataFrame

from advisor.advice import CostModel as CostModel
from advisor.advice import Recommendation as Recommendation
from advisor.advice import Request as Request
from advisor.advice import Search as Search
from advisor.advice import export as export
from advisor.advice import next_pilot as next_pilot
from advisor.advice.pilot_plan import PilotPlan as PilotPlan
from advisor.advice.pilot_plan import plan as plan
from advisor.advice.piloting import pilots as pilots
from advisor.backtesting import backtest as backtest
from advisor.common import Progress as _Progress
from advisor.diagnosis import diagnose as diagnose
from advisor.diagnosis import find_collapse as find_collapse
from advisor.errors import AdvisorError as AdvisorError
from advisor.errors import CannotTellError as CannotTellError
from advisor.errors import InputError as InputError
from advisor.errors import NotConvergedError as NotConvergedError
from advisor.errors import StudyError as StudyError
from advisor.findings.text import describe as describe
from advisor.forecast import Forecaster as Forecaster
from advisor.forecast import Target as Target
from advisor.forecast.fitting import fit as fit
from advisor.model.posterior import Posterior as Posterior
from advisor.model.priors import Priors as Priors
from advisor.model.priors import load_priors as load_priors
from advisor.model.priors import preset_names as preset_names
from advisor.model.pymc_model import build_model as build_model
from advisor.model.sampling import Sampling as Sampling
from advisor.model.sampling import cohort_of as cohort_of
from advisor.monitoring import Watch as Watch
from advisor.monitoring import watch as watch
from advisor.reporting import plot as plot
from advisor.reporting import report as report
from advisor.runs.logs import Inspection as Inspection
from advisor.runs.logs import demo_folder as demo_folder
from advisor.runs.logs import inspect as inspect
from advisor.runs.logs import read_runs as read_runs
from advisor.runs.pilot_run import PilotRun as PilotRun
from advisor.runs.settings import PartialSettings as PartialSettings
from advisor.runs.settings import Settings as Settings
from advisor.study.comparison import compare as compare
from advisor.study.comparison import table as table
from advisor.study.study import Study as Study

__version__: str

class _Fields(TypedDict, total=False):
    """Fields of `Request` and `Search`; a test holds them to these."""

    steps: int | None
    batches: int | None
    completions: float | None
    gpu_hours: float | None
    level: float
    to_reward: float | None
    to_share: float | None
    risk: float | None
    model: str | None
    task: str | None
    parameters: float | None
    start_reward: float | None
    gpus: int
    seconds_per_step: float | None
    devices: int
    group_sizes: tuple[int | float, ...] | None
    learning_rates: tuple[float, ...] | None
    choose_from: tuple[Settings, ...] | None
    indifference: float
    constraint: _Callable[[Any], Any] | None
    weigh_pilots: bool
    known: Mapping[str, float] | None
    projects: int
    trials: int
    storage: Any
    seed: int

def advise(
    posterior: Posterior,
    request: Request | None = ...,
    *,
    search: Search | None = ...,
    progress: bool | _Progress | None = ...,
    **fields: Unpack[_Fields],
) -> Recommendation: ...

class _Changes(TypedDict, total=False):
    """Settings that `what_if` changes; a test holds them to the code's."""

    learning_rate: _ArrayLike | None
    group_size: _ArrayLike | None
    minibatches_per_refresh: _ArrayLike | None
    epochs_per_refresh: _ArrayLike | None
    prompts_per_step: _ArrayLike | None
    steps: _ArrayLike | None

def what_if(
    posterior: Posterior, request: Request | None = ..., **changes: Unpack[_Changes]
) -> _DataFrame: ...
