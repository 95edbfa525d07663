"""A run while it goes on: forecasts, alarms, and whether to stop it; importing needs no PyMC."""

from advisor.monitoring.decision import Advice, Look, decide, look
from advisor.monitoring.follow import Follower, Growth
from advisor.monitoring.hook import RunWatch, watch_run
from advisor.monitoring.update import Update
from advisor.monitoring.watch import Watch

__all__ = [
    "Advice",
    "Follower",
    "Growth",
    "Look",
    "RunWatch",
    "Update",
    "Watch",
    "decide",
    "look",
    "watch_run",
]
