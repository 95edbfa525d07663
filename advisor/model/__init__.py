"""The hierarchical model: its definition in PyMC, parameters, priors, fit and posterior."""
