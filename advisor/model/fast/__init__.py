"""The model's log density as machine code, held to the definition in `model.pymc_model`."""
