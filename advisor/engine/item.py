"""One thing to be done, and what its result turns on."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from advisor.common import VERSION

HASH = 20
"""Characters of a content hash."""


class Item(NamedTuple):
    """One call of the function that is mapped.

    Attributes
    ----------
    name : str
        By which a failure is reported; unique in its list.
    payload : object
        Argument of the function; is pickled.
    marks : tuple of str
        Digests of all that the result turns on: data, priors, seed, settings. The task and the
        version of the package are added.
    """

    name: str
    payload: Any
    marks: tuple[str, ...]

    def content_hash(self, task: str) -> str:
        """Hash under which the result is kept: another version, prior or seed is another item."""
        return digest_of(task, VERSION, self.name, *self.marks)


def digest_of(*parts: Any) -> str:
    """Hash of values that JSON can hold.

    Parameters
    ----------
    *parts : object
        Text, numbers, lists and mappings of them.

    Returns
    -------
    digest : str
        20 characters.
    """
    told = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(told.encode()).hexdigest()[:HASH]
