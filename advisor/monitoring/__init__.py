"""A run while it goes on: forecasts, alarms, and whether to stop it; importing needs no PyMC."""

from advisor.monitoring.decision import Refitter as Refitter
from advisor.monitoring.decision import WatchReport as WatchReport
from advisor.monitoring.decision import watch_decision as watch_decision
from advisor.monitoring.decision import watch_report as watch_report
from advisor.monitoring.following import Follower as Follower
from advisor.monitoring.following import Growth as Growth
from advisor.monitoring.following import follow as follow
from advisor.monitoring.following import reader as reader
from advisor.monitoring.hook import RunWatch as RunWatch
from advisor.monitoring.hook import load_posterior as load_posterior
from advisor.monitoring.hook import watch as watch
from advisor.monitoring.view import View as View
from advisor.monitoring.watcher import Update as Update
from advisor.monitoring.watcher import Watch as Watch
