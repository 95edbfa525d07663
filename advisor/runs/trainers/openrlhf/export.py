"""OpenRLHF: the settings as flags of ``openrlhf.cli.train_ppo_ray``, in a shell script.

Checked against OpenRLHF 0.11.2 (and its main branch at 3c3be62): flags in
``openrlhf/cli/train_ppo_ray.py``; length of the run and of the schedule in
``openrlhf/trainer/ppo_trainer.py`` (``prepare_datasets``); batches in
``openrlhf/trainer/ray/ppo_actor.py`` and ``openrlhf/utils/deepspeed/deepspeed.py``
(``accumulated_gradient``, and the scheduler that moves once per optimizer step).

============================  ==================================================================
setting                       flag
============================  ==================================================================
P x G completions per step    ``--train.batch_size`` (counts completions)
mini-batches per refresh      ``--rollout.batch_size`` (prompts) x G / ``--train.batch_size``
epochs per refresh            ``--train.max_epochs``
group size G                  ``--rollout.n_samples_per_prompt``
optimizer steps               ``--data.max_samples`` (prompts) / ``--rollout.batch_size`` x K, in
                              one ``--train.num_episodes``
learning rate                 ``--actor.adam.lr``
schedule, warm-up             ``--actor.lr_scheduler``, ``--actor.lr_warmup_ratio`` (rounded up)
momentum                      ``--actor.adam.betas``
KL coefficient                ``--algo.kl.init_coef`` with ``--algo.kl.use_loss``
clip low, high                ``--actor.eps_clip_low_high``
advantage scaling             ``--algo.advantage.estimator``: ``group_norm``, ``dr_grpo`` (none),
                              ``reinforce_baseline`` (batch)
lag                           ``--train.async_queue_size`` x K
loss averaging                ``--actor.loss_agg_mode``
precision                     ``--ds.param_dtype``
LoRA                          ``--ds.lora.rank``, ``--ds.lora.alpha``, ``--ds.lora.target_modules``
token limits                  ``--rollout.max_new_tokens``; with the prompt ``--data.max_len``
============================  ==================================================================
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any

from advisor.errors import InputError
from advisor.runs.settings import Settings
from advisor.runs.trainers.launch import LEFT_OUT, TRANSFORMERS_SCHEDULES, Carried, Launch
from advisor.runs.trainers.shell_script import from_environment, write_script

CHECKED = "OpenRLHF 0.11.2"
FILE_NAME = "openrlhf_grpo.sh"
COMMAND = "python3 -m openrlhf.cli.train_ppo_ray"
SECOND_MOMENT = 0.95
"""OpenRLHF's default; both decays are one flag."""

AVERAGING = {"token": "token-mean", "sequence": "seq-mean-token-mean"}
PRECISIONS = ("bf16", "fp16")

CARRIED = (
    Carried("loss_averaging", "--actor.loss_agg_mode MODE", "token-mean"),
    Carried("precision", "--ds.param_dtype TYPE", "bf16"),
    Carried("max_prompt_length", "--data.max_len TOKENS, prompt and completion", "2048"),
    Carried("max_completion_length", "--rollout.max_new_tokens TOKENS", "what data.max_len leaves"),
    Carried("adapter_alpha", "--ds.lora.alpha ALPHA", "16"),
    Carried("adapter_targets", "--ds.lora.target_modules MODULES", "all-linear"),
)

ESTIMATORS = {"group": "group_norm", "none": "dr_grpo", "batch": "reinforce_baseline"}


def render(launch: Launch, model: str | None) -> str:
    """Write the flags as a script."""
    launch.check_corrected("OpenRLHF")
    if launch.settings.optimizer == "sgd":
        raise InputError(
            "OpenRLHF has no SGD, only AdamW and Muon",
            key="optimizer",
            advice="Choose adamw, or export to trl or verl",
        )
    variables = {
        "MODEL": from_environment(model, "MODEL", "the name or folder of a model"),
        "PROMPT_DATA": from_environment(
            None, "PROMPT_DATA", "the name or file of a dataset of prompts"
        ),
        "REWARD": from_environment(
            None, "REWARD", "a Python file with reward_func or the URL of a server"
        ),
    }
    flags = [*_batches(launch), *_optimizer(launch), *_loss(launch), *_machine(launch)]
    words: dict[str, Container[Any]] = {"loss_averaging": AVERAGING, "precision": PRECISIONS}
    if launch.settings.max_completion_length is None:
        words["max_prompt_length"] = ()  # its flag is of both limits together
    asked = launch.asks(CARRIED, words, "OpenRLHF")
    return write_script(_comments(launch), variables, COMMAND, flags, asked)


def warmup_ratio(steps: int, warmup_steps: int) -> float:
    """Share of the run that OpenRLHF turns back into a number of warm-up steps."""
    # The plain quotient misses it where ceil(steps * ratio) is a rounding error too large.
    ratio = warmup_steps / steps
    return ratio if math.ceil(steps * ratio) == warmup_steps else math.nextafter(ratio, 0.0)


