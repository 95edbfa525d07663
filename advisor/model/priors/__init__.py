"""Prior presets: TOML files in which every number names its source."""

from advisor.model.priors.loader import Priors, load_priors, preset_names

__all__ = ["Priors", "load_priors", "preset_names"]
