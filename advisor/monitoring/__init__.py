"""A run while it goes on: forecasts, alarms, and whether to stop it; importing needs no PyMC."""

from advisor.monitoring.decision import Refitter, WatchReport, watch_decision, watch_report
from advisor.monitoring.following import Growth, follow, reader, signature_of
from advisor.monitoring.hook import RunWatch, load_posterior, watch
from advisor.monitoring.view import View
from advisor.monitoring.watcher import Update, Watch

__all__ = [
    "Growth",
    "Refitter",
    "RunWatch",
    "Update",
    "View",
    "Watch",
    "WatchReport",
    "follow",
    "load_posterior",
    "reader",
    "signature_of",
    "watch",
    "watch_decision",
    "watch_report",
]
