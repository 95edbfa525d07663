"""A run while it goes on: forecasts, alarms, and whether to stop it; importing needs no PyMC."""

from advisor.watch.decision import Advice, Look, decide, look
from advisor.watch.follow import Follower, Growth
from advisor.watch.hook import RunWatch, watch_run
from advisor.watch.update import Update
from advisor.watch.watch import Watch

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
