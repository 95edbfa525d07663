"""A run while it goes on: forecasts, alarms, and whether to stop it; importing needs no PyMC."""

from advisor.monitoring.decision import WatchDecision, WatchReport, watch_decision, watch_report
from advisor.monitoring.follow import Follower, Growth
from advisor.monitoring.hook import RunWatch, watch
from advisor.monitoring.update import Update
from advisor.monitoring.watcher import Watch

__all__ = [
    "Follower",
    "Growth",
    "RunWatch",
    "Update",
    "Watch",
    "WatchDecision",
    "WatchReport",
    "watch",
    "watch_decision",
    "watch_report",
]
