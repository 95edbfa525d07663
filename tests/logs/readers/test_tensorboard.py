"""TensorBoard event files, written here byte by byte."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from reader_conformance import LogFormat, Logged, ReaderConformance
from small_logs import masked, message, record, varint

from advisor import inspect
from advisor.errors import InputError
from advisor.runs.logfiles.records import masked_crc

EVENTS = LogFormat("TensorBoard")

ALL = {"reward": "train/reward", "kl": "train/kl", "eval_reward": "eval/reward"}


def simple(tag: str, value: float) -> bytes:
    return message(1, message(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


def tensor(tag: str, body: bytes, metadata: bytes = b"") -> bytes:
    return message(1, message(1, tag.encode()) + message(8, body) + metadata)


def text(tag: str, content: str) -> bytes:
    plugin = message(9, message(1, message(1, b"text")))
    return tensor(tag, b"\x08\x07" + message(8, content.encode()), plugin)


def event(step: int | None, *values: bytes, time: float = 1.0) -> bytes:
    counted = b"" if step is None else b"\x10" + varint(step)
    return record(b"\x09" + struct.pack("<d", time) + counted + message(5, b"".join(values)))


def opening(time: float = 1.0) -> bytes:
    return record(b"\x09" + struct.pack("<d", time) + message(3, b"brain.Event:2"))


def write(folder: Path, content: bytes, name: str = "events.out.tfevents.1.host.1.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def rewards_file(rewards: Iterable[float], first: int = 1, time: float = 1.0) -> bytes:
    events = (
        event(step, simple("train/reward", reward), time=time)
        for step, reward in enumerate(rewards, first)
    )
    return opening(time) + b"".join(events)


def read_one(*paths: Path) -> Logged:
    (logged,) = EVENTS.read(*paths, columns=ALL)
    return logged


def column(logged: Logged, key: str) -> dict[float, float]:
    """Step -> value."""
    table = logged.table
    there = table.has(key)
    steps, values = table.column("step")[there], table.column(key)[there]
    return dict(zip(steps.tolist(), values.tolist(), strict=True))


class TestConformance(ReaderConformance):
    reader = EVENTS.reader

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        return write(folder, rewards_file(rewards))


@pytest.mark.parametrize("size", [0, 1, 3, 4, 63, 64, 65, 200, 1000])
def test_checksums_agree_with_the_plain_algorithm(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, 3 * size + 7, dtype=np.uint8)
    assert masked_crc(data.tobytes()) == masked(data.tobytes())


def test_one_row_per_step(tmp_path: Path) -> None:
    content = opening() + b"".join(
        event(step, simple("train/reward", step / 4)) + event(step, simple("train/kl", step / 8))
        for step in range(1, 6)
    )
    content += event(4, simple("eval/reward", 0.75))
    logged = read_one(write(tmp_path, content))
    assert len(logged.table) == 5
    assert logged.table.column("step").tolist() == [1, 2, 3, 4, 5]
    assert column(logged, "train/reward") == {n: n / 4 for n in range(1, 6)}
    assert column(logged, "train/kl") == {n: n / 8 for n in range(1, 6)}
    assert column(logged, "eval/reward") == {4: 0.75}
    assert logged.warnings == ()


@pytest.mark.parametrize(
    "body",
    [
        b"\x08\x01" + b"\x2d" + struct.pack("<f", 0.5),
        b"\x08\x01\x12\x00" + message(5, struct.pack("<f", 0.5)),
        b"\x08\x01" + message(4, struct.pack("<f", 0.5)),
        b"\x08\x02" + b"\x31" + struct.pack("<d", 0.5),
        b"\x08\x02" + message(6, struct.pack("<d", 0.5)),
        b"\x08\x02" + message(4, struct.pack("<d", 0.5)),
    ],
)
def test_scalars_as_tensors(tmp_path: Path, body: bytes) -> None:
    with_name = message(9, message(1, message(1, b"scalars")))
    events = [event(1, tensor("train/reward", body, with_name))]
    events += [event(step, tensor("train/reward", body)) for step in (2, 3)]
    logged = read_one(write(tmp_path, opening() + b"".join(events)))
    assert column(logged, "train/reward") == {1: 0.5, 2: 0.5, 3: 0.5}


def test_tensors_that_are_no_scalars_are_no_cells(tmp_path: Path) -> None:
    two = b"\x08\x01" + message(5, struct.pack("<ff", 1, 2))
    whole = b"\x08\x03" + b"\x38\x05"
    content = rewards_file([1.0, 2.0]) + event(1, tensor("train/kl", two), tensor("n", whole))
    assert not read_one(write(tmp_path, content)).table.has("train/kl").any()


# --- resumed runs ---------------------------------------------------------------------------


def test_a_resumed_run_counts_from_its_first_step(tmp_path: Path) -> None:
    early = write(tmp_path, rewards_file([1.0] * 10, time=100.0), "events.out.tfevents.9")
    late = write(tmp_path, rewards_file([2.0] * 3, first=6, time=200.0), "events.out.tfevents.10")
    for order in ((early, late), (late, early)):
        logged = read_one(*order)
        assert column(logged, "train/reward") == {
            **dict.fromkeys(range(1, 6), 1.0),
            **dict.fromkeys(range(6, 9), 2.0),
        }
        assert any("5 rows (steps 6 to 10)" in warning for warning in logged.warnings)


def test_a_second_writer_of_other_tags_replaces_nothing(tmp_path: Path) -> None:
    one = write(tmp_path, rewards_file([1.0] * 4, time=100.0), "events.out.tfevents.1")
    other = opening(200.0) + event(0, simple("eval/reward", 0.5), time=200.0)
    logged = read_one(one, write(tmp_path, other, "events.out.tfevents.2"))
    assert column(logged, "train/reward") == dict.fromkeys(range(1, 5), 1.0)
    assert column(logged, "eval/reward") == {0: 0.5}
    assert logged.warnings == ()


# --- damage ---------------------------------------------------------------------------------


def test_a_cut_last_record_is_normal(tmp_path: Path) -> None:
    whole = rewards_file([1.0, 2.0, 3.0])
    last = len(event(3, simple("train/reward", 3.0)))
    for lost in (1, 5, last - 3):
        logged = read_one(write(tmp_path, whole[:-lost]))
        assert column(logged, "train/reward") == {1: 1, 2: 2}
        (warning,) = logged.warnings
        assert f"at byte {len(whole) - last}, is cut" in warning


def test_a_changed_value_costs_its_record(tmp_path: Path) -> None:
    before = rewards_file([1.0])
    content = bytearray(rewards_file([1.0, 2.0, 3.0]))
    content[len(before) + len(event(2, simple("train/reward", 2.0))) - 6] ^= 1
    logged = read_one(write(tmp_path, bytes(content)))
    assert column(logged, "train/reward") == {1: 1, 3: 3}
    assert "1 records fail" in logged.warnings[0]


def test_records_that_are_no_events(tmp_path: Path) -> None:
    content = rewards_file([1.0]) + record(b"\x2a\xff\x01") + record(b"\x0b") + record(b"")
    logged = read_one(write(tmp_path, content))
    assert column(logged, "train/reward") == {1: 1}
    assert "2 records are no events" in logged.warnings[0]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "byte 0"),
        (b"\0" * 1000, "byte 0"),
        (b"\x12" * 5, "byte 0"),
        (opening(), "no scalars"),
    ],
)
def test_files_without_scalars(tmp_path: Path, content: bytes, word: str) -> None:
    with pytest.raises(InputError, match=word):
        read_one(write(tmp_path, content))


# --- settings -------------------------------------------------------------------------------


def test_settings_as_text(tmp_path: Path) -> None:
    trainer = '{"learning_rate": 1e-06, "num_generations": 8, "fsdp": {"on": false}}'
    model = '{"_name_or_path": "Qwen/Qwen2.5-7B"}'
    content = rewards_file([1.0]) + event(0, text("args/text_summary", trainer))
    content += event(0, text("model_config/text_summary", model))
    content += event(1, text("train/generated_samples", '{"learning_rate": 5}'))
    content += event(0, text("settings", "{broken"))
    assert read_one(write(tmp_path, content)).settings == {
        "learning_rate": 1e-06,
        "num_generations": 8,
        "fsdp.on": False,
        "model_config._name_or_path": "Qwen/Qwen2.5-7B",
    }


def test_settings_as_a_rendered_table(tmp_path: Path) -> None:
    table = "|param|value|\n|-|-|\n|learning_rate|3e-4|\n|seed|1|"
    content = rewards_file([1.0]) + event(0, text("hyperparameters/text_summary", table))
    assert read_one(write(tmp_path, content)).settings == {"learning_rate": "3e-4", "seed": "1"}


def hparams() -> bytes:
    entries = [
        (b"beta", b"\x11" + struct.pack("<d", 0.04)),
        (b"optim", message(3, b"adamw_torch")),
        (b"bf16", b"\x20\x01"),
        (b"nothing", b"\x08\x00"),
    ]
    session = b"".join(message(1, message(1, k) + message(2, v)) for k, v in entries)
    plugin = message(1, message(1, b"hparams") + message(2, message(3, session)))
    return message(1, message(1, b"_hparams_/session_start_info") + message(9, plugin))


def test_settings_of_the_hparams_plugin(tmp_path: Path) -> None:
    run = write(tmp_path / "run", rewards_file([1.0, 2.0]))
    beside = opening(0.5) + event(None, hparams()) + event(None, simple("train/reward", 7.0))
    settings = write(tmp_path / "run" / "1700000000.1234567", beside)
    assert EVENTS.group(settings) == tmp_path / "run"
    assert EVENTS.group(run) == tmp_path / "run"
    logged = read_one(run, settings)
    assert logged.settings == {
        "beta": 0.04,
        "optim": "adamw_torch",
        "bf16": True,
        "nothing": None,
    }
    assert column(logged, "train/reward") == {1: 1, 2: 2}


def test_a_run_in_a_folder_named_by_its_time_is_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "1700000000.5", rewards_file([1.0]))
    assert EVENTS.group(path) == path.parent


# --- claims ---------------------------------------------------------------------------------


def test_a_packed_file_that_does_not_unpack(tmp_path: Path) -> None:
    broken = gzip.compress(rewards_file([1.0] * 50))[:40]
    log = write(tmp_path / "1700000000.5", broken, "events.out.tfevents.1.gz")
    assert EVENTS.claims(log)
    assert EVENTS.group(log) == log.parent
    with pytest.raises(InputError, match="unpacked"):
        EVENTS.read(log, columns=ALL)


def test_claims(tmp_path: Path) -> None:
    claims = EVENTS.claims
    assert claims(write(tmp_path, rewards_file([1.0])))
    assert claims(write(tmp_path, b"", "events.out.tfevents.5.host"))
    assert claims(write(tmp_path, b"\0" * 99, "events.out.tfevents.6.host"))
    assert claims(write(tmp_path, opening(), "renamed"))
    assert not claims(write(tmp_path, b"step,reward\n1,2\n", "events.out.tfevents.csv"))
    assert not claims(write(tmp_path, b"a list of tfevents files", "tfevents"))
    assert not claims(write(tmp_path, record(b"other TFRecord data"), "shard"))


def with_rate(rate: float, rewards: Iterable[float], time: float, first: int = 1) -> bytes:
    args = event(0, text("args/text_summary", f'{{"learning_rate": {rate}}}'), time=time)
    return rewards_file(rewards, first, time) + args


def test_a_short_file_of_other_settings_is_a_run_of_its_own_name(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    wave = [0.1 + 0.01 * (n * 7 % 5) for n in range(100)]
    write(folder, with_rate(1e-6, wave, 100.0), "events.out.tfevents.100.host.1.0")
    write(folder, with_rate(5e-3, [0.3, 0.1, 0.0, 0.0], 200.0), "events.out.tfevents.200.host.2.0")
    write(folder, with_rate(1e-6, wave[:4], 300.0), "events.out.tfevents.300.host.3.0")
    found = inspect(folder, columns={"reward": "train/reward"})
    assert [(run.id, run.hyperparameters.learning_rate) for run in found.runs] == [
        ("events.out.tfevents.100.host.1", 1e-6),
        ("events.out.tfevents.200.host.2", 5e-3),
    ]
    (dropped,) = [line for run in found.runs for line in run.warnings if "part of no run" in line]
    assert dropped.startswith("events.out.tfevents.300.host.3.0: 4 rows")


def test_a_run_goes_on_in_the_file_of_its_own_settings(tmp_path: Path) -> None:
    """Two runs that were trained in turns; the one with its rows far apart is no resumption."""
    one = write(tmp_path, with_rate(1e-6, [1.0] * 4, 100.0), "events.out.tfevents.1")
    other = write(tmp_path, with_rate(1e-5, [2.0] * 4, 200.0, first=5), "events.out.tfevents.2")
    more = write(tmp_path, with_rate(1e-6, [1.5] * 4, 300.0, first=5), "events.out.tfevents.3")
    logs = (one, other, more)
    first, second = EVENTS.read(*logs, columns=ALL)
    assert column(first, "train/reward") == {n: 1.0 if n < 5 else 1.5 for n in range(1, 9)}
    assert column(second, "train/reward") == dict.fromkeys(range(5, 9), 2.0)


QWEN_7B = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "vocab_size": 152064,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({}, 7.62e9),
        ({"_name_or_path": "Qwen/Qwen2.5-7B"}, 7e9),  # as every other log of it says
        ({"_name_or_path": "/mnt/checkpoints/best", "tie_word_embeddings": True}, 7.07e9),
        ({"num_experts": 60}, None),
        ({"vision_config": {"hidden_size": 1280}}, None),
        ({"num_attention_heads": None}, None),
    ],
)
def test_the_size_of_a_model_is_counted_by_its_config(
    tmp_path: Path, changes: dict[str, object], size: float | None
) -> None:
    config = json.dumps({**QWEN_7B, **changes})
    content = rewards_file([n * 7 % 5 / 10 for n in range(9)])
    content += event(0, text("args/text_summary", '{"learning_rate": 1e-06, "beta": 0.0}'))
    write(tmp_path / "x", content + event(0, text("model_config/text_summary", config)))
    (run,) = inspect(tmp_path / "x", columns={"reward": "train/reward"}).runs
    assert run.parameters == size
