"""The one seed that everything random starts from where none is given."""

from typing import Final

DEFAULT_SEED: Final = 1
