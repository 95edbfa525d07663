"""The package's version, read from its metadata, and the seed where none is given."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final

DEFAULT_SEED: Final = 1

try:
    VERSION = version("grpo-advisor")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"
