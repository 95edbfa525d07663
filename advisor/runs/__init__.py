"""What happened: logs and their trainers to pilot runs; `read_runs` and `inspect` read."""

from advisor.runs.logs.inspected import Inspection as Inspection
from advisor.runs.logs.read import inspect as inspect
from advisor.runs.logs.read import read_runs as read_runs
from advisor.runs.logs.sources import is_source as is_source
from advisor.runs.pilot_run import PilotRun as PilotRun
from advisor.runs.settings import PartialSettings as PartialSettings
from advisor.runs.settings import Settings as Settings
from advisor.runs.several_runs import mark_copies as mark_copies
from advisor.runs.trainers import Trainer as Trainer
from advisor.runs.trainers import keys as keys
