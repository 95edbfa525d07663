"""Settings from whatever lies beside a log."""

from __future__ import annotations

from advisor.runs.logfiles.configs.find import ConfigSource, settings_beside

__all__ = ["ConfigSource", "settings_beside"]
