"""The package's version, read from its metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("grpo-advisor")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"
