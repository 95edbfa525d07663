"""W&B's own file of a run."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from reader_conformance import LogFormat, Logged, ReaderConformance
from small_logs import message, varint

from advisor.runs import inspect, read_runs

STORE = LogFormat("W&B run file")
MARK, BLOCK = b":W&B", 32_768


def item(key: str | Sequence[str], value: Any) -> bytes:
    names = message(1, key.encode()) if isinstance(key, str) else b""
    nested = b"" if isinstance(key, str) else b"".join(message(2, part.encode()) for part in key)
    return names + nested + message(16, json.dumps(value).encode())


def history(step: int, cells: Mapping[str, Any]) -> bytes:
    items = b"".join(message(1, item((key,), value)) for key, value in cells.items())
    return b"\x08\x05" + message(2, items + message(2, b"\x08" + varint(step)))


def config(settings: Mapping[str, Any]) -> bytes:
    return b"".join(message(1, item(key, value)) for key, value in settings.items())


def framed(records: Iterable[bytes]) -> bytes:
    """Records in blocks of 32 KiB, in pieces where they do not fit."""
    out = bytearray(MARK + b"\xe1\xbe\x00")
    for record in records:
        rest, is_first = record, True
        while True:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += b"\0" * left
                left = BLOCK
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if is_first else 4) if not rest else (2 if is_first else 3)
            out += struct.pack("<IHB", 0, len(piece), kind) + piece
            is_first = False
            if not rest:
                break
    return bytes(out)


SETTINGS = {
    "data": {"train_batch_size": 32},
    "actor_rollout_ref": {
        "rollout": {"n": 16},
        "actor": {"ppo_mini_batch_size": 16, "optim": {"lr": 1e-6}},
    },
    "_wandb": {"t": {"1": [1]}},
}


def verl_rows(rewards: Sequence[float]) -> list[bytes]:
    return [
        history(n, {"critic/score/mean": r, "actor/lr": 1e-6, "training/global_step": n})
        for n, r in enumerate(rewards, 1)
    ]


def saved(folder: Path, content: bytes, name: str = "run-ab12.wandb") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def read_one(path: Path) -> Logged:
    assert STORE.claims(path)
    (run,) = STORE.read(path)
    return run


class TestConformance(ReaderConformance):
    reader = STORE.reader
    rounds = 50

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        rows = [history(n, {"reward": r, "step": n}) for n, r in enumerate(rewards, 1)]
        return saved(folder, framed(rows))


def test_rows_and_settings(tmp_path: Path) -> None:
    start = message(17, message(1, b"ab12") + message(4, config(SETTINGS)))
    later = message(5, message(1, item(("actor_rollout_ref", "rollout", "n"), 8)))
    path = saved(tmp_path, framed([start, later, *verl_rows([0.25, 0.5, 0.75])]))
    run = read_one(path)
    assert run.table.column("critic/score/mean").tolist() == [0.25, 0.5, 0.75]
    assert run.table.column("step").tolist() == [1, 2, 3]
    assert run.settings["actor_rollout_ref.actor.optim.lr"] == 1e-6
    assert not any("_wandb" in key for key in run.settings)
    assert run.warnings == ()


def test_a_run_is_called_as_the_pages_of_wandb_call_it(tmp_path: Path) -> None:
    for place, name in (("a", b"lr1e-6"), ("b", b"lr2e-6"), ("c", b"")):
        start = message(17, message(8, name) + message(4, config(SETTINGS)))
        (tmp_path / place).mkdir()
        saved(tmp_path / place, framed([start, *verl_rows([0.25, 0.5, 0.75 + len(name)])]))
    names = [run.id for run in inspect(tmp_path).runs]
    assert names[:2] == ["lr1e-6", "lr2e-6"]
    assert "run-" in names[2]


def test_the_trainer_derives_from_the_config(tmp_path: Path) -> None:
    start = message(17, message(4, config(SETTINGS)))
    (run,) = read_runs(saved(tmp_path, framed([start, *verl_rows([0.25, 0.5, 0.75])])))
    known = run.hyperparameters
    assert (known.group_size, known.prompts_per_step, known.minibatches_per_refresh) == (16, 16, 2)
    assert run.step.tolist() == [2, 4, 6]


def test_media_are_no_cells(tmp_path: Path) -> None:
    table = {"_type": "table-file", "path": "a.json"}
    rows = [history(n, {"reward": 0.5, "step": n, "samples": table, "kl": None}) for n in (1, 2)]
    run = read_one(saved(tmp_path, framed(rows)))
    assert "samples" not in run.table.filled_keys
    assert not run.table.has("kl").any()


def test_a_cut_file_gives_what_stands_before(tmp_path: Path) -> None:
    whole = framed(history(n, {"reward": 0.5, "step": n}) for n in range(1, 9))
    run = read_one(saved(tmp_path, whole[:-5]))
    assert len(run.table) == 7
    assert "cut at byte" in run.warnings[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [("run-a.wandb", b""), ("run-a.wandb", b"zip"), ("run-a.log", MARK + b"\0" * 20)],
)
def test_other_files_are_not_claimed(tmp_path: Path, name: str, content: bytes) -> None:
    assert not STORE.claims(saved(tmp_path, content, name))


# --- beside the console ---------------------------------------------------------------------


def console(rewards: Sequence[float], steps: Sequence[int]) -> bytes:
    lines = [
        f"step:{n} - critic/score/mean:{r} - actor/lr:1e-06 - training/global_step:{n}\n"
        for n, r in zip(steps, rewards, strict=True)
    ]
    return "".join(lines).encode()


def test_the_console_of_a_run_is_no_second_run(tmp_path: Path) -> None:
    folder = tmp_path / "wandb" / "run-20260102_030405-ab12"
    start = message(17, message(4, config(SETTINGS)))
    saved(folder, framed([start, *verl_rows([0.1, 0.2, 0.3, 0.4])]))
    saved(folder / "files", console([0.1, 0.2, 0.4], [1, 2, 4]), "output.log")
    saved(folder / "files", b"wandb_version: 1\nseed:\n  value: 7\n", "config.yaml")
    (run,) = inspect([tmp_path]).runs
    assert run.reward.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert not any("is read for none" in warning for warning in run.warnings)


def test_the_console_goes_on_where_the_file_stops(tmp_path: Path) -> None:
    folder = tmp_path / "run-20260102_030405-ab12"
    start = message(17, message(4, config(SETTINGS)))
    saved(folder, framed([start, *verl_rows([0.1, 0.2])]))
    saved(folder / "files", console([0.1, 0.2, 0.3, 0.4], [1, 2, 3, 4]), "output.log")
    (run,) = inspect([tmp_path]).runs
    assert run.path.endswith("output.log")
    assert run.hyperparameters.group_size == 16
