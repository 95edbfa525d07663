"""Files and folders written whole or not at all, whoever is killed or full meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from advisor.common import (
    check_output,
    or_keep,
    owned,
    replacing,
    saving,
    standing,
    write_new,
    write_whole,
)
from advisor.errors import InputError, KeptElsewhereError

FULL = OSError(28, "No space left on device")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def failing(*given: object) -> None:
    raise FULL


def test_older_file_stands_until_the_new_one_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a" / "answer"
    write_whole(path, "old")
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert names(path.parent) == ["answer"]
    monkeypatch.undo()
    write_whole(path, b"new")
    assert path.read_text() == "new"


def test_device_is_written_to_and_not_replaced():
    write_whole(Path(os.devnull), "gone")
    assert not Path(os.devnull).is_file()


def test_new_file_does_not_take_the_place_of_another(tmp_path):
    path = tmp_path / "answer"
    write_new(path, b"one")
    with pytest.raises(FileExistsError):
        write_new(path, b"two")
    assert path.read_bytes() == b"one"
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "link", b"two")
    assert names(tmp_path) == ["answer", "link"]


# A result that cannot be written ---------------------------------------------------------------


def test_result_is_kept_in_a_second_place(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(KeptElsewhereError, match="Nothing is lost: it is in") as said:
        or_keep(
            lambda at: write_whole(at, "42"), tmp_path / "file" / "answer", "the answer", "--out"
        )
    assert said.value.kept.read_text() == "42"
    assert said.value.kept.parent.parent == tmp_path / "here"
    assert said.value.exit_code == 2


def test_nothing_is_left_where_no_place_takes_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", failing)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match="the answer cannot be written"):
        or_keep(lambda at: write_whole(at, "42"), tmp_path / "a" / "answer", "the answer", "--out")
    assert names(tmp_path) == ["a"]


# Before work -------------------------------------------------------------------------------------


def test_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "answer", tmp_path):
        with pytest.raises(InputError, match="the answer cannot be written") as said:
            check_output(path, "the answer", "--out")
        assert said.value.path == str(path)


def test_disk_without_room_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "ROOM", 1 << 60)
    with pytest.raises(InputError, match="No space left"):
        check_output(tmp_path / "answer", "the answer", "--out")
    monkeypatch.setattr(saving, "ROOM", 1)
    check_output(tmp_path / "answer", "the answer", "--out")


# Folders -----------------------------------------------------------------------------------------


def fill(folder: Path, text: str) -> None:
    with replacing(folder) as draft:
        (draft / "file").write_text(text)


def test_folder_is_replaced_whole(tmp_path):
    out = tmp_path / "study[1]"
    for text in ("old", "new"):
        fill(out, text)
        assert (out / "file").read_text() == text
        assert names(tmp_path) == ["study[1]"]

    def fail() -> None:
        with replacing(out) as draft:
            (draft / "file").write_text("half")
            raise FULL

    with pytest.raises(OSError, match="No space"):
        fail()
    assert (out / "file").read_text() == "new"
    assert names(tmp_path) == ["study[1]"]


KILLED = """
import os, signal, sys
from pathlib import Path
from advisor.common import saving
number, at = 0, int(sys.argv[2])
def counted(call):
    def run(*given, **more):
        global number
        number += 1
        if number == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **more)
    return run
Path.rename = counted(Path.rename)
saving.shutil.rmtree = counted(saving.shutil.rmtree)
with saving.replacing(Path(sys.argv[1])) as draft:
    (draft / "file").write_text("new")
print("done", number)
"""


@pytest.mark.evidence
def test_killed_at_any_rename_or_removal_a_folder_stands(tmp_path):
    """At each point a killed process leaves the old or the new, and the next one sweeps."""
    out = tmp_path / "study"
    killed = 0
    for at in range(1, 8):
        fill(out, "old")
        asked = [sys.executable, "-c", KILLED, str(out), str(at)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        found = (standing(out) / "file").read_text()
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr
            assert found == "new"
            break
        killed += 1
        assert found in ("old", "new")
        fill(out, "next")
        assert names(tmp_path) == ["study"]
        assert (out / "file").read_text() == "next"
    assert killed >= 2


def test_second_writer_waits_and_is_told_who_writes(tmp_path):
    path = tmp_path / "study"
    code = (
        "import sys\nfrom pathlib import Path\nfrom advisor.common.saving import owned\n"
        "with owned(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None

        def say(line: str) -> None:
            said.append(line)
            holder.stdin.close()  # now the first may end

        holder.stdout.readline()
        with owned(path, say):
            assert holder.wait() == 0
    (line,) = said
    assert line.startswith(f"process {holder.pid} on ")
    assert names(tmp_path) == []


def test_writer_that_does_not_end_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "WAIT", 0.2)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with owned(tmp_path / "study"):
            held.set()
            done.wait(20)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(20)
    try:
        with pytest.raises(OSError, match=f"process {os.getpid()} on .* does not end"):
            fill(tmp_path / "study", "mine")
    finally:
        done.set()
        other.join()


def test_a_writer_that_ends_while_it_is_asked_for_its_name_is_waited_for(tmp_path, monkeypatch):
    held, said = threading.Event(), []

    def hold() -> None:
        with replacing(tmp_path / "study") as draft:
            (draft / "file").write_text("theirs")
            held.set()
            done.wait(20)

    def gone(*_: object) -> str:
        done.set()
        raise FileNotFoundError

    done = threading.Event()
    other = threading.Thread(target=hold)
    other.start()
    held.wait(20)
    monkeypatch.setattr(Path, "read_text", gone)
    with replacing(tmp_path / "study", said.append) as draft:
        (draft / "file").write_text("mine")
    other.join()
    monkeypatch.undo()
    assert said == ["another process is writing there: waiting for it"]
    assert (tmp_path / "study" / "file").read_text() == "mine"


def test_many_writers_all_end_and_the_last_stands(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "WAIT", 1e9)  # a busy disk is no writer that does not end
    out, failed = tmp_path / "study", []

    def write(text: str) -> None:
        try:
            fill(out, text)
        except Exception as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(str(number),)) for number in range(16)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failed
    assert (out / "file").read_text() in {str(number) for number in range(16)}
    assert names(tmp_path) == ["study"]
