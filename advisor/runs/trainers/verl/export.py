"""verl: the settings as Hydra overrides of ``verl.trainer.main_ppo``, in a shell script.

Checked against verl 0.9.1 (and its main branch at 1dda039): keys in
``verl/trainer/config/_generated_ppo_trainer.yaml``, which composes ``ppo_trainer.yaml``; batches in
``verl/trainer/ppo/v1/trainer_base.py`` (``_update_actor`` multiplies ``ppo_mini_batch_size`` by
``rollout.n``) and ``verl/workers/engine_workers.py`` (``train_mini_batch``, which also moves the
learning rate once per batch of rollouts); schedules in
``verl/workers/engine/fsdp/transformer_impl.py``; optimizers in
``verl/workers/config/optimizer.py``.

============================  ==================================================================
setting                       override
============================  ==================================================================
P prompts per step            ``actor_rollout_ref.actor.ppo_mini_batch_size`` (counts prompts)
mini-batches per refresh      ``data.train_batch_size`` (prompts) / ``ppo_mini_batch_size``
epochs per refresh            ``actor_rollout_ref.actor.ppo_epochs``
group size G                  ``actor_rollout_ref.rollout.n``
optimizer steps               ``trainer.total_training_steps`` (batches of rollouts) x K
learning rate                 ``actor_rollout_ref.actor.optim.lr``
schedule, warm-up             ``lr_scheduler_type``, ``lr_warmup_steps`` (batches of rollouts)
momentum                      ``betas``; with SGD ``override_optimizer_config``
KL coefficient                ``kl_loss_coef`` with ``use_kl_loss``, not in the reward
clip low, high                ``clip_ratio_low``, ``clip_ratio_high``
advantage scaling             "group" and "none": ``adv_estimator=grpo`` with and without
                              ``norm_adv_by_std_in_grpo``; "batch":
                              ``reinforce_plus_plus_baseline``, which whitens the batch
importance ratio              ``policy_loss.loss_mode``: ``vanilla``, or ``gpg`` without one
loss averaging                ``loss_agg_mode`` (``agg_loss`` in ``verl/trainer/ppo/core_algos.py``)
precision                     ``fsdp_config.dtype``, and ``rollout.dtype`` of the engine
LoRA                          ``model.lora_rank``, ``lora_alpha``, ``target_modules``
token limits                  ``data.max_prompt_length``, ``data.max_response_length``
============================  ==================================================================
"""

from __future__ import annotations

import shlex

from advisor.errors import InputError
from advisor.runs.settings import Settings
from advisor.runs.trainers.launch import Carried, Launch
from advisor.runs.trainers.shell_script import from_environment, write_script

CHECKED = "verl 0.9.1"
FILE_NAME = "verl_grpo.sh"
COMMAND = "python3 -m verl.trainer.main_ppo"
ACTOR = "actor_rollout_ref.actor."
OPTIM = f"{ACTOR}optim."
SECOND_MOMENT = 0.999
"""verl's default; both decays are one setting."""

OPTIMIZERS = {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}
AVERAGING = {
    "token": "token-mean",
    "sequence": "seq-mean-token-mean",
    "sequence_sum": "seq-mean-token-sum",
    "fixed_length": "seq-mean-token-sum-norm",
}
PRECISIONS = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}

CARRIED = (
    Carried("loss_averaging", f"{ACTOR}loss_agg_mode=MODE", "token-mean"),
    Carried("precision", f"{ACTOR}fsdp_config.dtype=TYPE", "bfloat16"),
    Carried("max_prompt_length", "data.max_prompt_length=TOKENS", "512"),
    Carried("max_completion_length", "data.max_response_length=TOKENS", "512"),
    Carried("adapter_alpha", "actor_rollout_ref.model.lora_alpha=ALPHA", "16"),
    Carried("adapter_targets", "actor_rollout_ref.model.target_modules=[NAMES]", "all-linear"),
)

ESTIMATORS = {"group": "grpo", "none": "grpo", "batch": "reinforce_plus_plus_baseline"}


def render(launch: Launch, model: str | None) -> str:
    """Write the overrides as a script."""
    launch.check_synchronous("verl")
    if launch.settings.schedule not in ("constant", "cosine"):
        raise InputError(
            f"verl's FSDP trainer has no {launch.settings.schedule} schedule, only constant and "
            "cosine",
            key="schedule",
            advice="Choose one of those, or export to trl or openrlhf",
        )
    variables = {
        "MODEL": from_environment(model, "MODEL", "the name or folder of a model"),
        "TRAIN_FILES": from_environment(None, "TRAIN_FILES", "a parquet file of prompts"),
        "VAL_FILES": from_environment(None, "VAL_FILES", "a parquet file of held-out prompts"),
    }
    overrides = [*_batches(launch), *_optimizer(launch), *_loss(launch), *_machine(launch)]
    asked = launch.asks(CARRIED, {"loss_averaging": AVERAGING}, "verl")
    return write_script(_comments(launch), variables, COMMAND, overrides, asked)


