r"""What every log reader must do, as tests that the tests of a reader inherit.

::

    class TestMyReader(ReaderConformance):
        reader = my_reader.READER

        def write_sample(self, folder, rewards):
            path = folder / "train.mylog"
            path.write_text("".join(f"{n} {r}\\n" for n, r in enumerate(rewards, 1)))
            return path
"""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults.injuries import damaged

from advisor.errors import InputError
from advisor.runs import Columns, LogFile, Logged, Reader, keys, on_disk, open_archive, readers
from advisor.runs.logs.assemble import assemble

REWARDS = [round(0.8 - 0.6 * 0.9**n + 0.01 * (-1) ** n, 4) for n in range(30)]
"""A rising curve with noise, four digits each."""

NOTHING = (b"", b" \n\n", b"\0" * 64, b"\xff\xfe\xff", b"{", b"[]", b"PK\x03\x04", b"a,b\n1\n")

MOST_SECONDS = 20.0
"""Of processor time."""

MOST_MEMORY = 200 << 20


class LogFormat:
    """A format of the package, by how its name begins, asked about files on disk."""

    def __init__(self, name: str) -> None:
        (self.reader,) = (one for one in readers() if one.name.startswith(name))

    def claims(self, path: Path) -> bool:
        return bool(self.reader.claims(on_disk(path)))

    def group(self, path: Path) -> Path | None:
        assert self.reader.group is not None
        return self.reader.group(on_disk(path))

    def read(self, *paths: Path, columns: Mapping[str, str] | None = None) -> list[Logged]:
        return list(self.reader.read([on_disk(one) for one in paths], Columns(columns or {})))


