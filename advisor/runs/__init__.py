"""What happened: logs and their trainers to pilot runs, and what is wrong with one.

`read_runs` and `inspect` read, `diagnose` judges; the rest is asked of what these give and take.
"""

from advisor.runs.diagnosis import Collapse as Collapse
from advisor.runs.diagnosis import Diagnosis as Diagnosis
from advisor.runs.diagnosis import diagnose as diagnose
from advisor.runs.diagnosis.levels import Level as Level
from advisor.runs.logs.inspection import Inspection as Inspection
from advisor.runs.logs.read import inspect as inspect
from advisor.runs.logs.read import read_runs as read_runs
from advisor.runs.logs.sources import is_source as is_source
from advisor.runs.pilot_run import PilotRun as PilotRun
from advisor.runs.settings import PartialSettings as PartialSettings
from advisor.runs.settings import Settings as Settings
from advisor.runs.several_runs import mark_copies as mark_copies
from advisor.runs.trainers import Trainer as Trainer