def _batches(launch: Launch) -> list[str]:
    lines = [
        'data.train_files="$TRAIN_FILES"',
        'data.val_files="$VAL_FILES"',
        f"data.train_batch_size={launch.rollout_prompts}",
        f"actor_rollout_ref.rollout.n={launch.group_size}",
        f"{ACTOR}ppo_mini_batch_size={launch.prompts}",
        f"{ACTOR}ppo_epochs={launch.epochs}",
        f"trainer.total_training_steps={launch.refreshes('verl')}",
        # It stops at whichever comes first; an epoch has at least one batch.
        f"trainer.total_epochs={launch.refreshes('verl')}",
    ]
    if launch.settings.max_prompt_length is not None:
        lines.append(f"data.max_prompt_length={launch.settings.max_prompt_length}")
    if launch.settings.max_completion_length is not None:
        lines.append(f"data.max_response_length={launch.settings.max_completion_length}")
    return lines


def _optimizer(launch: Launch) -> list[str]:
    momentum = launch.settings.momentum
    moments = f"betas=[{momentum!r},{SECOND_MOMENT}]"
    if launch.settings.optimizer == "sgd":
        moments = f"override_optimizer_config={{momentum:{momentum!r}}}"
    return [
        f"{OPTIM}optimizer={OPTIMIZERS[launch.settings.optimizer]}",
        f"{OPTIM}lr={launch.learning_rate!r}",
        shlex.quote(f"{OPTIM}{moments}"),
        f"{OPTIM}lr_scheduler_type={launch.settings.schedule}",
        f"{OPTIM}lr_warmup_steps={launch.warmup_refreshes('verl')}",
        f"{OPTIM}lr_warmup_steps_ratio=0.0",
        f"{OPTIM}min_lr_ratio=0.0",
    ]


def _loss(launch: Launch) -> list[str]:
    settings = launch.settings
    scaling = settings.advantage_scaling
    has_kl = bool(settings.kl_coefficient)
    loss = "gpg" if settings.importance_ratio is False else "vanilla"
    averaging = AVERAGING.get(settings.loss_averaging or "")
    return [
        f"algorithm.adv_estimator={ESTIMATORS[scaling]}",
        f"algorithm.norm_adv_by_std_in_grpo={scaling == 'group'}",
        "algorithm.use_kl_in_reward=False",
        f"{ACTOR}use_kl_loss={has_kl}",
        *([f"{ACTOR}kl_loss_coef={settings.kl_coefficient!r}"] if has_kl else []),
        f"{ACTOR}clip_ratio_low={settings.clip_low!r}",
        f"{ACTOR}clip_ratio_high={settings.clip_high!r}",
        f"{ACTOR}policy_loss.loss_mode={loss}",
        *([f"{ACTOR}loss_agg_mode={averaging}"] if averaging else []),
    ]


def _adapter(settings: Settings) -> list[str]:
    model = "actor_rollout_ref.model."
    if settings.adapter != "lora":
        return [f"{model}lora_rank=0"]
    lines = [f"{model}lora_rank={settings.adapter_rank}"]
    if settings.adapter_alpha is not None:
        lines.append(f"{model}lora_alpha={settings.adapter_alpha}")
    if settings.adapter_targets is not None:
        modules = settings.adapter_targets
        named = modules if modules == "all-linear" else f"[{modules}]"
        lines.append(shlex.quote(f"{model}target_modules={named}"))
    # A base model under LoRA is never sent to vLLM, so that must load it itself.
    return [*lines, "actor_rollout_ref.rollout.load_format=safetensors"]


def _precision(settings: Settings) -> list[str]:
    """Numbers of the actor and, so that both score a token alike, of the engine."""
    if settings.precision is None:
        return []
    kind = PRECISIONS[settings.precision]
    return [f"{ACTOR}fsdp_config.dtype={kind}", f"actor_rollout_ref.rollout.dtype={kind}"]


def _machine(launch: Launch) -> list[str]:
    settings = launch.settings
    return [
        'actor_rollout_ref.model.path="$MODEL"',
        *_adapter(settings),
        *_precision(settings),
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1",
        f"{ACTOR}ppo_micro_batch_size_per_gpu=1",
        "trainer.nnodes=1",
        f"trainer.n_gpus_per_node={launch.devices}",
        "trainer.val_before_train=False",
        "'trainer.logger=[console]'",
    ]


def _comments(launch: Launch) -> list[str]:
    refreshes = launch.refreshes("verl")
    return [
        "GRPO with verl. Set MODEL, TRAIN_FILES and VAL_FILES, and add overrides of your own:",
        f"  bash {FILE_NAME} reward.custom_reward_function.path=REWARD.py",
        "A reward function is needed for data sources that verl has none for.",
        "",
        *launch.refresh_comments(
            f"data.train_batch_size {launch.rollout_prompts} / "
            f"ppo_mini_batch_size {launch.prompts}, both in prompts",
            "ppo_epochs",
        ),
        f"One optimizer step: {launch.prompts} prompts x {launch.group_size} completions "
        f"(rollout.n) = {launch.completions},",
        f"  on trainer.nnodes x trainer.n_gpus_per_node = {launch.devices} in all",
        f"{launch.steps} optimizer steps = total_training_steps {refreshes} x K {launch.interval}: "
        "verl counts batches of rollouts,",
        "and moves its learning rate once per batch, so warm-up and decay go in stairs of K steps.",
        "Micro-batches (..._per_gpu) may be raised for speed; they change no update.",
        *launch.dataset_comments,
    ]
