"""Every limit of what is read from files, well above what real logs need, and its patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# Bytes of files and streams.
HEAD_BYTES = 65_536  # beginning of a file by which its format is known, at first
BLOCK_BYTES = 1 << 20  # what is read of a stream at once
SEARCHED_BYTES = 8 << 20  # preamble in which a log's first row is sought
MOST_DOCUMENT_BYTES = 16 << 20  # parsed as a whole; its objects take twenty times as much memory
MOST_LIST_BYTES = 64 << 20  # a list of logged rows, as trainers write it
MOST_NOTEBOOK_BYTES = 48 << 20  # mostly pictures, which cost no more once parsed
MOST_CONFIG_BYTES = 1 << 20  # longer config files hold data
MOST_UNPACKED_BYTES = 4 << 30  # of one compressed log
MOST_UNPACKED_PER_PACKED_BYTE = 200  # logs reach 30, bombs 1,000 and more
UNCHECKED_UNPACKED_BYTES = 64 << 20  # up to here any compression ratio is allowed
MOST_MEMBERS = 50_000  # of an archive
MOST_FOLDERS_DEEP = 100  # of a log below what is named

# Texts and objects.
LONGEST_LINE = 65_536  # characters that are looked at of a line that shows some sign
LONGEST_PAIRS = 4_000  # the same of a line of pairs
LATEST_COUNTER = 300  # within which its counter is: before it are only words of loggers
MOST_TAGS = 1_000  # runs that the lines of one console name
MOST_LINE_CHARACTERS = 1 << 20  # what follows is dropped, and the line counts as cut
MOST_CONFIG_TEXT_CHARACTERS = 500  # settings with longer texts are prompts
MOST_CONFIG_LEVELS = 50  # of a YAML document
MOST_YAML_VALUES = 100_000  # of a YAML document once its aliases are written out
MOST_TOML_DOTS = 1_000  # of a line of TOML
MOST_JSON_OBJECTS = 500_000  # looked at in one document
MOST_JSON_RUNS = 2_000  # in one document, most of which are evaluations

# The table of one log.
MOST_TABLE_CELLS = 30_000_000  # 500 MB, and a row as much as 30; large runs log 100 x 50,000
MOST_STEPS = 1e8  # larger counts are times or tokens, not optimizer steps
LEAST_REPEATED_ROWS = 3  # each printed equally often: the log is one of several nodes

# Recovery of settings from metrics.
MOST_TRIALS_PER_ROW = 4_096  # completions or groups that a row may be said to average
LEAST_CLEAR_ROWS = 5  # rows that establish a ratio of loss and KL
LEAST_SCHEDULE_ROWS = 4  # learning rates below which any schedule would fit


def compiled(written: Mapping[str, str | Sequence[str]]) -> Mapping[str, re.Pattern[Any]]:
    """Patterns by name; ``<<name>>`` is one before it, and a name in ``_bytes`` is one of bytes."""
    whole: dict[str, str] = {}
    for key, parts in written.items():
        whole[key] = re.sub("<<(.+?)>>", lambda found: whole[found[1]], "".join(parts))
    return {k: re.compile(t.encode() if k.endswith("_bytes") else t) for k, t in whole.items()}
