"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent

# The same examples each time; neither deadline nor health check that a busy machine would break.
settings.register_profile(
    "advisor",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("advisor")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of logs that are not ours to copy; it stands beside the repository, or nowhere."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no shared data beside the repository ({folder})")
    return folder


@pytest.fixture(scope="session")
def real_logs(shared_data: Path) -> Path:
    folder = shared_data / "real_logs"
    if not folder.is_dir():
        pytest.skip(f"no public logs ({folder})")
    return folder


@pytest.fixture(scope="session")
def tiny_grpo(shared_data: Path) -> Path:
    folder = shared_data / "tiny_grpo"
    if not folder.is_dir():
        pytest.skip(f"no tables of tiny transformers ({folder})")
    return folder
