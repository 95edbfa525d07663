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

# The table of one log.

MOST_TABLE_CELLS = 12_000_000
"""Numbers kept of one log (200 MB); the largest runs log 100 understood keys for 50,000 steps."""

MOST_STEPS = 1e8
"""Counts above it are times or tokens, not optimizer steps."""

# Consoles and notebooks.

LEAST_REPEATED_ROWS = 3
"""Rows, each printed equally often, from which on the log is one of several nodes."""

MOST_NOTEBOOK_BYTES = 48 << 20
"""Of a notebook; most of a large one are pictures, which cost no more once parsed."""

# Config files and settings.

MOST_CONFIG_BYTES = 1 << 20
"""Of a config file; longer ones hold data."""

MOST_CONFIG_TEXT_CHARACTERS = 500
"""Of a setting with text; longer ones are prompts."""

# JSON documents with runs inside.

MOST_JSON_OBJECTS = 500_000
"""Objects that are looked at."""

MOST_JSON_RUNS = 2_000
"""Runs in one document, most of which are evaluations."""

# Trackers.

MOST_PARQUET_BYTES_HELD = 256 << 20
"""Of a file in an archive: Parquet is read from its end, so it must be held as a whole."""


# Recovery of settings from metrics.

MOST_TRIALS_PER_ROW = 4_096
"""Completions or groups that a row may be said to average."""

LEAST_CLEAR_ROWS = 5
"""Rows from which a ratio of loss and KL is told."""

LEAST_SCHEDULE_ROWS = 4
"""Learning rates below which any schedule would fit."""

# What is shown.

MOST_UNREAD_SHOWN = 12
"""Unread files that are shown one by one; as JSON all are listed."""
