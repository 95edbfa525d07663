"""What happened: logs and their trainers to pilot runs, and what is wrong with one."""

from advisor.runs.diagnosis import MODES, Card, Collapse, Diagnosis, diagnose
from advisor.runs.diagnosis.collapse import (
    collapse_onset,
    dead_from_the_start,
    find_any_fall,
    find_final_fall,
)
from advisor.runs.diagnosis.diagnose import (
    as_markdown,
    card_lines,
    diagnosis_json,
    printable,
    worst,
)
from advisor.runs.diagnosis.levels import (
    LEAST_ROWS,
    LOST_SHARE,
    Level,
    difference,
    ends,
    tamed,
    trailing_mean,
    window_rows,
)
from advisor.runs.logfiles.log_file import LogFile, on_disk, open_archive
from advisor.runs.logfiles.logged import Columns, Reader
from advisor.runs.logs import demo_runs
from advisor.runs.logs.assemble import assemble
from advisor.runs.logs.inspection import NO_LOG, as_json, explain, show
from advisor.runs.logs.located_run import RawRun
from advisor.runs.logs.read import Inspection, inspect, is_source, read_runs
from advisor.runs.logs.readers import known_formats, readers
from advisor.runs.pilot_run import (
    LEAST_REWARDS,
    SERIES,
    UNNAMED_MODEL,
    UNNAMED_TASK,
    PilotRun,
    fingerprint,
    mark_copies,
    parameters_from_name,
    run_digest,
)
from advisor.runs.readiness import (
    NONE_MOVED,
    WHY,
    needs,
    none_moved,
    questions,
    seconds_per_step,
)
from advisor.runs.settings import CARRIED, PartialSettings, Settings, checked_settings
from advisor.runs.trainers import setting_name
from advisor.runs.trainers.keys import choose_framework
from advisor.runs.trainers.registry import (
    asked_of,
    export_config,
    exports,
    find_trainer,
    paste_line,
    recipes,
)

__all__ = [
    "CARRIED",
    "LEAST_REWARDS",
    "LEAST_ROWS",
    "LOST_SHARE",
    "MODES",
    "NONE_MOVED",
    "NO_LOG",
    "SERIES",
    "UNNAMED_MODEL",
    "UNNAMED_TASK",
    "WHY",
    "Card",
    "Collapse",
    "Columns",
    "Diagnosis",
    "Inspection",
    "Level",
    "LogFile",
    "PartialSettings",
    "PilotRun",
    "RawRun",
    "Reader",
    "Settings",
    "as_json",
    "as_markdown",
    "asked_of",
    "assemble",
    "card_lines",
    "checked_settings",
    "choose_framework",
    "collapse_onset",
    "dead_from_the_start",
    "demo_runs",
    "diagnose",
    "diagnosis_json",
    "difference",
    "ends",
    "explain",
    "export_config",
    "exports",
    "find_any_fall",
    "find_final_fall",
    "find_trainer",
    "fingerprint",
    "inspect",
    "is_source",
    "known_formats",
    "mark_copies",
    "needs",
    "none_moved",
    "on_disk",
    "open_archive",
    "parameters_from_name",
    "paste_line",
    "printable",
    "questions",
    "read_runs",
    "readers",
    "recipes",
    "run_digest",
    "seconds_per_step",
    "setting_name",
    "show",
    "tamed",
    "trailing_mean",
    "window_rows",
    "worst",
]
