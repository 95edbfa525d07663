"""Every limit of what is read from files: how much, how long, how deep, and why.

Limits keep a hostile or broken file from costing minutes or gigabytes; each is set well above what
real logs need. Modules use them as ``limits.NAME``, so that a test can change one here. Thresholds
of inference (what counts as chance, as a copy, as one ratio) stand with the method that they tune.
"""

from __future__ import annotations

# Bytes of files and streams.

HEAD_BYTES = 65_536
"""Beginning of a file that its format is told from, at first."""

BLOCK_BYTES = 1 << 20
"""What is read of a stream at once."""

SEARCHED_BYTES = 8 << 20
"""Preamble, or beginning of a large document, in which a log's first row is sought."""

MOST_DOCUMENT_BYTES = 16 << 20
"""A document that must be parsed as a whole; its objects take twenty times as much memory."""

MOST_LIST_BYTES = 64 << 20
"""A list of logged rows, as trainers write it."""

MOST_LINE_CHARACTERS = 1 << 20
"""Of a line of text; what follows is dropped and the line counts as cut."""

MOST_UNPACKED_BYTES = 4 << 30
"""What one compressed log may unpack to."""

MOST_UNPACKED_PER_PACKED_BYTE = 200
"""Compression ratio above ``UNCHECKED_UNPACKED_BYTES``; logs reach 30, bombs 1,000 and more."""

UNCHECKED_UNPACKED_BYTES = 64 << 20
"""Unpacked size up to which any compression ratio is allowed."""

MOST_ARCHIVE_FILES = 20_000
"""Files in one archive."""

FOLDERS_ABOVE_A_LOG = 2
"""Folders above a log given by name in which its sidecar is sought (checkpoint, run, sweep)."""

# The table of one log.

MOST_TABLE_CELLS = 12_000_000
"""Numbers kept of one log (200 MB); the largest runs log 100 understood keys for 50,000 steps."""

MOST_TABLE_ROWS = 1_000_000
"""Rows of one log."""

MOST_TABLE_KEYS = 50_000
"""Distinct keys of one log."""

MOST_CELL_CHARACTERS = 60
"""Kept of a cell with text: enough for the name of a run or of a kind of rows."""

MOST_TEXTS_PER_COLUMN = 10_000
"""Cells with text that are kept of one key."""

MOST_CELL_LEVELS = 3
"""Levels of nested objects that are read as ``outer/inner``."""

MOST_RUNS_PER_FILE = 1_000
"""Runs in one file of a tracker."""

MOST_STEPS = 1e8
"""Counts above it are times or tokens, not optimizer steps."""

LEAST_EVEN_STEPS = 3
"""Steps that must have their rows in equal number, so that chance is ruled out."""

# Consoles and notebooks.

CONSOLE_OVERLAP_BYTES = 16_384
"""Shared by the blocks of a search, so that no row is lost between two."""

MOST_REFUSED_PLACES = 200
"""Places that look like a row and are none, after which the search ends."""

MOST_DICT_LEVELS = 8
"""Levels of a printed dict whose innermost parts are taken out one by one."""

LEAST_REPEATED_ROWS = 3
"""Rows, each printed equally often, from which on the log is one of several nodes."""

MOST_NOTEBOOK_BYTES = 48 << 20
"""Of a notebook; most of a large one are pictures, which cost no more once parsed."""

MOST_TABLES_PER_CELL = 50
"""Trainings of which one cell shows the progress."""

NOTEBOOK_OVERLAP_BYTES = 200
"""Shared by the blocks in which a reward is sought: the longest match."""

MOST_CODE_CELL_CHARACTERS = 100_000
"""Of a notebook's code cell; longer ones hold data."""

MOST_EXPRESSION_LEVELS = 20
"""Depth of an expression that is evaluated as a setting."""

MOST_CODE_NUMBER = 1e15
"""Size of a number that an expression may reach."""

# Config files and settings.

MOST_CONFIG_BYTES = 1 << 20
"""Of a config file; longer ones hold data."""

MOST_TOML_BYTES = 1 << 17
"""Of a TOML config: the standard library's parser is slow."""

MOST_TOML_DOTS_PER_LINE = 100
"""The parser needs memory in the square of a dotted key's length."""

MOST_CONFIG_LEVELS = 50
"""Depth of a config document."""

MOST_YAML_NODES = 100_000
"""Nodes of a YAML document once its aliases are written out."""

