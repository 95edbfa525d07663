"""What a result of a case study rests on: command, versions, hashes, seeds, checks.

python case_studies/manifest.py    # which results this state of the package made
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import advisor

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("numpy", "scipy", "pymc", "nutpie", "arviz", "optuna", "torch", "transformers", "trl")


def manifest(
    script: Path, *, seeds: object, checks: Mapping[str, bool], inputs: Iterable[Path] = ()
) -> dict[str, Any]:
    """Describe a result so that another machine can make it again and see what differs.

    Parameters
    ----------
    script : Path
        The study's ``run.py``; every Python file beside it is hashed too.
    seeds : object
        Seeds, or their number, as the study counts them.
    checks : mapping of str to bool
        What the study's answer claims, in a sentence each -> whether this result bears it out.
    inputs : iterable of Path
        Files that were read.

    Returns
    -------
    manifest : dict
        Hashes are the first 16 digits of SHA-256; ``advisor_code`` is over all of the package.
    """
    folder = script.resolve().parent
    return {
        "command": " ".join(
            [
                "python",
                folder.relative_to(ROOT).joinpath(script.name).as_posix(),
                *(_unplaced(one) for one in sys.argv[1:]),
            ]
        ),
        "python": platform.python_version(),
        "advisor": advisor.__version__,
        "advisor_code": _package(),
        "priors": _hash(sorted((ROOT / "priors").glob("*.toml"))),
        "libraries": {name: at for name in LIBRARIES if (at := _version(name)) is not None},
        "code": {path.name: _hash([path]) for path in sorted(folder.glob("*.py"))},
        "inputs": {_below(path, folder): _hash([path]) for path in sorted(inputs)},
        "seeds": seeds,
        "checks": dict(checks),
    }


def write_result(
    out: Path, document: Mapping[str, Any], script: Path, inputs: Iterable[Path]
) -> None:
    """Write a result of one seed that claims nothing by itself, with what it rests on."""
    made = manifest(script, seeds=1, checks={}, inputs=inputs)
    text = json.dumps({**document, "manifest": made}, indent=1)
    out.write_text(text + "\n", encoding="utf-8")


def made_by(folder: Path) -> dict[str, str]:
    """Name of every result of a folder -> whether this state of the package made it."""
    found = {}
    for path in sorted(folder.rglob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or "manifest" not in document:
            continue
        is_current = document["manifest"]["advisor_code"] == _package()
        found[path.relative_to(folder).as_posix()] = "this code" if is_current else "older code"
    return found


def _package() -> str:
    return _hash(sorted((ROOT / "advisor").rglob("*.py")))


def _below(path: Path, folder: Path) -> str:
    """A path in the study's folder: two tables of one name are two inputs."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _unplaced(argument: str) -> str:
    """An argument without the folder of the machine that it was given on."""
    return Path(argument).name if Path(argument).is_absolute() else argument


def _hash(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    print("\n".join(f"{name}: {code}" for name, code in made_by(Path(__file__).parent).items()))