class ReaderConformance:
    """Inherit, set ``reader``, and write ``write_sample``.

    Attributes
    ----------
    reader : Reader
        The reader under test.
    rounds : int
        Damaged files that are tried.
    """

    reader: Reader
    rounds: int = 150

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        """Write a log with one train reward a step (or refresh), from step 1 on, and name its file.

        The folder is empty; a log of several files may fill it.
        """
        raise NotImplementedError

    def test_claims_its_own(self, tmp_path: Path) -> None:
        """It claims its sample, and is the first of the package's readers to do so."""
        log = on_disk(self.write_sample(tmp_path, REWARDS))
        assert self.reader.claims(log)
        if self.reader in readers():
            assert next(r for r in readers() if r.claims(log)) is self.reader

    def test_claims_nothing_else(self, tmp_path: Path) -> None:
        """It claims no file that holds nothing, whatever its name."""
        sample = self.write_sample(tmp_path / _made(tmp_path, "s"), REWARDS)
        for number, content in enumerate(NOTHING):
            for name in ("notes.md", "readme.txt", "weights.bin", f"other{sample.suffix}"):
                path = tmp_path / _made(tmp_path, str(number)) / name
                path.write_bytes(content)
                if self.reader.claims(on_disk(path)):
                    _runs_or_error(self.reader, [on_disk(path)])

    def test_reads_rewards_and_steps(self, tmp_path: Path) -> None:
        """Rewards come back in order, at steps 1, 2, 3, ...: the file's, not always the same."""
        for name, rewards in (("a", REWARDS), ("b", [1 - value for value in REWARDS[:12]])):
            path = self.write_sample(tmp_path / _made(tmp_path, name), rewards)
            _check(self._read(on_disk(path)), rewards)

    def test_reads_other_rewards(self, tmp_path: Path) -> None:
        """Rewards that are negative, above one, or whole are read as they stand."""
        rewards = [-3.0, -1.5, 0.0, 2.0, 12.5, 11.0, 250.0]
        _check(self._read(on_disk(self.write_sample(tmp_path, rewards))), rewards)

    def test_gzip(self, tmp_path: Path) -> None:
        """A compressed log reads like the log, if it is a single file."""
        path = self.write_sample(tmp_path / _made(tmp_path, "s"), REWARDS)
        if self.reader.group is not None and self.reader.group(on_disk(path)) != path:
            return
        packed = path.with_name(path.name + ".gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        log = on_disk(packed)
        assert self.reader.claims(log)
        _check(self._read(log), REWARDS)

    def test_zip(self, tmp_path: Path) -> None:
        """A log in an archive reads like the log."""
        folder = tmp_path / _made(tmp_path, "s")
        path = self.write_sample(folder, REWARDS)
        archive = tmp_path / "logs.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(p for p in folder.rglob("*") if p.is_file()):
                packed.write(file, file.relative_to(folder))
        wanted = archive / path.relative_to(folder)
        log = next(member for member in open_archive(on_disk(archive)) if member.path == wanted)
        assert self.reader.claims(log)
        _check(self._read(log, open_archive(on_disk(archive))), REWARDS)

    @pytest.mark.evidence
    def test_truncated_anywhere(self, tmp_path: Path) -> None:
        """A log that was cut gives an `InputError`, or the rewards up to there."""
        path = self.write_sample(tmp_path, REWARDS[:8])
        whole = path.read_bytes()
        stride = max(1, len(whole) // 400)
        for size in range(0, len(whole), stride):
            path.write_bytes(whole[:size])
            for run in _runs_or_error(self.reader, self._group(on_disk(path))):
                reward = run.series.get("reward", np.zeros(0))
                read = reward[np.isfinite(reward)]
                whole_rows = read[: max(0, read.size - 1)]  # the last number may be cut itself
                assert np.isin(np.round(whole_rows, 3), np.round(REWARDS[:8], 3)).all()

    @pytest.mark.evidence
    def test_damaged(self, tmp_path: Path) -> None:
        """Changed, lost, doubled and foreign bytes give an `InputError` or a result, soon."""
        path = self.write_sample(tmp_path, REWARDS)
        whole = path.read_bytes()
        chance = random.Random(1)
        started = time.process_time()  # other work on the machine is not the reader's
        for _ in range(self.rounds):
            path.write_bytes(damaged(whole, chance, [whole]))
            _runs_or_error(self.reader, self._group(on_disk(path)))
        assert time.process_time() - started < MOST_SECONDS

    @pytest.mark.evidence
    def test_memory_is_bounded(self, tmp_path: Path) -> None:
        """Ten thousand rows cost far less than they would as Python objects."""
        path = self.write_sample(tmp_path, [(n * 37 % 1000) / 1000 for n in range(10_000)])
        tracemalloc.start()
        try:
            self._read(on_disk(path))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < MOST_MEMORY

    def _read(self, log: LogFile, others: Sequence[LogFile] = ()) -> list[Any]:
        return _runs(self.reader, self._group(log, others))

    def _group(self, log: LogFile, others: Sequence[LogFile] = ()) -> list[LogFile]:
        """The files that are read together with one."""
        group_of = self.reader.group
        if group_of is None or group_of(log) == log.path:
            return [log]
        group = group_of(log)
        nearby = others or [on_disk(p) for p in sorted(group.rglob("*")) if p.is_file()]
        return [file for file in nearby if self.reader.claims(file) and group_of(file) == group]


def _runs(reader: Reader, logs: Sequence[LogFile]) -> list[Any]:
    runs = []
    for logged in reader.read(logs, Columns()):
        framework = keys.choose_framework(logged.table.keys, logged.framework)
        runs += assemble(logged, framework, logs[0].path, Columns(), logged.facts)
    return runs


def _runs_or_error(reader: Reader, logs: Sequence[LogFile]) -> list[Any]:
    try:
        return _runs(reader, logs) if logs else []
    except InputError as error:
        complaint = error.problem
    assert complaint
    assert not complaint.endswith(".")
    return []


def _check(runs: Sequence[Any], rewards: Sequence[float]) -> None:
    assert len(runs) == 1
    np.testing.assert_allclose(runs[0].series["reward"], rewards, rtol=1e-3, atol=1e-6)
    assert runs[0].step.tolist() == list(range(1, len(rewards) + 1))


def _made(folder: Path, name: str) -> str:
    (folder / name).mkdir(exist_ok=True)
    return name
