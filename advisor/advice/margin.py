"""How near a run that is there stands to its refresh limit, under a posterior."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.advice.stability import stiffness_left
from advisor.posterior import Forecaster, Posterior, Target
from advisor.runs.pilot_run import REQUIRED, PilotRun

FloatArray = npt.NDArray[np.float64]


def refresh_margin(posterior: Posterior, run: PilotRun) -> FloatArray | None:
    """Stiffness of the stiffest mode over the largest that the run's refresh schedule stands.

    Parameters
    ----------
    posterior : Posterior
    run : PilotRun

    Returns
    -------
    margin : ndarray of shape (draws,) or None
        The refresh map diverges at 1 and above (theory section 4, arXiv:2606.30789). None where the
        posterior holds no pilot of the run's model and task, or a setting is not known.
    """
    group = (run.task or "", run.model or "")
    if group not in posterior.meta.groups:
        return None
    if any(getattr(run.hyperparameters, name) is None for name in REQUIRED):
        return None
    size = posterior.meta.group_parameters[posterior.meta.groups.index(group)]
    forecaster = Forecaster(posterior, Target(group[0], group[1], size))
    settings, _ = run.hyperparameters.completed()
    ratio = np.exp(forecaster.log_stiffness_ratio)
    return np.asarray(stiffness_left(forecaster, settings) * ratio)
