"""Every bad file is one InputError that names the file, the place and what to do."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest
import yaml
from processor_time import at_most

from advisor.errors import InputError
from advisor.runs import inspect, on_disk, open_archive, read_runs

TABLE = "step,reward\n1,0.1\n2,0.2\n3,0.3\n"
TABLES = yaml.safe_load(Path(__file__).with_name("errors.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *TABLES["logs"],
        ("a.jsonl", b"\xef\xbb\xbf", r"the file is empty"),
        ("trainer_state.json", b"\x80\x02\0\1", r"the file is binary.*trainer_state.json"),
        ("a.csv", b"reward\n\xff\xfe\xfd", r"the file is binary"),
        ("training_args.bin", b"\x80\x02\0", r"the file is binary"),
        ("trainer_state.json", "[" * 100_000, r"this JSON cannot be read"),
        ("trainer_state.json", '{"log_history": ' + "9" * 5000 + "}", r"this JSON cannot be read"),
        ("a.jsonl", bytes(range(256)), r"the file is binary.*CSV or JSONL in UTF-8"),
        ("a.jsonl", b"\x80\xab\xfe" * 99, r"the file is binary.*CSV or JSONL in UTF-8"),
        ("a.csv", TABLE.encode("utf-16-le"), r"odd encoding.*CSV or JSONL in UTF-8"),
        ("a.csv", TABLE.encode("utf-16")[:-1], r"odd encoding.*CSV or JSONL in UTF-8"),
        ("a.csv", (TABLE + "4,ä\n").encode("latin-1"), r"odd encoding.*CSV or JSONL in UTF-8"),
        ("a.csv", "x" * 9999 + ",y\n1,2\n", r"key 'reward': no key holds.*xxx\.\.\., y\)"),
    ],
)
def test_one_error_that_helps(write, name, content, message):
    path = write(name, content)
    with pytest.raises(InputError, match=message) as caught:
        read_runs(path)
    assert caught.value.path == str(path)
    assert str(path) in str(caught.value)
    assert caught.value.advice
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(path))


def test_missing_paths(tmp_path):
    for path in (tmp_path / "no.csv", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="no such file or folder") as caught:
            read_runs(path)
        assert caught.value.path == str(path)
    with pytest.raises(InputError, match="no path was given"):
        read_runs([])
    with pytest.raises(InputError, match="no path was given"):
        read_runs([""])


def test_folders_without_logs(write, tmp_path):
    with pytest.raises(InputError, match=r"no run was found\. Give a folder that holds a trainer"):
        read_runs(tmp_path)
    write("config.json", {"lr": 1})
    with pytest.raises(InputError, match=r"config.json: settings, not a log"):
        read_runs(tmp_path)
    write("config.json", b"\x80\0")
    write("pilots.toml", "[defaults]\n")
    with pytest.raises(InputError, match=r"\(config.json: .*; pilots.toml: .*\)\. Give") as caught:
        read_runs(tmp_path)
    assert caught.value.path == str(tmp_path)


def test_a_broken_log_among_good_ones_is_named_and_stops_nothing(write, write_state, tmp_path):
    write_state()
    bad = write("y/trainer_state.json", "{")
    (run,) = read_runs(tmp_path)
    assert any(str(bad) in line and "not valid JSON" in line for line in run.left_out)
    with pytest.raises(InputError, match="not valid JSON") as caught:
        read_runs([tmp_path, bad])
    assert caught.value.path == str(bad)


def _offsets(size: int) -> list[int]:
    return sorted({round(size * part / 39) for part in range(40)})


@pytest.mark.parametrize("kind", ["trainer_state.json", "rows.jsonl", "runs.jsonl", "rows.csv"])
def test_cut_files_are_read_or_refused(write, make_rows, make_state, kind):
    rows = make_rows(list(range(1, 31)))
    lists = [{"id": f"r{n}", "reward": [0.1, 0.2, 0.3], "entropy": [1, 2, 3]} for n in range(4)]
    content = {"trainer_state.json": make_state(rows), "rows.jsonl": rows, "runs.jsonl": lists}
    if kind == "rows.csv":
        lines = [",".join(rows[0]), *(",".join(str(v) for v in row.values()) for row in rows)]
        whole = write(kind, "\n".join(lines) + "\n").read_bytes()
    else:
        whole = write(kind, content[kind]).read_bytes()
    results, errors = 0, []
    for offset in _offsets(len(whole)):
        path = write(kind, whole[:offset])
        try:
            results += bool(read_runs(path))
        except InputError as error:
            errors.append(error)
    assert all(error.path == str(path) and error.advice for error in errors)
    assert results >= 1
    if kind in ("rows.jsonl", "rows.csv"):
        assert results > 30  # a log that is being written can be read


def test_a_sidecar_that_names_a_path_of_any_length_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "pilots.toml").write_text(f'[[run]]\npath = "{"a" * 5000}.csv"\ngroup_size = 8\n')
    with pytest.raises(InputError, match=r"no log is 'aaa") as raised:
        read_runs(tmp_path)
    assert raised.value.row == 1


def test_an_archive_is_listed_and_opened_once_for_all_of_its_members(tmp_path, monkeypatch):
    target = tmp_path / "many.zip"
    rows = "\n".join(json.dumps({"step": at, "reward": at / 20}) for at in range(1, 8))
    with zipfile.ZipFile(target, "w") as packed:
        for number in range(20):
            packed.writestr(f"runs/{number}/log.jsonl", rows.replace("}", f', "n": {number}}}'))
    opened = []
    whole = zipfile.ZipFile

    def counted(*arguments, **keywords):
        opened.append(arguments)
        return whole(*arguments, **keywords)

    monkeypatch.setattr(zipfile, "ZipFile", counted)
    assert len(inspect([target]).runs) == 20
    assert len(opened) <= 3
    # What lies in a folder of it is what was written there.
    member = open_archive(on_disk(target))[0]
    assert member.names_in(target / "runs") == {str(number) for number in range(20)}
    assert member.names_in(target / "elsewhere") == frozenset()


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([f"{n}.jsonl" for n in range(50_001)], "holds 50,001 files"),
        (["a/" * 3000 + "x.jsonl"], "up to 3,000 deep"),
    ],
)
def test_an_archive_of_too_many_or_too_deep_files_is_refused_at_once(
    names, says, tmp_path, monkeypatch
):
    target = tmp_path / "hostile.zip"
    members = [zipfile.ZipInfo(name) for name in names]
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr("x.jsonl", TABLE)
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda _: members)
    with at_most(1), pytest.raises(InputError, match=says):
        read_runs(target)


def test_folders_without_end_are_refused(tmp_path):
    (tmp_path / "/".join(["a"] * 150)).mkdir(parents=True)
    with pytest.raises(InputError, match="more than 100 deep"):
        inspect(tmp_path)


def test_a_table_of_too_many_rows_is_refused_before_it_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("advisor.runs.logfiles.limits.limits.most_table_cells", 3000)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"step,reward\n" + b"1,0.5\n" * 1000))
    with pytest.raises(InputError, match="more than 3,000 numbers, each row as 30"):
        read_runs(path)


def test_a_study_is_no_log_and_what_lies_in_it_is_none_of_the_logs_around_it(tmp_path):
    study = tmp_path / "advisor-study"
    study.mkdir()
    for name in ("manifest.json", "recommendation.json", "posterior.nc"):
        (study / name).write_text('[{"step": 1, "reward": 0.1}, {"step": 2, "reward": 0.3}]')
    with pytest.raises(InputError, match="the folder is a study") as raised:
        inspect(study)
    assert f"advisor show {study}" in str(raised.value.advice)
    (tmp_path / "a.csv").write_text(TABLE)
    found = inspect(tmp_path)
    assert [run.id for run in found.runs] == ["a"]
    assert not found.unread


def test_an_archive_whose_member_has_a_damaged_name(tmp_path):
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        rows = "".join(f'{{"step": {n}, "reward": 0.{n}}}\n' for n in range(1, 9))
        archive.writestr("\u00e9.jsonl", rows)
    # In front of the member; the index at the end keeps its name.
    path.write_bytes(path.read_bytes().replace(b"\xc3\xa9", b"\xc3\x28", 1))
    with pytest.raises(InputError, match="cannot be read"):
        read_runs(path)
