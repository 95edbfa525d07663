"""A run while it goes on: forecasts, alarms, and whether to stop it; importing needs no PyMC."""

from advisor.watch.decision import Advice, Look, decide, look
from advisor.watch.follow import Follower, Growth, follow
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
    "follow",
    "look",
    "watch_run",
]
