"""Settings from files beside a log: which are found, which apply, and what a bad one costs."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processor_time import at_most

from advisor.runs import on_disk
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


HYDRA = """
data:
  train_batch_size: 1024
actor_rollout_ref:
  rollout: {n: 16, response_length: '${data.max_response_length}'}
  actor:
    optim: {lr: 1e-6, betas: [0.9, 0.95]}
    ppo_mini_batch_size: ${data.train_batch_size}
    name: run_${data.train_batch_size}_${.ppo_mini_batch_size}
    path: ${oc.env:HOME}/x
    loop: ${.loop}
    whole: ${data}
"""


def test_hydra_below_the_folder_of_the_run(write: Writer, tmp_path: Path) -> None:
    log = write("outputs/2025-12-18/11-25-06/train.log", LOG)
    write("outputs/2025-12-18/11-25-06/.hydra/config.yaml", HYDRA)
    write("outputs/2025-12-18/11-25-06/.hydra/overrides.yaml", "- +trainer.n=3\n- ~trainer.x\n")
    overrides, config = beside(log, tmp_path)
    assert overrides.settings == {"trainer.n": 3}
    assert config.settings == {
        "data.train_batch_size": 1024,
        "actor_rollout_ref.rollout.n": 16,
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "actor_rollout_ref.actor.optim.betas.0": 0.9,
        "actor_rollout_ref.actor.optim.betas.1": 0.95,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 1024,
        "actor_rollout_ref.actor.name": "run_1024_1024",
    }
    assert config.path == log.parent / ".hydra" / "config.yaml"
    assert not config.note


def test_a_log_deeper_in_a_hydra_folder(write: Writer, tmp_path: Path) -> None:
    log = write("out/t/logs/rank0/train.log", LOG)
    write("out/t/.hydra/config.yaml", "data: {train_batch_size: 8}\n")
    assert only(beside(log, tmp_path)).settings == {"data.train_batch_size": 8}
    # Not above the folder that was asked for.
    assert beside(log, tmp_path / "out" / "t" / "logs") == []


def test_wandb_beside_its_console(write: Writer, tmp_path: Path) -> None:
    log = write("wandb/run-1/files/output.log", LOG)
    write(
        "wandb/run-1/files/config.yaml",
        "wandb_version: 1\n_wandb:\n  desc: null\n  value: {cli_version: 0.19.1}\n"
        "lr:\n  desc: null\n  value: 1e-06\narchitectures:\n  value: [Qwen2]\n"
        "trainer:\n  value:\n    n_gpus_per_node: 8\nmodel_type:\n  value: qwen2\n"
        "vocab_size:\n  value: 151936\n",
    )
    arguments = ["train.py", "data.train_batch_size=1024", "--learning_rate", "1e-6", "--bf16"]
    write("wandb/run-1/files/wandb-metadata.json", {"os": "Linux", "args": arguments})
    config, metadata = beside(log, tmp_path)
    assert config.settings == {
        "lr": 1e-6,
        "architectures.0": "Qwen2",
        "trainer.n_gpus_per_node": 8,
        "model_type": "qwen2",
        "vocab_size": 151936,
    }
    assert metadata.settings == {
        "data.train_batch_size": 1024,
        "learning_rate": 1e-6,
        "bf16": True,
    }
    binary = write("wandb/run-1/run-1.wandb", b"\0")
    assert [s.path.name for s in beside(binary, tmp_path)] == [
        "config.yaml",
        "wandb-metadata.json",
    ]


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


@pytest.mark.parametrize(
    ("written", "settings"),
    [
        ("--eps_clip_low_high 0.2 0.28 --seed 1", {"eps.0": 0.2, "eps.1": 0.28, "seed": 1}),
        ("--clip_range -10 10", {"clip_range.0": -10, "clip_range.1": 10}),
        ("--modules q_proj k_proj", {"modules": "q_proj", "modules.0": "q_proj"}),
        ("--lr 1e-6 run.yaml", {"lr": 1e-6, "lr.0": 1e-6, "lr.1": "run.yaml"}),
        ("--lr 1e-6 seed=3", {"lr": 1e-6, "seed": 3}),
        ("--optim_args momentum=0.9", {"optim_args": "momentum=0.9"}),
    ],
)
def test_several_values_of_a_flag(written: str, settings: dict[str, Any]) -> None:
    found = parse_command_line(written.replace("eps_clip_low_high", "eps").split())
    assert found.items() >= settings.items()


def test_a_flag_takes_no_more_values_than_a_setting_can_have() -> None:
    assert len(parse_command_line(["--many", *map(str, range(100_000))])) == 16


def test_a_mapping_in_an_override() -> None:
    entries = ["++a.b={momentum: 0.9,'nesterov':true}", "c={}", "d={e:{f:1}}", "g=${h.i}"]
    assert parse_overrides(entries) == {
        "a.b.momentum": 0.9,
        "a.b.nesterov": True,
        "d": "{e:{f:1}}",
        "g": "${h.i}",
    }


@pytest.mark.parametrize(
    ("log", "config"),
    [
        ("e2_tb256.metrics.jsonl", "e2_tb256.config.json"),
        ("Llama3.1__8B_-GRPO.csv", "Llama3.1__8B_-GRPO.hparams.json"),
        ("run.csv", "run.json"),
        ("run.csv", "run.yaml"),
        ("run.csv", "run.args.json"),
        ("exp1.log", "exp1_config.yaml"),
        ("m95.output.steps.log", "m95.config.json"),
        ("checkpoint-250__trainer_state.json", "checkpoint-250__args.json"),
        ("a__b__step_logs.json", "a__b__config.json"),
        ("t__files__output.log", "t__files__config.yaml"),
        ("t__train.log", "t__.hydra__config.yaml"),
    ],
)
def test_files_of_this_very_log(write: Writer, tmp_path: Path, log: str, config: str) -> None:
    text = json.dumps({"group_size": 8})
    write(config, text)
    # Nothing is asked about sharing: nine other logs lie there, and it describes none of them.
    found = only(beside(write(log, LOG), tmp_path, lambda folder: 9))
    assert (found.settings, found.note, found.path.name) == ({"group_size": 8}, "", config)
    assert beside(write("another.csv", LOG), tmp_path) == []


def test_a_log_is_not_its_own_config(write: Writer, tmp_path: Path) -> None:
    assert beside(write("config.json", {"group_size": 8}), tmp_path) == []
    # A file of the same name that holds metrics is another log of the run.
    log = write("x/metrics.csv", LOG)
    write("x/metrics.json", {"reward": 0.5, "learning_rate": 0.0})
    assert beside(log, tmp_path / "x") == []


def test_logs_with_one_prefix_share_its_config(write: Writer, tmp_path: Path) -> None:
    log = write("gates__rho1.log", LOG)
    write("gates__rho2.log", LOG)
    write("gates__config.yaml", "learning_rate: 1e-4\n")
    found = only(beside(log, tmp_path))
    assert found.settings == {}
    assert "gates__config.yaml is read for none of 2 logs" in found.note
    (tmp_path / "gates__rho2.log").unlink()
    assert only(beside(log, tmp_path)).settings == {"learning_rate": 1e-4}


def test_a_shared_config_is_applied_to_none(write: Writer, tmp_path: Path) -> None:
    log = write("sweep/a/metrics.jsonl", LOG)
    write("sweep/config.yaml", "learning_rate: 1e-6\n")
    write("sweep/a/args.json", {"seed": 3})
    counts = {log.parent: 1, log.parent.parent: 9}
    own, shared = beside(log, tmp_path, lambda folder: counts.get(folder, 9))
    assert own.settings == {"seed": 3}
    assert shared.settings == {}
    assert shared.note == (
        "config.yaml is read for none of 9 logs; put a copy next to each that it describes: "
        "LOG.config.yaml next to LOG.csv"
    )
    counts[log.parent.parent] = 1
    assert beside(log, tmp_path, lambda folder: counts.get(folder, 9))[1].settings == {
        "learning_rate": 1e-6
    }


def test_the_nearest_of_one_name_counts(write: Writer, tmp_path: Path) -> None:
    log = write("a/b/metrics.jsonl", LOG)
    write("a/b/config.yaml", "lr: 1\n")
    write("a/config.yaml", "lr: 2\nkl: 3\n")
    write("a/args.json", {"seed": 1})
    assert [source.settings for source in beside(log, tmp_path)] == [{"lr": 1}, {"seed": 1}]


def test_adapter_and_architecture(write: Writer, tmp_path: Path) -> None:
    log = write("c/trainer_state.json", LOG)
    adapter = {
        "base_model_name_or_path": "unsloth/Qwen2.5-7B",
        "peft_type": "LORA",
        "r": 32,
        "lora_alpha": 64,
        "target_modules": ["v_proj", "q_proj"],
    }
    write("c/adapter_config.json", adapter)
    model = {"model_type": "qwen2", "architectures": ["Qwen2"], "vocab_size": 9, "temperature": 2}
    write("c/config.json", model)
    source = only(beside(log, tmp_path))
    assert source.settings == {
        "adapter": "lora",
        "lora_r": 32,
        "lora_alpha": 64,
        "lora_target_modules": "q_proj,v_proj",
        "model_name_or_path": "unsloth/Qwen2.5-7B",
    }
    assert source.note == ""
    write("c/adapter_config.json", {**adapter, "base_model_name_or_path": "/root/models/mine"})
    assert "local path (/root/models/mine)" in only(beside(log, tmp_path)).note
    write("c/config.json", {**model, "_name_or_path": "Qwen/Qwen2.5-7B"})
    assert beside(log, tmp_path)[0].settings == {"model_name_or_path": "Qwen/Qwen2.5-7B"}
    write("c/config.json", {**model, "learning_rate": 1e-6})
    assert beside(log, tmp_path)[0].settings["learning_rate"] == 1e-6


def test_toml_of_prime_rl(write: Writer, tmp_path: Path) -> None:
    log = write("o/metrics.jsonl", LOG)
    write("o/rl.toml", "max_steps = 20\n[trainer.optim]\nlr = 1e-6\n[[orchestrator.env]]\nid='m'\n")
    write("o/orch.toml", "batch_size = 512\nstarted = 2025-01-01\n")
    rl, orchestrator = beside(log, tmp_path)
    assert rl.settings == {"max_steps": 20, "trainer.optim.lr": 1e-6, "orchestrator.env.0.id": "m"}
    assert orchestrator.settings == {"orchestrator.batch_size": 512}


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
        ("config.yaml", "a: b: c\n", "not valid YAML"),
        ("config.json", '{"a": 1', "not valid JSON"),
        ("config.json", "[1, 2]", "holds a list"),
        ("config.yaml", "just words\n", "holds a str"),
        ("rl.toml", "a = = 1", "not valid TOML"),
        ("config.json", b"", "empty"),
        ("config.json", b"\x80\x02}q\x00.", "binary"),
        ("config.yaml", b"version https://git-lfs.github.com/spec/v1\n", "git-LFS"),
        ("config.json", b'{"a": "' + b"x" * (1 << 20) + b'"}', "larger than 1 MiB"),
        ("config.json", "[" * 100_000, "not valid JSON"),
        ("config.json", '{"a": ' + "9" * 5000 + "}", "not valid JSON"),
        ("config.yaml", "[" * 100_000, "level"),
        ("config.yaml", "{a: " * 100_000, "level"),
        ("config.yaml", "a: &a [*a]\n", "stands for nothing"),
        ("config.yaml", "a: !!bool maybe\n", "not valid YAML"),
        ("config.yaml", "? [a]\n: 1\n", "not valid YAML"),
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


def test_a_compressed_log_and_config(write: Writer, tmp_path: Path) -> None:
    log = write("run.csv.gz", gzip.compress(b"step,reward\n1,2\n"))
    write("run.hparams.json", gzip.compress(b'{"lr": 1}'))
    assert only(beside(log, tmp_path)).settings == {"lr": 1}


def test_nothing_is_raised_whatever_lies_there(write: Writer, tmp_path: Path) -> None:
    log = write("c/trainer_state.json", LOG)
    adapter = '{"peft_type": "LORA", "r": 8, "base_model_name_or_path": "a/b"}'
    files = {
        "config.yaml": HYDRA,
        "overrides.yaml": "- a=1\n- b.c=[1,2]\n",
        "args.json": '{"a": {"b": [1, 2.5e-7, null, true, "x"]}}',
        "rl.toml": "a = 1\n[b]\nc = [1, 2]\n[[d]]\ne = 'x'\n",
        "adapter_config.json": adapter,
        "wandb-metadata.json": '{"args": ["--a", "1", "b=2"]}',
    }
    for name, text in files.items():
        raw = text.encode()
        random_bytes = random.Random(name)
        for cut in range(0, len(raw), 7):
            write(f"c/{name}", raw[:cut])
            beside(log, tmp_path)
        for _ in range(60):
            changed = bytearray(raw)
            for _ in range(3):
                changed[random_bytes.randrange(len(raw))] = random_bytes.randrange(256)
            write(f"c/{name}", bytes(changed))
            assert all(isinstance(source.settings, dict) for source in beside(log, tmp_path))
    for content in ("{}", "null", '{"args": 3}', '{"a": {"value": 1}, "b": 2}', '{"r": true}'):
        for name in files:
            write(f"c/{name}", content)
        beside(log, tmp_path)


def test_a_folder_of_the_name_of_a_config(tmp_path: Path, write: Writer) -> None:
    log = write("metrics.jsonl", LOG)
    (tmp_path / "config.yaml").mkdir()
    assert beside(log, tmp_path) == []
    assert beside(tmp_path / "missing" / "metrics.jsonl", tmp_path) == []


def test_many_logs_cost_little(tmp_path: Path) -> None:
    for n in range(200):
        (tmp_path / f"run{n}.jsonl").write_bytes(LOG)
        (tmp_path / f"run{n}.config.json").write_text('{"lr": 1e-6}')
    (tmp_path / "config.yaml").write_text("lr: 1\n")
    logs = [on_disk(tmp_path / f"run{n}.jsonl") for n in range(200)]
    with at_most(5):
        for log in logs:
            own, shared = settings_beside(log, tmp_path, lambda folder: 200)
            assert own.settings == {"lr": 1e-6}
            assert "200 logs" in shared.note


def test_configs_of_real_runs(real_logs: Path) -> None:
    def settings(name: str) -> dict[str, Any]:
        sources = beside(real_logs / name, real_logs, lambda folder: 1)
        return {
            key: value for source in reversed(sources) for key, value in source.settings.items()
        }

    sweep = "ShibukiZero__assignment5-alignment/grpo_off_policy_sweep__broad_e2_tb32"
    assert settings(f"{sweep}.metrics.jsonl")["train_batch_size"] == 32
    state = settings("IMJONEZZ__UnslothGRPO/checkpoint-250__trainer_state.json")
    assert state["lora_r"] == 32
    assert state["model_name_or_path"] == "unsloth/meta-llama-3.1-8b-instruct-bnb-4bit"
    assert settings("CYCLOP5__metascaler-hack/training_metrics.csv")["num_generations"] == 8
    table = settings("basilenouvellet__unsloth-grpo-fine-tuning/Qwen2.5-1.5B_GRPO_table.csv")
    assert table["learning_rate"] == "5e-6"
    # A yaml that is known to be wrong for its runs is not one that lies beside a log by name.
    assert settings("Sunshine535__nips-grpo-dynamics/exp1a__rho1.00_seed42.log") == {}
