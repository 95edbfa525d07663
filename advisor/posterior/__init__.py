"""What the pilots say: the hierarchical model, its fit, its draws; importing needs no PyMC."""

from advisor.posterior.fitting import Sampling, fit
from advisor.posterior.forecast import Forecaster, Target
from advisor.posterior.posterior import Convergence, Posterior

__all__ = ["Convergence", "Forecaster", "Posterior", "Sampling", "Target", "fit"]
