"""Write the versions of all that the package needs, as they are installed where this runs.

    python scripts/lock_environment.py docs/demo-environment-3.11.txt

Run it in the environment that printed docs/demo_output.txt; pip takes the file as constraints.
"""

from __future__ import annotations

import platform
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def dependencies() -> list[str]:
    """What the package needs, by its own file: the metadata of an editable install may be old."""
    told: list[str] = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    return told


def locked(lines: Iterable[str]) -> dict[str, str]:
    """Versions by name of what satisfies some requirements here, and of what that needs in turn.

    Parameters
    ----------
    lines : iterable of str
        Requirements; those whose markers are not met here are left out.

    Returns
    -------
    versions : dict of str to str
        Sorted by name.

    Raises
    ------
    SystemExit
        One is installed in another version than is asked for.
    """
    found: dict[str, str] = {}
    asked: list[tuple[str, str]] = [(line, "") for line in lines]
    seen = set(asked)
    while asked:
        line, extra = asked.pop()
        need = Requirement(line)
        if need.marker is not None and not need.marker.evaluate({"extra": extra}):
            continue
        here = distribution(need.name)
        if not need.specifier.contains(here.version, prereleases=True):
            raise SystemExit(f"{need.name} {here.version} is installed, but {line} is asked for")
        found[canonicalize_name(need.name)] = here.version
        for more in ((own, of) for own in here.requires or () for of in ("", *need.extras)):
            if more not in seen:
                seen.add(more)
                asked.append(more)
    return dict(sorted(found.items()))


def text(versions: dict[str, str]) -> str:
    """Constraints as pip reads them."""
    head = [
        f"# Versions that printed docs/demo_output.txt, on Python {platform.python_version()}.",
        "# Made by: python scripts/lock_environment.py docs/demo-environment-3.11.txt",
        "# Use:     pip install -c docs/demo-environment-3.11.txt -e .",
    ]
    return "\n".join([*head, *(f"{name}=={at}" for name, at in versions.items())]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(locked(dependencies())), encoding="utf-8")