def _batches(launch: Launch) -> list[str]:
    limit, prompt = launch.settings.max_completion_length, launch.settings.max_prompt_length
    lines = [
        '--data.prompt_dataset "$PROMPT_DATA"',
        f"--data.max_samples {launch.rollout_prompts * launch.refreshes('OpenRLHF')}",
        "--train.num_episodes 1",
        f"--rollout.batch_size {launch.rollout_prompts}",
        f"--rollout.n_samples_per_prompt {launch.group_size}",
        f"--train.batch_size {launch.completions}",
        f"--train.max_epochs {launch.epochs}",
        "--rollout.micro_batch_size 1",
        "--train.micro_batch_size 1",
    ]
    if limit is not None:
        lines.append(f"--rollout.max_new_tokens {limit}")
    if limit is not None and prompt is not None:
        lines.append(f"--data.max_len {prompt + limit}")
    return lines


def _optimizer(launch: Launch) -> list[str]:
    lines = [
        "--actor.optim adam",
        f"--actor.adam.lr {launch.learning_rate!r}",
        f"--actor.adam.betas {launch.settings.momentum!r} {SECOND_MOMENT}",
        f"--actor.lr_scheduler {TRANSFORMERS_SCHEDULES[launch.settings.schedule]}",
        f"--actor.lr_warmup_ratio {warmup_ratio(launch.steps, launch.settings.warmup_steps)!r}",
    ]
    if launch.settings.optimizer == "adam":
        lines.append("--actor.adam.weight_decay 0.0")  # AdamW without decay is Adam
    return lines


def _loss(launch: Launch) -> list[str]:
    settings = launch.settings
    lines = [
        f"--algo.advantage.estimator {ESTIMATORS[settings.advantage_scaling]}",
        f"--algo.kl.init_coef {settings.kl_coefficient!r}",
        f"--actor.eps_clip_low_high {settings.clip_low!r} {settings.clip_high!r}",
        "--actor.policy_loss_type ppo",
    ]
    if settings.loss_averaging in AVERAGING:
        lines.append(f"--actor.loss_agg_mode {AVERAGING[settings.loss_averaging]}")
    if settings.kl_coefficient:
        lines += ["--algo.kl.use_loss", "--algo.kl.estimator k3"]
    return lines


def _machine(launch: Launch) -> list[str]:
    settings, devices = launch.settings, launch.devices
    return [
        '--actor.model_name_or_path "$MODEL"',
        '--reward.remote_url "$REWARD"',
        *_adapter(settings),
        *([f"--ds.param_dtype {settings.precision}"] if settings.precision in PRECISIONS else []),
        f"--actor.num_nodes 1 --actor.num_gpus_per_node {devices}",
        f"--ref.num_nodes 1 --ref.num_gpus_per_node {devices}",
        f"--vllm.num_engines {devices} --vllm.tensor_parallel_size 1",
        "--train.colocate_all --ds.enable_sleep",
        *_rollouts(launch),
    ]


def _adapter(settings: Settings) -> list[str]:
    if settings.adapter != "lora":
        return ["--ds.lora.rank 0"]
    lines = [f"--ds.lora.rank {settings.adapter_rank}"]
    if settings.adapter_alpha is not None:
        lines.append(f"--ds.lora.alpha {settings.adapter_alpha}")
    if settings.adapter_targets is not None:
        lines.append(f"--ds.lora.target_modules {settings.adapter_targets.replace(',', ' ')}")
    return lines


def _rollouts(launch: Launch) -> list[str]:
    """Flags of engines that share the trainer's devices, or run ahead on devices of their own."""
    if not launch.settings.lag:
        return ["--vllm.enable_sleep", "--vllm.gpu_memory_utilization 0.6"]
    queue = launch.in_refreshes(
        launch.settings.lag,
        f"a lag of {launch.settings.lag:g} steps is",
        " and are what OpenRLHF's queue holds",
        key="lag",
        advice=f"Ask for advice with a lag that {launch.interval} divides",
    )
    return [
        "--train.async_enable",
        f"--train.async_queue_size {queue}",
    ]


def _comments(launch: Launch) -> list[str]:
    refreshes = launch.refreshes("OpenRLHF")
    samples = launch.rollout_prompts * refreshes
    lines = [
        "GRPO with OpenRLHF. Set MODEL, PROMPT_DATA and REWARD, and add flags of your own:",
        f"  bash {FILE_NAME} --data.input_key KEY --data.label_key KEY --data.apply_chat_template",
        "",
        *launch.refresh_comments(
            f"rollout.batch_size {launch.rollout_prompts} prompts x n_samples_per_prompt "
            f"{launch.group_size} / train.batch_size {launch.completions}",
            "train.max_epochs",
        ),
        f"One optimizer step: {launch.prompts} prompts x {launch.group_size} completions = "
        f"train.batch_size {launch.completions},",
        f"  on actor.num_nodes x actor.num_gpus_per_node = {launch.devices} in all",
        f"{launch.steps} optimizer steps = data.max_samples {samples} / rollout.batch_size "
        f"{launch.rollout_prompts} x K {launch.interval}:",
        "OpenRLHF goes once through its prompts.",
        f"The dataset needs those {samples} prompts. With fewer, lower data.max_samples to a",
        f"multiple of {launch.rollout_prompts} and raise train.num_episodes so that their "
        f"product is {samples}.",
        "Micro-batches may be raised for speed as long as they divide the share of one device.",
    ]
    if launch.settings.lag:
        lines += [
            f"The vLLM engines need {launch.devices} devices of their own: rollouts run ahead of "
            f"the trainer by {launch.settings.lag:g} steps",
            f"= async_queue_size {int(launch.settings.lag) // launch.interval} x K "
            f"{launch.interval}.",
        ]
    return [*lines, *LEFT_OUT]
