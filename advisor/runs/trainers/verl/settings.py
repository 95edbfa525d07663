"""Settings of verl and EasyR1 in the package's names, each with its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.values import literal
from advisor.runs.trainers.verl.derivation import ACTOR, OPTIM, SettingsDerivation, bare_name
from advisor.runs.trainers.verl.schedule import put_batches, put_lag, put_schedule

SCALED_BY_GROUP = ("grpo", "grpo_vectorized", "grpo_passk")
SCALED_BY_BATCH = ("reinforce_plus_plus", "reinforce_plus_plus_baseline", "gae")
NOT_SCALED = ("rloo", "rloo_vectorized", "remax", "opo")
"""Advantage estimators, by what they divide the advantages by."""

OVERRIDE = f"{OPTIM}override_optimizer_config."
MEGATRONS_MOMENTUM = 0.9

MODEL = "actor_rollout_ref.model."

AVERAGING = {
    "token-mean": "token",
    "seq-mean-token-mean": "sequence",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-sum-norm": "fixed_length",
}
"""Modes of ``agg_loss``; ``token-sum`` is no mean."""

PRECISION_KEYS = (
    f"{ACTOR}fsdp_config.dtype",
    f"{ACTOR}fsdp_config.mixed_precision.param_dtype",
    f"{ACTOR}megatron.dtype",
)
"""Where the actor's is told, in the newest releases first."""

PRECISIONS = {
    **dict.fromkeys(("bf16", "bfloat16"), "bf16"),
    **dict.fromkeys(("fp16", "float16", "half"), "fp16"),
    **dict.fromkeys(("fp32", "float32", "float"), "fp32"),
}

BOTH_SIDES = 0.2
"""verl's clip ratio on either side, where no other is set."""


def derive(settings: Mapping[str, Any]) -> Derived:
    """Derive settings from a whole or partial verl configuration."""
    derivation = SettingsDerivation(settings)
    _take_over(derivation)
    put_batches(derivation)
    put_lag(derivation)
    put_schedule(derivation)
    _put_optimizer(derivation)
    _put_kl(derivation)
    _put_clip(derivation)
    _put_advantage(derivation)
    _put_adapter(derivation)
    _put_averaging(derivation)
    _put_precision(derivation)
    _put_names(derivation)
    return derivation.derived()


def _take_over(derivation: SettingsDerivation) -> None:
    rate = derivation.number(f"{OPTIM}lr")
    if rate is not None and rate > 0:
        derivation.take_over("learning_rate", rate, f"{OPTIM}lr")
    for ours, name, least in (
        ("group_size", "actor_rollout_ref.rollout.n", 1),
        ("max_prompt_length", "actor_rollout_ref.rollout.prompt_length", 1),
        ("max_prompt_length", "data.max_prompt_length", 1),
        ("max_completion_length", "actor_rollout_ref.rollout.response_length", 1),
        ("max_completion_length", "data.max_response_length", 1),
        ("seed", "data.seed", 0),
    ):
        value = derivation.whole(name, least)
        if value is not None:
            derivation.take_over(ours, value, name)


def _put_optimizer(derivation: SettingsDerivation) -> None:
    name = derivation.word(f"{OPTIM}optimizer")
    if name is not None:
        bare = name.lower().lstrip("_")
        kind = next((kind for kind in ("adamw", "adam", "sgd") if bare.startswith(kind)), None)
        if kind is None:
            derivation.assume(f"optimizer {name} is none of AdamW, Adam and SGD and was left out")
        else:
            derivation.put("optimizer", kind, f"optimizer {kind} ({name})")
        if kind == "sgd":
            _put_momentum_of_sgd(derivation, name)
            return
    momenta = derivation.listed(f"{OVERRIDE}betas") or derivation.listed(f"{OPTIM}betas")
    decay = literal(momenta[0]) if len(momenta) == 2 else None
    if isinstance(decay, float) and 0 <= decay < 1:
        derivation.put("momentum", decay, f"momentum {decay:g} (first of betas)")


def _put_momentum_of_sgd(derivation: SettingsDerivation, name: str) -> None:
    # FSDP takes the name of a class in torch.optim; in lower case only Megatron has it.
    is_megatron = name == "sgd"
    key = f"{OVERRIDE}sgd_momentum" if is_megatron else f"{OVERRIDE}momentum"
    momentum = derivation.number(key)
    if momentum is not None:
        derivation.take_over("momentum", momentum, key)
    elif is_megatron:
        read = f"sgd_momentum {MEGATRONS_MOMENTUM:g} (Megatron's default)"
        derivation.assume(f"{read}, which the settings do not state")
        derivation.put("momentum", MEGATRONS_MOMENTUM, read)


