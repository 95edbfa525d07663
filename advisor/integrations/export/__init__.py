"""Write a recommendation as a trainer's configuration; one framework per file."""

from advisor.integrations.export.trl import trl_config, trl_yaml

__all__ = ["trl_config", "trl_yaml"]
