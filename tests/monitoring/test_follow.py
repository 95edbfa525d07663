"""Following a log: whole lines, restarts, rotation, silence; every reader, without sleeping."""

from __future__ import annotations

import errno
import json
import os
from functools import partial
from pathlib import Path

import pytest

from advisor.monitoring import Follower, follow, reader

SETTINGS = {"group_size": 8, "prompts_per_step": 16, "parameters": 1e5}


def row(step, reward=None):
    return {"step": step, "reward": round(0.1 + 0.01 * step if reward is None else reward, 4)}


def jsonl(steps, **given):
    return "".join(json.dumps(row(step, **given)) + "\n" for step in steps)


def comma_separated(steps, shown=""):
    return "".join(f"{one['step']},{one['reward']:{shown}}\n" for one in map(row, steps))


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, start):
        self.now = start

    def __call__(self):
        return self.now


@pytest.fixture
def log(tmp_path):
    return tmp_path / "run.jsonl"


def follower(path, **wanted):
    return Follower(path, reader(overrides=SETTINGS), **wanted)


def write(path, text, how="w"):
    """Write as a trainer does that opens its log anew: in place. Or that goes on: "a"."""
    with path.open(how) as stream:
        stream.write(text)


def test_rows_arrive_as_they_are_written(log):
    one = follower(log)
    assert "not there" in one.growth().said[0]
    assert one.growth() is None
    write(log, jsonl(range(1, 6)))
    assert one.growth().run.step.tolist() == [1, 2, 3, 4, 5]
    assert one.growth() is None
    write(log, jsonl([6]), "a")
    assert one.growth().run.step[-1] == 6


