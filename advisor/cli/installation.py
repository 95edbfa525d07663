"""What is installed and what will sample, from metadata of the packages: none is imported."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from advisor._version import VERSION
from advisor.errors import InputError
from advisor.model.fast.code_cache import check_writable, code_folder, code_name, read_code

DISTRIBUTION = "grpo-advisor"

ALSO_SHOWN = ("pytensor",)
"""Packages that come with others and decide numbers or speed."""

EXTRAS = {
    "trainer": (("torch",), "--sampler gp, and training the tiny transformers of case_studies"),
    "trl": (("trl",), "watching a run from within TRL (AdvisorCallback)"),
    "postgres": (("sqlalchemy", "psycopg"), "--storage postgresql://..."),
    "dask": (("distributed",), "--engine dask://HOST:PORT"),
    "ray": (("ray",), "--engine ray://HOST:PORT"),
    "wandb": (("wandb",), "wandb:ENTITY/PROJECT in place of logs"),
    "mlflow": (("mlflow-skinny",), "mlflow:EXPERIMENT in place of logs"),
    "trackio": (("trackio",), "trackio:PROJECT in place of logs"),
}
"""Optional extras: what has to be there, and what it enables."""

COMPILED = ("log_density", "_expand")
"""Functions that the sampler calls: where both are compiled, nothing is left to compile."""


@dataclass(frozen=True)
class Package:
    """A package that a fit needs; `version` is None where it is missing."""

    name: str
    version: str | None
    wanted: str
    is_fit: bool


@dataclass(frozen=True)
class Extra:
    """An optional extra: versions of its packages, and what they enable."""

    name: str
    versions: dict[str, str | None]
    enables: str
    is_there: bool


@dataclass(frozen=True)
class Cache:
    """The folder of compiled machine code, and what other versions left beside it, in bytes."""

    folder: str
    bytes: int
    is_warm: bool
    is_writable: bool
    other_folders: int
    other_bytes: int


@dataclass(frozen=True)
class Health:
    """Everything that ``advisor doctor`` says; `problems` keep a fit from running."""

    advisor: str
    python: str
    platform: str
    packages: tuple[Package, ...]
    backend: str
    cache: Cache
    extras: tuple[Extra, ...]
    cpus: int
    problems: tuple[str, ...]

    @property
    def can_fit(self) -> bool:
        """Whether nothing keeps a fit from running."""
        return not self.problems

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps({"can_fit": self.can_fit, **asdict(self)}, indent=2)


def examine() -> Health:
    """Look at the installation; an ``InputError`` where not even versions can be compared."""
    if _version("packaging") is None:
        raise InputError(
            "versions cannot be compared without the package 'packaging'",
            advice="Run: pip install packaging",
        )
    python = platform.python_version()
    wanted_python, wanted = _requirements()
    packages = tuple(_package(name, versions) for name, versions in wanted.items())
    known = {package.name: package.version or "(missing)" for package in packages}
    problems = (
        []
        if _holds(python, wanted_python)
        else [f"Python {python} is not supported. Make an environment with Python {wanted_python}."]
    )
    problems += [_complaint(package) for package in packages if not package.is_fit]
    folder = code_folder()
    is_writable = True
    try:
        check_writable(folder)
    except InputError:
        is_writable = False
    return Health(
        advisor=VERSION,
        python=python,
        platform=f"{platform.system()} {platform.machine()}",
        packages=packages,
        backend=(
            f"nutpie {known.get('nutpie', '(missing)')} (NUTS) on machine code of the advisor's "
            f"own, compiled by numba {known.get('numba', '(missing)')}"
        ),
        cache=_cache(folder, _version("numba"), is_writable=is_writable),
        extras=tuple(_extra(name) for name in EXTRAS),
        cpus=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        problems=tuple(problems),
    )


def is_compiled(folder: Path, numba: str | None) -> bool:
    """Whether this version of numba will find its machine code for this Python in the folder."""
    version = "".join(platform.python_version_tuple()[:2])
    return all(
        any(
            read_code(file) is not None
            for file in folder.glob(code_name(f"density.{name}", version, numba, "*"))
        )
        for name in COMPILED
    )


def _requirements() -> tuple[str, dict[str, str]]:
    """Python and packages that the installed advisor asks for, with their versions."""
    from packaging.requirements import Requirement

    try:
        declared = metadata.metadata(DISTRIBUTION)
    except metadata.PackageNotFoundError:  # run from a checkout: what is there must do
        return "", dict.fromkeys(("numba", "numpy", "nutpie", "optuna", "arviz", "pymc"), "")
    wanted: dict[str, str] = {}
    for line in metadata.requires(DISTRIBUTION) or ():
        asked = Requirement(line)
        if asked.marker is None or asked.marker.evaluate({"extra": ""}):
            both = [wanted.get(asked.name, ""), str(asked.specifier)]
            wanted[asked.name] = ",".join(part for part in both if part)
    return declared["Requires-Python"] or "", wanted | dict.fromkeys(ALSO_SHOWN, "")


def _holds(version: str, wanted: str) -> bool:
    """Whether a version lies in the range that is wanted."""
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version, prereleases=True)


def _version(name: str) -> str | None:
    """Installed version of a distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _package(name: str, wanted: str) -> Package:
    """Compare what is installed with what is wanted."""
    version = _version(name)
    return Package(name, version, wanted, version is not None and _holds(version, wanted))


def _complaint(package: Package) -> str:
    """Say what is wrong with a package, and what to run."""
    state = "is missing" if package.version is None else f"{package.version} will not do"
    return f"{package.name} {state}. Run: pip install '{package.name}{package.wanted}'"


def _extra(name: str) -> Extra:
    """Look for the packages of an extra."""
    packages, enables = EXTRAS[name]
    versions = {package: _version(package) for package in packages}
    return Extra(name, versions, enables, None not in versions.values())


def _cache(folder: Path, numba: str | None, *, is_writable: bool) -> Cache:
    """Measure the folder of machine code and those beside it."""
    try:
        others = [path for path in folder.parent.iterdir() if path.is_dir() and path != folder]
    except OSError:
        others = []
    return Cache(
        folder=str(folder),
        bytes=_bytes(folder),
        is_warm=is_compiled(folder, numba),
        is_writable=is_writable,
        other_folders=len(others),
        other_bytes=sum(map(_bytes, others)),
    )


def _bytes(folder: Path) -> int:
    """Size of what a folder holds; a file that goes meanwhile counts as nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total
