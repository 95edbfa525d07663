"""Settings from files beside a log: which are found, which apply, and what a bad one costs."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from processor_time import at_most

from advisor.runs import on_disk, open_archive
from advisor.runs.logfiles.config_files import (
    ConfigSource,
    literal,
    parse_command_line,
    parse_overrides,
)
from advisor.runs.logfiles.configs import settings_beside

Writer = Callable[..., Path]
LOG = b'{"step": 1, "reward": 0.5}\n'


def alone(folder: Path) -> int:
    return 1


def beside(log: Path, top: Path, shared_by: Callable[[Path], int] = alone) -> list[ConfigSource]:
    return settings_beside(on_disk(log), top, shared_by)


def only(sources: list[ConfigSource]) -> ConfigSource:
    assert len(sources) == 1, sources
    return sources[0]


ENTRIES = yaml.safe_load(Path(__file__).with_name("configs.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("title", ENTRIES)
def test_what_is_found(title: str, write: Writer, tmp_path: Path) -> None:
    entry = ENTRIES[title]
    log = write(entry["log"], LOG)
    for name, content in entry["files"].items():
        write(name, content)
    shared = entry.get("shared", {})
    sources = beside(
        log,
        tmp_path / entry.get("top", "."),
        lambda folder: shared.get(folder.relative_to(tmp_path).as_posix(), 9 if shared else 1),
    )
    found = {one.path.relative_to(tmp_path).as_posix(): one for one in sources}
    assert [*found] == [path for path, *_ in entry["found"]]
    wanted = {path: (settings, *note) for path, settings, *note in entry["found"]}
    assert {path: dict(one.settings) for path, one in found.items()} == {
        path: settings for path, (settings, *_) in wanted.items()
    }
    for path, (_, *note) in wanted.items():
        assert "\n" not in found[path].note
        assert note[0] in found[path].note if note else not found[path].note
    # Nothing of it is of another log.
    if "shared" in entry and "." in shared:
        assert beside(write("another.csv", LOG), tmp_path, lambda folder: 1) == []


def test_command_lines_and_overrides() -> None:
    arguments = [
        "main_ppo",
        "--no-use-std-normalization",
        "--n-grpo-steps=200",
        "--max_steps",
        "-1",
        "--resume",
        "--optim",
        "adamw",
        "++a.b='x y'",
        "~a.c",
        "group@package=z",
        7,
        "--",
    ]
    assert parse_command_line(arguments) == {
        "use_std_normalization": False,
        "no_use_std_normalization": True,
        "n_grpo_steps": 200,
        "max_steps": -1,
        "resume": True,
        "optim": "adamw",
        "a.b": "x y",
    }
    assert parse_overrides(["a=null", "b=none", "c=[1,2]", 3, "", "=1"]) == {
        "a": None,
        "b": "none",
        "c": "[1,2]",
    }
    assert [literal(t) for t in ("1e999", "0x10", "1_000", "1:30", "'7'", "False", ".5")] == [
        "1e999",
        "0x10",
        "1_000",
        "1:30",
        "7",
        False,
        0.5,
    ]


class Dangerous:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("opened"),))


def test_a_pickle_is_not_opened(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write("c/trainer_state.json", LOG)
    write("c/training_args.bin", pickle.dumps(Dangerous()))
    write("c/adapter_config.json", {"peft_type": "LORA", "r": 8})
    (adapter,) = beside(log, tmp_path)
    assert adapter.settings == {"adapter": "lora", "lora_r": 8}
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("config.json", b"\x80\x02}q\x00.", "binary"),
        ("config.json", b'{"a": "' + b"x" * (1 << 20) + b'"}', "larger than 1 MiB"),
        ("config.json", "[" * 100_000, "not valid JSON"),
        ("config.json", '{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ("config.yaml", "[" * 100_000, "level"),
        ("config.yaml", "{a: " * 100_000, "level"),
        ("rl.toml", "a" + ".a" * 50_000 + " = 1", "dots"),
        ("rl.toml", "a = " + "[" * 10_000, "not valid TOML"),
    ],
)
def test_a_bad_config_is_a_note(
    write: Writer, tmp_path: Path, name: str, content: Any, what: str
) -> None:
    log = write("metrics.jsonl", LOG)
    write(name, content)
    write("args.json", {"seed": 1})
    sources = {source.path.name: source for source in beside(log, tmp_path)}
    assert sources["args.json"].settings == {"seed": 1}
    bad = sources[name]
    assert bad.settings == {}
    assert bad.note.startswith(f"{name} was left out: ")
    assert what in bad.note
    assert "\n" not in bad.note


def test_aliases_that_multiply(write: Writer, tmp_path: Path) -> None:
    log = write("metrics.jsonl", LOG)
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    write("config.yaml", "\n".join(lines))
    merged = ["b0: &b0 {k0: 1}"]
    merged += [f"b{n}: &b{n} {{<<: [*b{n - 1}, *b{n - 1}], k{n}: 1}}" for n in range(1, 40)]
    write("hparams.yaml", "\n".join(merged))
    # A modest use of both is what they are for.
    write("args.yaml", "base: &base {lr: 1e-6}\nactor: {<<: *base, n: 4}\nref: *base\n")
    with at_most(5):
        sources = {source.path.name: source for source in beside(log, tmp_path)}
    assert "more than 100,000 values" in sources["config.yaml"].note
    assert "more than 100,000 values" in sources["hparams.yaml"].note
    assert sources["args.yaml"].settings == {
        "base.lr": 1e-6,
        "actor.lr": 1e-6,
        "actor.n": 4,
        "ref.lr": 1e-6,
    }


def test_tags_of_python_are_read_as_data(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write("metrics.jsonl", LOG)
    write(
        "config.yaml",
        "!!python/object:trl.GRPOConfig\nlearning_rate: 1e-06\n"
        "betas: !!python/tuple [0.9, 0.99]\n"
        "dtype: !!python/name:torch.bfloat16 ''\n"
        "trap: !!python/object/apply:os.system ['touch opened']\n"
        "when: 2025-13-45\nquoted: '1e-6'\nnothing: null\nswitch: on\nid: 1:30\n",
    )
    assert only(beside(log, tmp_path)).settings == {
        "learning_rate": 1e-6,
        "betas.0": 0.9,
        "betas.1": 0.99,
        "dtype": "",
        "trap.0": "touch opened",
        "when": "2025-13-45",
        "quoted": "1e-6",
        "nothing": None,
        "switch": True,
        "id": "1:30",
    }
    assert not (tmp_path / "opened").exists()


def test_what_is_no_setting_is_passed_over(write: Writer, tmp_path: Path) -> None:
    log = write("metrics.jsonl", LOG)
    deep: Any = 1
    for _ in range(30):
        deep = {"d": deep}
    document = {
        "X_group_size": 8,
        "group_size": 8,
        "template": "x" * 5000,
        "huge": 10**30,
        "odd": float("nan"),
        "many": list(range(100)),
        "deep": deep,
    }
    write("config.json", json.dumps(document))
    assert only(beside(log, tmp_path)).settings == {"X_group_size": 8, "group_size": 8}


def test_in_an_archive_and_beside_it(write: Writer, tmp_path: Path) -> None:
    path = tmp_path / "runs.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a/metrics.jsonl", LOG)
        packed.writestr("a/.hydra/config.yaml", "lr: 1e-6\n")
        packed.writestr("b/metrics.jsonl", LOG)
        packed.writestr("b/config.json", '{"lr": 2}')
        packed.writestr("c__x.jsonl.gz", gzip.compress(LOG))
        packed.writestr("c__config.json", gzip.compress(b'{"lr": 3}'))
    write("args.json", {"seed": 5})
    members = {log.path.relative_to(path).as_posix(): log for log in open_archive(on_disk(path))}
    settings = {
        name: [source.settings for source in settings_beside(log, tmp_path, alone)]
        for name, log in members.items()
        if ".jsonl" in name
    }
    assert settings["a/metrics.jsonl"] == [{"lr": 1e-6}, {"seed": 5}]
    assert settings["b/metrics.jsonl"] == [{"lr": 2}, {"seed": 5}]
    inside = settings_beside(members["a/metrics.jsonl"], path, alone)
    assert [source.settings for source in inside] == [{"lr": 1e-6}]


def test_a_folder_of_the_name_of_a_config(tmp_path: Path, write: Writer) -> None:
    log = write("metrics.jsonl", LOG)
    (tmp_path / "config.yaml").mkdir()
    assert beside(log, tmp_path) == []
    assert beside(tmp_path / "missing" / "metrics.jsonl", tmp_path) == []