@pytest.mark.evidence
@pytest.mark.parametrize("name", ["run.jsonl", "run.csv"])
def test_a_number_that_is_half_written_waits_for_its_end(tmp_path, name):
    path = tmp_path / name
    whole = jsonl(range(1, 8))
    if name.endswith("csv"):
        whole = "step,reward\n" + comma_separated(range(1, 8))
    one = follower(path)
    for cut in range(len(whole) // 2, len(whole) + 1):
        write(path, whole[:cut])
        os.utime(path, ns=(cut * 10**9, cut * 10**9))
        found = one.growth()
        if found is None or found.run is None:
            continue
        for step, reward in zip(found.run.step, found.run.reward, strict=True):
            assert reward == row(int(step))["reward"]
    # The control: read as it stands, the cut file holds another number.
    write(path, whole[:-2])
    if name.endswith("csv"):
        last = reader(overrides=SETTINGS)(path)[0].reward[-1]
        assert last != row(7)["reward"]


@pytest.mark.parametrize("name", ["run.jsonl", "run.csv"])
@pytest.mark.parametrize("cut", [1, 3, 12, 20])
def test_a_line_written_in_part_is_no_restart(tmp_path, name, cut):
    path = tmp_path / name
    head = "step,reward\n" if name.endswith("csv") else ""
    text = partial(comma_separated, shown=".12f") if head else jsonl
    one = follower(path, silent_after=1e12)
    for last in (20, 22, 24, 27):
        whole = head + text(range(1, last + 1))
        for add in ("", text([last + 1])[:cut], text([last + 1, last + 2])[:-cut]):
            write(path, whole + add)
            os.utime(path, ns=((last * 9 + len(add)) * 10**9,) * 2)
            for _ in range(2):
                found = one.growth()
                assert found is None or not found.said, (last, add, found.said)
    # The control: a run that starts again is named though its last line is cut.
    write(path, head + text(range(1, 9)) + text([9])[:-cut])
    assert "started again" in one.growth().said[0]


def test_pipes_and_files_of_the_system_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/proc/self/status"), Path("/dev/null")):
        assert "name the file that is written" in follower(path).growth().said[0]


def test_what_is_not_logged_is_as_the_study_advised(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, jsonl(range(1, 8)))
    advised = {**SETTINGS, "learning_rate": 1e-6, "parameters": 1e9, "schedule": "constant"}
    (bare,), (run,) = reader()(path), reader(advised)(path)
    assert bare.needs
    assert not run.needs
    assert run.hyperparameters.group_size == SETTINGS["group_size"]
    assert any("as the study advised" in line and "group_size" in line for line in run.warnings)
    stated = reader(advised, overrides={"group_size": 64})(path)
    assert stated[0].hyperparameters.group_size == 64
    # A run at another rate is another run.
    write(path, "".join(json.dumps({**row(n), "learning_rate": 1e-4}) + "\n" for n in range(1, 8)))
    assert reader(advised)(path)[0].needs


def test_a_number_that_is_written_on_while_it_is_read_waits_too(tmp_path):
    path = tmp_path / "run.csv"
    whole = "step,reward\n" + "".join(f"{n},{row(n)['reward']}\n" for n in range(1, 8))
    write(path, whole[:-2])
    read = reader(overrides=SETTINGS)

    def read_late(path):
        found = read(path)
        if path.read_text() != whole:
            write(path, whole)
        return found

    one = Follower(path, read_late)
    assert one.growth().run.reward[-1] == row(6)["reward"]
    assert one.growth().run.reward[-1] == row(7)["reward"]


def test_a_last_line_without_an_end_is_taken_when_nothing_follows(log):
    one = follower(log)
    write(log, jsonl(range(1, 6)).rstrip("\n"))
    assert one.growth().run.step[-1] == 4
    assert one.growth().run.step[-1] == 5
    assert one.growth() is None


def test_what_cannot_be_read_for_a_moment_is_read_later(tmp_path):
    path = tmp_path / "trainer_state.json"
    state = json.dumps({"log_history": [row(step) for step in range(1, 9)], "max_steps": 20})
    one = follower(path)
    write(path, state + "\n")
    assert one.growth().run.step[-1] == 8
    write(path, state[: len(state) // 2])
    assert one.growth() is None
    assert one.growth() is None
    assert "what was read before is kept" in one.growth().said[0]
    assert one.growth() is None
    longer = json.dumps({"log_history": [row(step) for step in range(1, 12)], "max_steps": 20})
    write(path, longer + "\n")
    found = one.growth()
    assert found.run.step[-1] == 11
    assert found.said == ()


def test_a_resumed_run_repeats_steps(log):
    one = follower(log)
    write(log, jsonl(range(1, 21)))
    one.growth()
    write(log, jsonl(range(11, 15), reward=0.9), "a")
    found = one.growth()
    assert "went back from 20 to 14" in found.said[0]
    assert found.run.step.tolist() == list(range(1, 15))
    assert found.run.reward[-1] == 0.9
    assert found.run.reward[9] == row(10)["reward"]


def test_a_rotated_log_says_that_its_first_part_is_gone(log):
    one = follower(log)
    write(log, jsonl(range(1, 21)))
    one.growth()
    log.rename(log.with_suffix(".jsonl.1"))
    assert "not there" in one.growth().said[0]
    write(log, jsonl(range(21, 26)))
    found = one.growth()
    assert found.said == ("the log begins at step 21 now: the rows before count no more",)
    assert found.run.step.tolist() == list(range(21, 26))
    write(log, jsonl([26]), "a")
    found = one.growth()
    assert found.run.step.tolist() == list(range(21, 27))
    assert found.said == ()


def test_a_log_that_shrinks_to_a_new_start_is_a_new_run(log):
    one = follower(log)
    write(log, jsonl(range(1, 21)))
    one.growth()
    write(log, jsonl(range(1, 5)))
    found = one.growth()
    assert found.run.step.tolist() == [1, 2, 3, 4]
    assert "went back from 20 to 4" in found.said[0]


def test_a_log_written_anew_each_time_is_no_rotation(tmp_path):
    path = tmp_path / "run.jsonl"
    one = follower(path)
    for last in (5, 6, 7):
        fresh = tmp_path / "fresh"
        write(fresh, jsonl(range(1, last + 1)))
        fresh.replace(path)
        found = one.growth()
        assert found.run.step[-1] == last
        assert found.said == ()


def test_silence_is_said_once_and_ends(log):
    write(log, jsonl(range(1, 6)))
    clock = Clock(log.stat().st_mtime)
    one = follower(log, clock=clock, silent_after=100)
    one.growth()
    clock.now += 99
    assert one.growth() is None
    clock.now += 3600
    assert "62 minutes" in one.growth().said[0]
    assert one.growth() is None
    write(log, jsonl([6]), "a")
    assert one.growth().run.step[-1] == 6
    clock.now = log.stat().st_mtime + 200
    assert "nothing was logged" in one.growth().said[0]


def test_a_learning_rate_that_leaves_its_settings_is_no_error(tmp_path):
    path = tmp_path / "run.jsonl"
    rows = [{**row(step), "learning_rate": 1e-4 if step < 8 else 1e-3} for step in range(1, 13)]
    path.write_text("".join(json.dumps(line) + "\n" for line in rows))
    one = Follower(path, reader(overrides={**SETTINGS, "learning_rate": 1e-4}))
    run = one.growth().run
    assert run.hyperparameters.learning_rate == 1e-3
    assert any("peaks at" in line for line in run.warnings)


def test_the_iterator_looks_sleeps_and_looks_again(log):
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        write(log, jsonl(range(1, 4 + len(slept))))

    found = follow(log, reader(overrides=SETTINGS), every=7.0, sleep=sleep)
    assert "not there" in next(found).said[0]
    assert [next(found).run.step[-1] for _ in range(3)] == [4, 5, 6]
    assert set(slept) == {7.0}


def test_of_a_folder_with_several_runs_the_newest_is_followed(tmp_path):
    for name, last, when in (("a", 5, 200), ("b", 9, 100)):
        path = tmp_path / name / "run.jsonl"
        path.parent.mkdir()
        write(path, jsonl(range(1, last + 1), reward=0.1 * when / 100))
        os.utime(path, (when, when))
    assert follower(tmp_path).growth().run.step[-1] == 5


# What file systems do --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EACCES, errno.EIO, errno.ELOOP])
def test_log_that_cannot_be_looked_at_is_said_once_and_followed_on(log, monkeypatch, number):
    one = follower(log)
    write(log, jsonl(range(1, 6)))
    assert one.growth().run.step[-1] == 5

    def broken(path):
        raise OSError(number, os.strerror(number), str(path))

    with monkeypatch.context() as patched:
        patched.setattr("advisor.monitoring.following.signature_of", broken)
        assert os.strerror(number) in one.growth().said[0]
        assert one.growth() is None
    write(log, jsonl([6]), "a")
    assert one.growth().run.step[-1] == 6


def test_loop_of_links_becomes_a_log(log):
    log.symlink_to(log.name)
    one = follower(log)
    assert "cannot be read now" in one.growth().said[0]
    log.unlink()
    write(log, jsonl(range(1, 6)))
    assert one.growth().run.step[-1] == 5


def test_file_of_a_folder_that_goes_stale_does_not_hide_the_others(tmp_path):
    write(tmp_path / "run.jsonl", jsonl(range(1, 6)))
    (tmp_path / "loop").symlink_to("loop")
    one = follower(tmp_path)
    assert one.growth().run.step[-1] == 5


def test_reader_that_fails_does_not_end_the_watch(log):
    """A fault of ours in a reader: said, and the next look reads on."""
    faults = [ZeroDivisionError("ours"), IndexError("ours")]
    read = reader(overrides=SETTINGS)

    def faulty(path):
        if faults:
            raise faults.pop()
        return read(path)

    write(log, jsonl(range(1, 6)))
    one = Follower(log, faulty)
    assert "cannot be read now: ours" in one.growth().said[0]
    assert one.growth() is None
    assert one.growth().run.step[-1] == 5