MOST_SETTING_LEVELS = 20
"""Depth down to which settings are flattened with dots."""

MOST_LIST_SETTING_VALUES = 16
"""Entries of a list that is a setting, or values of one flag; longer lists are data."""

MOST_CONFIG_TEXT_CHARACTERS = 500
"""Of a setting with text; longer ones are prompts."""

MOST_NAMESPACE_CHARACTERS = 20_000
"""Of an ``argparse`` namespace that was logged as one text."""

MOST_CONFIG_INTEGER = 2**53
"""Size up to which every whole number is exact as a float."""

MOST_CHAINED_REFERENCES = 10
"""References (``${name}``) that lead to one another."""

MOST_TRACKED_SETTINGS = 5_000
"""Settings of one run that a tracker keeps."""

MOST_TRACKED_SETTING_LEVELS = 8
"""Depth of the settings that a tracker keeps."""

MOST_SETTING_CHARACTERS = 2_000
"""Of a setting with text that a tracker keeps."""

# JSON documents with runs inside.

MOST_JSON_LEVELS = 12
"""Depth at which runs are sought."""

MOST_JSON_OBJECTS = 500_000
"""Objects that are looked at."""

MOST_JSON_RUNS = 2_000
"""Runs in one document, most of which are evaluations."""

MOST_JSON_SETTINGS = 500
"""Settings that are inherited from the objects around a run."""

JSON_ROWS_AT_ONCE = 64
"""Rows of a list that are handed over at once: few, for one may be large."""

# Trackers.

ROWS_BEFORE_A_COUNTER_IS_CHOSEN = 200
"""Rows of a run after which it is settled which counter it logs."""

LEAST_COUNTER_GAPS = 50
"""Gaps between rows from which on a counter may look thinned out."""

MOST_CHART_CELLS = 2_000_000
"""Cells of all W&B charts of a folder; they are held as text while they are put together."""

MOST_WANDB_RECORD_BYTES = 4 << 20
"""Of a record of W&B's own file; longer ones hold tables and pictures."""

MOST_MLFLOW_POINTS = 3_000_000
"""Values of one MLflow run."""

MOST_MLFLOW_PARAMETER_BYTES = 8_000
"""Of one parameter: MLflow itself allows 6,000 characters."""

SQLITE_SCHEMA_BYTES = 1 << 20
"""Beginning of a database in which the definitions of its first tables stand."""

MOST_PARQUET_FOOTER_BYTES = 16 << 20
"""Of the description at a Parquet file's end."""

MOST_PARQUET_BYTES_HELD = 256 << 20
"""Of a file in an archive: Parquet is read from its end, so it must be held as a whole."""

MOST_PARQUET_BYTES_CLAIMED = 64 << 20
"""Of a file in an archive that is unpacked to tell whether it is a history."""

MOST_PARQUET_ROWS = 20_000_000
"""Rows of one Parquet file, before those without a reward are passed over."""

MOST_PARQUET_GROUP_BYTES = 4 << 30
"""What one row group may unpack to; only columns that are read are unpacked."""

PARQUET_BATCH_ROWS = 4_096
"""Rows that are turned into Python objects at once."""

MOST_EVENT_BYTES = 1 << 16
"""Of a TensorBoard record that may hold scalars or settings; images and graphs are longer."""


MOST_EVENT_TEXTS = 100
"""Texts of an event file that may hold settings."""

MOST_HPARAMS_LEVELS = 6
"""Depth of the settings that an event file holds as JSON."""

MOST_DAMAGED_PLACES_SHOWN = 3
"""Damaged places of an event file of which a warning says where they are."""

# Recovery of settings from metrics.

MOST_ROWS_FINGERPRINTED = 2_000
"""Rows that are looked at; more only repeat what they say."""

MOST_TRIALS_PER_ROW = 4_096
"""Completions or groups that a row may be said to average."""

LEAST_SHARES = 20
"""Values between 0 and 1 from which their smallest step is told; fewer may all be of groups
without spread."""

LEAST_CLEAR_ROWS = 5
"""Rows from which a ratio of loss and KL is told."""

MOST_RATIOS_TRIED = 50
"""Ratios tried as the one that rows share, those in the densest places."""

LEAST_SCHEDULE_ROWS = 4
"""Learning rates below which any schedule would fit."""

# What is shown.

MOST_UNREAD_SHOWN = 12
"""Unread files that are shown one by one; as JSON all are listed."""
