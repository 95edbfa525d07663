"""What happened: logs and their trainers to pilot runs; `read_runs` and `inspect` read."""

# What a trainer or a format that is written elsewhere is made of.
from advisor.runs.logfiles.log_file import LogFile as LogFile
from advisor.runs.logfiles.log_file import on_disk as on_disk
from advisor.runs.logfiles.log_file import open_archive as open_archive
from advisor.runs.logfiles.logged import Claim as Claim
from advisor.runs.logfiles.logged import Columns as Columns
from advisor.runs.logfiles.logged import Logged as Logged
from advisor.runs.logfiles.logged import Reader as Reader
from advisor.runs.logfiles.logged import Table as Table
from advisor.runs.logfiles.logged import TableBuilder as TableBuilder
from advisor.runs.logfiles.logged import is_of_system as is_of_system
from advisor.runs.logs.inspected import Inspection as Inspection
from advisor.runs.logs.read import inspect as inspect
from advisor.runs.logs.read import read_runs as read_runs
from advisor.runs.logs.readers import readers as readers
from advisor.runs.logs.sources import is_source as is_source
from advisor.runs.pilot_run import PilotRun as PilotRun
from advisor.runs.settings import PartialSettings as PartialSettings
from advisor.runs.settings import Settings as Settings
from advisor.runs.several_runs import mark_copies as mark_copies
from advisor.runs.trainers import Derived as Derived
from advisor.runs.trainers import Export as Export
from advisor.runs.trainers import KeyTable as KeyTable
from advisor.runs.trainers import Trainer as Trainer
from advisor.runs.trainers import keys as keys
from advisor.runs.trainers import register as register
from advisor.runs.trainers import unregister as unregister
from advisor.runs.trainers.derived import SettingsExtractor as SettingsExtractor
from advisor.runs.trainers.export import Launch as Launch
