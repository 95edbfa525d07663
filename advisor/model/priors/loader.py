"""Load and validate a prior preset."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from advisor.errors import InputError

_PACKAGED = Path(__file__).parents[2] / "_data" / "priors"
_CHECKOUT = Path(__file__).parents[3] / "priors"

Positive = Annotated[float, Field(gt=0)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Annotated[str, Field(min_length=8)]


class NormalPrior(_Entry):
    """Normal distribution."""

    mean: float
    sd: Positive


class HalfNormalPrior(_Entry):
    """Half-normal distribution, for a quantity that cannot be negative."""

    sd: Positive


class FamilyPrior(_Entry):
    """How many runs each family of curves brings along, in favour of itself."""

    spectrum: Positive
    oscillator: Positive
    exponential: Positive
    hill: Positive
    stretched: Positive


class Priors(BaseModel):
    """Every prior of the model. Logs are natural; a step is an optimizer step.

    See the presets for what each number means and where it comes from. ``learned_from`` holds the
    fingerprints (`advisor.run.fingerprint`) of the runs that a preset learned from: on none of
    them may it be scored.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str
    evidence: str
    learned_from: tuple[str, ...] = ()

    start_logit: NormalPrior
    headroom_logit: NormalPrior
    log_slope: NormalPrior
    log_onset: NormalPrior
    eval_start_logit: NormalPrior
    log_eval_gain: NormalPrior
    rate_learning_rate: NormalPrior
    rate_group_size: NormalPrior
    rate_prompts_per_step: NormalPrior
    plateau_loss_level: NormalPrior
    plateau_loss_learning_rate: NormalPrior
    plateau_loss_batch: NormalPrior
    plateau_loss_refresh_interval: NormalPrior
    plateau_loss_size: NormalPrior
    hazard_level: NormalPrior
    hazard_learning_rate: NormalPrior
    hazard_batch: NormalPrior
    hazard_minibatches: NormalPrior
    hazard_epochs: NormalPrior
    hazard_size: NormalPrior
    log_dispersion: NormalPrior
    curvature_exponent: NormalPrior
    log_progress_limit: NormalPrior
    log_noise_scale: NormalPrior
    log_misfit: NormalPrior
    log_eval_noise: NormalPrior
    log_headroom_spread: NormalPrior
    log_model_spread: NormalPrior
    log_run_rate_spread: NormalPrior
    log_run_plateau_spread: NormalPrior
    log_run_shape_spread: NormalPrior
    log_run_loss_spread: NormalPrior
    uncorrected_log_odds: NormalPrior
    within_log_odds: NormalPrior
    log_stiffness_ratio: HalfNormalPrior
    family_runs: FamilyPrior


def _folder() -> Path:
    """Presets of the installed wheel, else those of the checkout."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def preset_names() -> list[str]:
    """Names of the presets that come with the package."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def load_priors(name: str | Path) -> Priors:
    """Load a preset by name, or a preset file by path.

    Parameters
    ----------
    name : str or Path
        A name out of :func:`preset_names`, or a path that ends in ``.toml``.

    Returns
    -------
    priors : Priors

    Raises
    ------
    InputError
        The preset does not exist, is no TOML, or lacks or mistypes an entry.
    """
    path = Path(name) if str(name).endswith(".toml") else _folder() / f"{name}.toml"
    if not path.is_file():
        raise InputError(
            f"there is no prior preset '{name}'",
            argument="priors",
            advice=f"Choose one of {', '.join(preset_names())}, or give a path to a .toml file",
        )
    try:
        return Priors.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the preset is not valid TOML ({error})", path=path) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"the preset entry is wrong: {first['msg']}",
            path=path,
            key=key,
            advice="Compare it with a preset that comes with the package",
        ) from error
