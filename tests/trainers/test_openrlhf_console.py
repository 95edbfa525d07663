"""OpenRLHF console logs, with lines as its own code prints them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor.errors import InputError
from advisor.runs.logfiles.log_file import on_disk
from advisor.runs.logfiles.logged import Columns, Logged
from advisor.runs.trainers import openrlhf as openrlhf_console
from advisor.testing.reader_conformance import ReaderConformance

RAY = "\x1b[36m(PPOTrainer pid=4711)\x1b[0m "
INFO = f"{RAY}INFO 08-13 10:00:00 ppo_trainer.py:547] "
ALL = Columns(
    {
        "reward": "reward",
        "kl": "kl",
        "entropy": "pg",
        "loss": "rm",
        "step": "global_step",
        "learning_rate": "act_lr",
        "eval_reward": "eval_math_pass1",
        "completion_length": "glen",
    }
)


def step_line(step: int, reward: float, mark: str = "✨ ") -> str:
    cells = {"policy_loss": -0.01, "reward": reward, "return": reward - 9, "kl": 0.5}
    return f"{INFO}{mark}Global step {step}: {cells | {'actor_lr': 5e-07}}\n"


def bar(title: str, done: int, total: int, **postfix: float) -> str:
    """One drawing of a progress bar, as tqdm formats it."""
    shown = "".join(f", {key}={value:.3g}" for key, value in postfix.items())
    return f"{title}:  {100 * done // total}%|███  | {done}/{total} [00:01<00:09,  1.2s/it{shown}]"


def drawn(title: str, postfixes: Sequence[dict[str, float]]) -> str:
    """A bar from its first drawing to its last; a postfix is set before the counter moves."""
    total = len(postfixes)
    shown = [bar(title, 0, total)]
    for done, postfix in enumerate(postfixes):
        shown += [bar(title, done, total, **postfix), bar(title, done + 1, total, **postfix)]
    return "\r".join([*shown, shown[-1]])


def write(folder: Path, text: str, name: str = "train.log") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read_one(path: Path) -> Logged:
    (logged,) = openrlhf_console.READER.read([on_disk(path)], ALL)
    return logged


class TestConformance(ReaderConformance):
    reader = openrlhf_console.READER

    def write_sample(self, folder: Path, rewards: Sequence[float]) -> Path:
        lines = [step_line(step, reward) for step, reward in enumerate(rewards, 1)]
        return write(folder, "Setting ds_accelerator to cuda\n" + "".join(lines))


def test_steps_as_dicts(tmp_path: Path) -> None:
    text = "loading\n" + step_line(1, 0.25) + "\rnoise 5%|#\n" + step_line(2, 0.5, mark="")
    table = read_one(write(tmp_path, text)).table
    assert table.column("global_step").tolist() == [1, 2]
    assert table.column("reward").tolist() == [0.25, 0.5]
    assert table.column("kl").tolist() == [0.5, 0.5]
    assert table.numbers.tolist() == [2, 4]
    assert "return" in table.keys


def test_evaluations_are_rows_of_their_own(tmp_path: Path) -> None:
    metrics = "{'eval_math_pass4': 0.75, 'eval_math_pass1': 0.5}"
    text = (
        step_line(1, 0.25)
        + f"{INFO}✨ Evaluation completed in 0:01:02, global_step 1, eval_metrics: {metrics}\n"
        + step_line(2, 0.5)
        + f"{INFO}Async evaluation completed: {metrics}\n{INFO}Eval at step 2: {metrics}\n"
    )
    table = read_one(write(tmp_path, text)).table
    assert table.column("global_step").tolist() == [1, 1, 2, 2]
    assert table.has("eval_math_pass1").tolist() == [False, True, False, True]
    assert table.has("reward").tolist() == [True, False, True, False]


def test_values_that_are_no_plain_numbers(tmp_path: Path) -> None:
    cells = "{'actor_lr': 5e-07, 'kl': nan, 'note': 'a, b', 'list': [1, 2], 'x': None, 'reward': 1}"
    table = read_one(write(tmp_path, f"{INFO}Global step 3: {cells}\n")).table
    assert table.column("reward").tolist() == [1]
    assert table.has("kl").all()
    assert table.column("global_step").tolist() == [3]


def test_a_line_that_lost_its_end(tmp_path: Path) -> None:
    text = (
        step_line(1, 0.25) + f"{INFO}Global step 2: {{'actor_lr': 5e-07, 'reward': 0.5, 'kl': 0.1"
    )
    table = read_one(write(tmp_path, text)).table
    assert table.cut.tolist() == [False, True]
    assert table.column("reward").tolist() == [0.25, 0.5]
    assert table.has("kl").tolist() == [True, False]


def test_the_bar_of_an_episode(tmp_path: Path) -> None:
    rewards = [0.25, 0.5, 0.5, 0.75]
    postfixes = [
        {"policy_loss": -n / 100, "actor_lr": 5e-07, "reward": reward, "kl": 0.0}
        for n, reward in enumerate(rewards)
    ]
    first = drawn("Episode [1/2]", postfixes)
    second = drawn("Episode [2/2]", postfixes[:2] + postfixes[:2])
    inner = drawn("Train epoch [1/3]", [{"pg": 0.5, "rm": 7.0, "act_lr": 5e-07}])
    logged = read_one(write(tmp_path, f"{RAY}{inner}\n{RAY}{first}\n{RAY}{second}\n"))
    assert logged.table.column("global_step").tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert logged.table.column("reward").tolist() == [*rewards, 0.25, 0.5, 0.25, 0.5]
    assert logged.planned_steps == 8
    assert logged.settings == {
        "num_episodes": 2,
        "max_epochs": 3,
        "num_rollouts_per_episodes": 4,
    }
    assert any("2 episodes x 4" in line for line in logged.assumptions)


def test_a_bar_of_which_only_some_drawings_are_left(tmp_path: Path) -> None:
    cells = [{"actor_lr": 1e-06, "reward": n / 4, "policy_loss": 0.0} for n in range(3)]
    before = "\n".join(bar("Episode [1/1]", n, 9, **cells[n]) for n in range(3))
    table = read_one(write(tmp_path, before)).table
    assert table.column("global_step").tolist() == [1, 2, 3]
    after = "\n".join(bar("Episode [1/1]", n + 1, 9, **cells[n]) for n in range(3))
    table = read_one(write(tmp_path, after)).table
    assert table.column("global_step").tolist() == [1, 2, 3]
    assert table.column("reward").tolist() == [0, 0.25, 0.5]


def test_a_restarted_bar_starts_anew(tmp_path: Path) -> None:
    cells = [{"actor_lr": 1e-06, "reward": n / 4, "policy_loss": 0.0} for n in range(3)]
    text = f"{drawn('Episode [1/1]', cells)}\n{drawn('Episode [1/1]', cells)}\n"
    table = read_one(write(tmp_path, text)).table
    assert table.column("global_step").tolist() == [1, 2, 3, 1, 2, 3]


def old_postfix(reward: float) -> dict[str, float]:
    return {"pg": -0.01, "rm": reward, "ret": -5.0, "glen": 100.0, "kl": 0.1, "act_lr": 5e-07}


def test_the_bars_over_mini_batches(tmp_path: Path) -> None:
    critic = drawn("Train epoch [1/2]", [{"critic_loss": 0.1, "values": 3.0, "critic_lr": 9e-06}])
    lines = []
    for reward in (0.2, 0.4, 0.6):
        lines.append(f"{RAY}{critic}")
        for epoch in (1, 2):
            pair = [old_postfix(reward - 0.1), old_postfix(reward + 0.1)]
            lines.append(f"{RAY}{drawn(f'Train epoch [{epoch}/2]', pair)}")
        lines.append(f"{RAY}{bar('Episode [1/1]', 1, 3)}")
    logged = read_one(write(tmp_path, "\n".join(lines)))
    assert logged.table.column("rm") == pytest.approx([0.2, 0.4, 0.6])
    assert logged.table.column("global_step").tolist() == [1, 2, 3]
    assert logged.settings["max_epochs"] == 2
    assert any("three significant digits" in line for line in logged.assumptions)


def test_one_mini_batch_and_only_its_last_drawing(tmp_path: Path) -> None:
    lines = [bar("Train epoch [1/1]", 1, 1, **old_postfix(reward)) for reward in (0.1, 0.2, 0.3)]
    table = read_one(write(tmp_path, "\n".join(lines))).table
    assert table.column("rm").tolist() == [0.1, 0.2, 0.3]


def test_dicts_come_before_bars(tmp_path: Path) -> None:
    inner = drawn("Train epoch [1/1]", [{"act_loss": 0.1, "reward": 0.3, "act_lr": 5e-07}])
    text = "".join(f"{RAY}{inner}\n{step_line(n, n / 8)}" for n in (1, 2, 3))
    table = read_one(write(tmp_path, text)).table
    assert table.column("reward").tolist() == [0.125, 0.25, 0.375]


def current_postfix(reward: float) -> dict[str, float]:
    return {"act_loss": 0.01, "reward": reward, "gen_len": 90.0, "act_lr": 5e-07, "grad_norm": 0.3}


def current(*, has_dicts: bool, episodes: int = 2, batches: int = 3, prompts: int = 128) -> str:
    """A console of 0.9.3 and later, in which the bar of an episode counts prompts."""
    total, step, lines = batches * prompts, 0, []
    for episode in range(1, episodes + 1):
        title = f"Episode [{episode}/{episodes}]"
        lines.append(bar(title, 0, total))
        for batch in range(batches):
            lines.append(drawn("Generate samples", [{"prompts_consumed": 128.0}] * 4))
            step += 1
            # Micro-batches are drawn from the bar a whole optimizer step at a time.
            seen = [(1, step / 8 - 0.05), (1, step / 8 + 0.05), (2, step / 8 + 0.05)]
            inner = [bar("Train epoch [1/1]", n, 2, **current_postfix(each)) for n, each in seen]
            lines.append("\r".join(inner))
            if has_dicts:
                lines.append(step_line(step, step / 8).rstrip())
            lines.append(bar(title, (batch + 1) * prompts, total))
    return "".join(f"{RAY}{line}\n" for line in lines)


@pytest.mark.parametrize("has_dicts", [True, False])
def test_prompts_that_the_bar_of_an_episode_counts_are_no_steps(
    tmp_path: Path, has_dicts: bool
) -> None:
    logged = read_one(write(tmp_path, current(has_dicts=has_dicts)))
    assert logged.table.column("global_step").tolist() == [1, 2, 3, 4, 5, 6]
    expected = [step / 8 for step in range(1, 7)]
    assert logged.table.column("reward") == pytest.approx(expected, abs=1e-3)
    assert logged.planned_steps is None
    assert logged.settings == {"num_episodes": 2, "max_epochs": 1}


def test_the_printed_namespace(tmp_path: Path) -> None:
    line = (
        "namespace(actor=namespace(adam=namespace(lr=5e-07, betas=(0.9, 0.95)), optim='adam', "
        "entropy_coef=None), rollout=namespace(n_samples_per_prompt=8, batch_size=128), "
        'train=namespace(async_enable=False), data=namespace(prompt_dataset="it\'s, a (set)"), '
        "local_rank=-1)"
    )
    settings = read_one(write(tmp_path, f"{RAY}{line}\n{step_line(1, 0.5)}")).settings
    assert settings == {
        "actor.adam.lr": 5e-07,
        "actor.adam.betas": "0.9, 0.95",
        "actor.optim": "adam",
        "actor.entropy_coef": None,
        "rollout.n_samples_per_prompt": 8,
        "rollout.batch_size": 128,
        "train.async_enable": False,
        "data.prompt_dataset": "it's, a (set)",
        "local_rank": -1,
    }


def test_the_command(tmp_path: Path) -> None:
    command = (
        "+ ray job submit --address=http://127.0.0.1:8265 -- python3 -m "
        "openrlhf.cli.train_ppo_ray \\\n   --pretrain 'Qwen/Qwen2.5-7B' \\\n"
        "   --eps_clip_low_high 0.2 0.28 --packing_samples --kl_target=-1 \\\n"
        "   --n_samples_per_prompt 8 2>&1 | tee --append log.txt\n"
    )
    settings = read_one(write(tmp_path, command + step_line(1, 0.5))).settings
    assert settings == {
        "pretrain": "Qwen/Qwen2.5-7B",
        "eps_clip_low_high": "0.2 0.28",
        "packing_samples": True,
        "kl_target": -1,
        "n_samples_per_prompt": 8,
    }


def test_a_log_without_a_step(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no step of OpenRLHF"):
        read_one(write(tmp_path, bar("Episode [1/1]", 0, 5) + "\n"))


def test_claims(tmp_path: Path) -> None:
    def is_claimed(text: str, name: str = "train.log") -> bool:
        return openrlhf_console.READER.claims(on_disk(write(tmp_path, text, name)))

    inner = drawn("Train epoch [1/1]", [old_postfix(0.5)])
    preamble = "INFO loading weights of a rather large model\n" * 5000
    assert is_claimed(step_line(1, 0.5))
    assert is_claimed(preamble + step_line(1, 0.5), "slurm.out")
    assert is_claimed(f"{RAY}{inner}\n", "console")
    assert not is_claimed(step_line(1, 0.5), "notes.md")
    assert not is_claimed(preamble + "done\n")
    assert not is_claimed("Global step 5: {'loss': 0.5, 'reward': 1.0, 'critic_lr': 1}\n")
    foreign = bar("Policy Train epoch [1/1]", 1, 1, pg=0.0, glen=5.0, policy_lr=1e-06)
    assert not is_claimed(f"{foreign}\n")
    assert not is_claimed("step:1 - actor/lr:1e-06 - critic/score/mean:0.5\n")
