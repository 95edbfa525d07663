"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


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
