"""Defaults of a team in advisor.toml: found above, said, and never guessed at."""

from __future__ import annotations

import json

import pytest

from advisor.cli.app import main
from advisor.cli.team_defaults import Flag, find_defaults, read_defaults
from advisor.errors import InputError

FLAGS = {
    "advise": {
        "gpus": Flag("gpus", False),
        "level": Flag("level", False),
        "set": Flag("settings", True),
        "out": Flag("out", False),
    },
    "export": {"to": Flag("to", False)},
}


def read(tmp_path, text):
    file = tmp_path / "advisor.toml"
    file.write_text(text)
    return read_defaults(file, FLAGS)


def test_a_shared_table_and_one_of_a_command(tmp_path):
    found = read(tmp_path, '[defaults]\ngpus = 8\n[export]\nto = "verl"\n[advise]\nlevel = 0.95\n')
    assert found == {"advise": {"gpus": 8, "level": 0.95}, "export": {"to": "verl"}}
    assert read(tmp_path, "[advise]\nset = 'group_size=8'\n") == {
        "advise": {"settings": ["group_size=8"]}
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[defaults]\ngpu = 8\n", "'gpu' is no key of .defaults.*nearest is 'gpus'"),
        ("[advise]\nto = 'verl'\n", "'to' is no key of .advise."),
        ("[defaults]\nout = 'study'\n", "'out' is no key of .defaults."),
        ("[adviser]\ngpus = 8\n", "'adviser' is no table.*nearest is 'advise'"),
        ("gpus = 8\n", "'gpus' is no table"),
        ("[advise]\nlevel = [0.9, 0.95]\n", "is no value of a flag"),
        ("[advise\n", "it cannot be read"),
    ],
)
def test_what_is_not_known_is_named(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path, text)
    assert caught.value.path == str(tmp_path / "advisor.toml")


def test_the_nearest_above_counts(tmp_path):
    below = tmp_path / "team" / "runs"
    below.mkdir(parents=True)
    assert find_defaults(below) is None
    (tmp_path / "advisor.toml").write_text("")
    assert find_defaults(below) == tmp_path / "advisor.toml"
    (tmp_path / "team" / "advisor.toml").write_text("")
    assert find_defaults(below) == tmp_path / "team" / "advisor.toml"


def test_a_call_takes_them_says_so_and_outbids_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [{"step": n, "reward": 0.01 * n, "kl": 0.1} for n in range(1, 21)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "advisor.toml").write_text('[inspect]\nset = "group_size=8"\n')

    def inspected(*more):
        with pytest.raises(SystemExit):
            main(["inspect", "a.jsonl", *more])
        return capsys.readouterr()

    told = inspected()
    assert "advisor.toml: settings ['group_size=8']" in told.err
    (run,) = json.loads(inspected("--json").out)["runs"]
    assert run["hyperparameters"]["group_size"] == 8
    (run,) = json.loads(inspected("--json", "--set", "group_size=4").out)["runs"]
    assert run["hyperparameters"]["group_size"] == 4


def test_a_password_in_a_default_is_not_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "advisor.toml").write_text(
        '[advise]\nstorage = "postgresql://me:hunter2@db/studies"\n'
    )
    with pytest.raises(SystemExit):
        main(["advise", "nothing-there"])
    told = capsys.readouterr().err
    assert "Defaults of" in told
    assert "storage postgresql://me:***@db/studies" in told
    assert "hunter2" not in told


def test_a_table_for_commands_that_take_none_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "advisor.toml").write_text('[studies]\ntask = "sort"\n')
    with pytest.raises(SystemExit) as stopped:
        main(["studies", "list"])
    assert stopped.value.code == 2
    assert "'studies' is no table" in capsys.readouterr().err