def _put_kl(derivation: SettingsDerivation) -> None:
    if derivation.is_easyr1:
        weight = derivation.number("algorithm.kl_coef")
        if derivation.is_on("algorithm.disable_kl"):
            derivation.put("kl_coefficient", 0.0, "kl_coefficient 0 (disable_kl True)")
        elif weight is not None and weight >= 0:
            derivation.take_over("kl_coefficient", weight, "algorithm.kl_coef")
        return
    in_loss = derivation.is_on(f"{ACTOR}use_kl_loss")
    in_reward = derivation.is_on("algorithm.use_kl_in_reward")
    if in_reward is None and not in_loss and derivation.is_whole:
        # Versions without this switch penalise the reward whenever the loss has no KL term.
        in_reward = True
    terms = [derivation.factor(f"{ACTOR}kl_loss_coef")] if in_loss else []
    if in_reward:
        terms.append(derivation.factor("algorithm.kl_ctrl.kl_coef"))
        if derivation.word("algorithm.kl_ctrl.type") == "adaptive":
            derivation.assume("kl_coefficient: where it starts; kl_ctrl.type adaptive changes it")
    if terms:
        total = sum(value for value, _ in terms)
        how = " + ".join(read for _, read in terms)
        if total >= 0:
            derivation.put(
                "kl_coefficient", total, how if len(terms) == 1 else f"{how} = {total:g}"
            )
        return
    if in_loss is None and in_reward is None:
        return
    stated = {"use_kl_loss": in_loss, "use_kl_in_reward": in_reward}
    for name, value in stated.items():
        if value is None:
            derivation.assume(f"{name} False (verl's default), which the settings do not state")
    names = " and ".join(name for name, value in stated.items() if value is not None)
    derivation.put("kl_coefficient", 0.0, f"kl_coefficient 0 ({names} False)")


def _put_clip(derivation: SettingsDerivation) -> None:
    both = derivation.number(f"{ACTOR}clip_ratio")
    sides = {side: derivation.number(f"{ACTOR}clip_ratio_{side}") for side in ("low", "high")}
    has_sides = any(value is not None for value in sides.values())
    if both not in (None, BOTH_SIDES) and not has_sides and not derivation.is_whole:
        derivation.assume(
            f"clip_ratio {both:g} was left out: newer versions of verl clip at clip_ratio_low and "
            "clip_ratio_high, which the settings do not state"
        )
        return
    for side, value in sides.items():
        name = f"{ACTOR}clip_ratio_{side}"
        if value is None and (derivation.is_whole or not has_sides):
            value, name = both, f"{ACTOR}clip_ratio"
        if value is not None and value > 0:
            derivation.take_over(f"clip_{side}", value, name)


def _put_advantage(derivation: SettingsDerivation) -> None:
    estimator = (derivation.word("algorithm.adv_estimator") or "").lower().rpartition(".")[2]
    if estimator in SCALED_BY_GROUP:
        by_spread = derivation.is_on("algorithm.norm_adv_by_std_in_grpo")
        read = f"norm_adv_by_std_in_grpo {by_spread}"
        if by_spread is None:
            read = "norm_adv_by_std_in_grpo True (verl's default)"
            derivation.assume(f"{read}, which the settings do not state")
        scaling = "none" if by_spread is False else "group"
        derivation.put("advantage_scaling", scaling, f"adv_estimator {estimator}, {read}")
    elif estimator in SCALED_BY_BATCH:
        derivation.put("advantage_scaling", "batch", f"adv_estimator {estimator} whitens the batch")
    elif estimator in NOT_SCALED:
        derivation.put("advantage_scaling", "none", f"adv_estimator {estimator} divides by nothing")
    if estimator == "gae":
        derivation.assume("adv_estimator gae is PPO with a value model, not GRPO")
    loss = derivation.word(f"{ACTOR}policy_loss.loss_mode")
    if loss is not None:
        derivation.put("importance_ratio", loss != "gpg", f"importance_ratio from loss_mode {loss}")


def _put_adapter(derivation: SettingsDerivation) -> None:
    for name in (f"{MODEL}lora.rank", f"{MODEL}lora_rank"):
        rank = derivation.whole(name, 0)
        if rank is not None:
            kind = "lora" if rank else "full"
            derivation.put("adapter", kind, f"adapter {kind} ({derivation.call(name)} {rank})")
            if rank:
                derivation.take_over("adapter_rank", rank, name)
                _put_shape_of_adapter(derivation)
                return


def _put_shape_of_adapter(derivation: SettingsDerivation) -> None:
    for name in (f"{MODEL}lora.alpha", f"{MODEL}lora_alpha"):
        alpha = derivation.whole(name)
        if alpha is not None:
            derivation.take_over("adapter_alpha", alpha, name)
            break
    derivation.take_targets(f"{MODEL}lora.target_modules", f"{MODEL}target_modules")


def _put_averaging(derivation: SettingsDerivation) -> None:
    mode = derivation.word(f"{ACTOR}loss_agg_mode")
    if mode in AVERAGING:
        kind = AVERAGING[mode]
        derivation.put("loss_averaging", kind, f"loss_averaging {kind} (loss_agg_mode {mode})")


def _put_precision(derivation: SettingsDerivation) -> None:
    for name in PRECISION_KEYS:
        kind = PRECISIONS.get(derivation.word(name) or "")
        if kind is not None:
            derivation.put("precision", kind, f"precision {kind} ({derivation.call(name)})")
            return


def _put_names(derivation: SettingsDerivation) -> None:
    path = derivation.word("actor_rollout_ref.model.path")
    if path is not None:
        derivation.put("model", bare_name(path), f"model {bare_name(path)} (path {path[:200]})")
    files = derivation.listed("data.train_files")
    tasks = dict.fromkeys(bare_name(file) for file in files)
    if tasks:
        task = "+".join(tasks)[:200]
        derivation.put("task", task, f"task {task} (train_files {', '.join(files)[:200]})")
