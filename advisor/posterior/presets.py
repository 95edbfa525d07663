"""Which preset fits runs for which none was named."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.runs.pilot_run import PilotRun

SMALL = 1e7
"""Parameters below which a model is small: the evidence of that preset ends there."""


def preset_for(runs: Sequence[PilotRun]) -> tuple[str, str]:
    """Preset whose evidence the runs lie in, and why.

    Parameters
    ----------
    runs : sequence of PilotRun

    Returns
    -------
    name, reason : str
        ``lora`` where every run trains an adapter, ``small_models`` where every model is small,
        else ``full_finetuning``.
    """
    if runs and all(run.hyperparameters.adapter == "lora" for run in runs):
        return "lora", "every run trains an adapter"
    if runs and all(run.parameters is not None and run.parameters < SMALL for run in runs):
        return "small_models", f"every model has fewer than {SMALL:.0e} parameters"
    return "full_finetuning", "neither adapters nor small models alone"
