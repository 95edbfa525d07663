"""Keys of verl and its forks: Logic-RL, verl-agent, rLLM, EasyR1."""

from __future__ import annotations

import numpy as np

from advisor.runs.logfiles.table import Table
from advisor.runs.trainers.derived import Derived
from advisor.runs.trainers.key_table import KeyTable
from advisor.runs.trainers.verl.settings import derive

KL_COEFFICIENTS = ("actor/kl_coef", "actor/reward_kl_penalty_coeff", "critic/kl_coeff")
"""Coefficients that verl logs beside the KL terms that it uses."""

STALENESS = "training/off_policy/trajectory_staleness/mean"
"""Versions of the policy by which rollouts lag; 0 in a synchronous run."""

OBSERVED = (*KL_COEFFICIENTS, STALENESS)
"""Keys whose cells `observe` reads."""

UPDATE = ("actor/pg_loss", "actor/ppo_kl", "actor/pg_clipfrac", "actor/grad_norm")
"""Keys of every update; a log with all of them was not thinned out by an export."""

KL_TERMS = ("actor/kl_loss", "actor/reward_kl_penalty", "critic/kl", "actor/kl_penalty")


def observe(table: Table) -> Derived:
    """KL coefficient and lag, where the rows show them."""
    facts: dict[str, object] = {}
    arithmetic: dict[str, str] = {}
    values = {key: table.column(key) for key in KL_COEFFICIENTS if table.has(key).any()}
    finite = {key: column[np.isfinite(column)] for key, column in values.items()}
    # verl averages the coefficient over mini-batches: 0.0010000000000000005.
    constant = {
        key: float(f"{float(np.median(column)):.6g}")
        for key, column in finite.items()
        if column.size and np.ptp(column) <= 1e-6 * float(np.abs(column).max())
    }
    if constant and len(constant) == len(values) and min(constant.values()) > 0:
        facts["kl_coefficient"] = float(f"{sum(constant.values()):.6g}")
        terms = " + ".join(f"{value:g} ({key})" for key, value in constant.items())
        arithmetic["kl_coefficient"] = f"kl_coefficient {terms}, the same in every row"
    elif not values and _never_logged(table, KL_TERMS):
        facts["kl_coefficient"] = 0.0
        arithmetic["kl_coefficient"] = (
            f"kl_coefficient 0: rows with {UPDATE[0]} have no {KL_TERMS[0]} and no {KL_TERMS[1]}, "
            "which verl logs where a KL term is used"
        )
    stale = table.column(STALENESS)
    stale = stale[np.isfinite(stale)]
    if stale.size and not stale.any():
        facts["lag"] = 0.0
        arithmetic["lag"] = f"lag 0: {STALENESS} is 0 in every row"
    return Derived(facts, arithmetic)


def _never_logged(table: Table, keys: tuple[str, ...]) -> bool:
    """Whether complete rows of updates lack all of these keys."""
    updates = np.logical_and.reduce([~table.cut, *(table.has(key) for key in UPDATE)])
    return bool(updates.any()) and not any(table.has(key).any() for key in keys)


_SPREAD = "(?:mean|max|min|std)"

KEY_TABLE = KeyTable(
    name="verl",
    marks=(
        r"critic/(?:score|rewards|advantages|returns|values)/(?:mean|max|min)",
        r"critic/(?:vf_loss|vf_clipfrac|vpred_mean|vf_explained_var|kl|kl_coeff)",
        r"actor/(?:entropy|entropy_loss|pg_loss|pg_clipfrac(?:_lower|_higher)?|ppo_kl|kl_loss)",
        r"actor/(?:kl_coef|grad_norm|lr|reward_kl_penalty(?:_coeff)?)",
        r"(?:response|prompt)_length(?:_non_aborted)?/(?:mean|max|min|clip_ratio)",
        r"timing_(?:s|per_token_ms)/.+",
        r"global_seqlen/.+",
        r"(?:perf/)?mfu/(?:actor|critic)(?:_infer)?",
        r"training/(?:global_step|rollout_probs_diff_\w+|off_policy/.+)",
        r"val-(?:core|aux)/.+",
        r"rollout_corr/.+",
        r"fully_async/.+",
    ),
    reward=(
        ("critic/score/mean",),
        ("reward/overall",),
        ("reward/mean",),
        ("reward/score/mean",),
        ("episode/reward/mean",),
    ),
    never_reward={
        "critic/rewards/mean": "it is the score minus the KL penalty",
        "critic/rewards/max": "it is the largest of a batch, minus the KL penalty",
        "critic/rewards/min": "it is the smallest of a batch, minus the KL penalty",
        "reward/rewards/mean": "it is the score minus the KL penalty",
        "critic/score/max": "it is the largest score of a batch",
        "critic/score/min": "it is the smallest score of a batch",
        "critic/returns/mean": "it is made of advantages, whose mean is about 0",
        "critic/advantages/mean": "it is about 0 whatever the policy does",
        "critic/values/mean": "it is what the value model expects",
        "actor/reward_kl_penalty": "it is the KL to the reference",
    },
    # Every count is one batch of rollouts, however many mini-batches are cut from it. In the
    # fully asynchronous trainer training/global_step counts local updates and step does not.
    refreshes=("step", "training/global_step", "_step"),
    # MLflow allows no "@" in a name.
    evaluations=(
        r"val-core/.+/acc/mean(?:@|_at_)\d+",
        r"val-core/.+/(?:reward|score)/mean(?:@|_at_)\d+",
        r"val-core/.+/mean(?:@|_at_)\d+",
        r"val/reward_score",
        r"val/(?:.+/)?test_score(?:/.+)?",
        r"val-aux/.+/(?:reward|score)/mean(?:@|_at_)\d+",
        r"val/success_rate",
    ),
    series={
        "entropy": ("actor/entropy", "actor/entropy_loss"),
        "gradient_norm": ("actor/grad_norm",),
        "clip_share": ("actor/pg_clipfrac",),
        "learning_rate": ("actor/lr",),
        "kl": KL_TERMS,
        "completion_length": ("response_length/mean",),
        "truncated_share": ("response_length/clip_ratio",),
        "step_time_seconds": ("timing_s/step", "perf/time_per_step"),
        "policy_kl": ("actor/ppo_kl",),
        "mismatch_kl": ("rollout_corr/kl", "mismatch/mismatch_kl", "rollout_corr/k3_kl"),
        "importance_ess": (
            "rollout_corr/rollout_is_eff_sample_size",
            "mismatch/rollout_is_eff_sample_size",
        ),
        "loss": ("actor/pg_loss",),
    },
    parts=(
        r"(?:gdpo|reward_extra|reward_components|reward)/"
        r"(?!overall$|mean$|score/|rewards/|\w+_ratio$)(?P<name>[^/]+)(?:/mean)?"
    ),
    understood=(
        r"critic/(?:score|rewards|advantages|returns|values)/" + _SPREAD,
        r"critic/(?:vf_\w+|vpred_mean|grad_norm|lr(?:\(1e-4\))?|kl_coeff|loss|mfu)",
        r"actor/(?:pg_clipfrac_(?:lower|higher)|kl_coef|reward_kl_penalty_coeff|mfu|loss)",
        r"actor/(?:lr\(1e-4\)|sum_pi_squared|entropy_coeff|weight_decay|logprob_mean)",
        r"(?:prompt|response)_length(?:_non_aborted)?/(?:mean|max|min|clip_ratio)",
        r"val_(?:prompt|response)_length/(?:mean|max|min|clip_ratio)",
        r"response/aborted_ratio",
        r"timing(?:_s|_per_token_ms)?/.+",
        r"(?:perf|mfu|global_seqlen|num_turns|tool_call_counts|agent_loop)/.+",
        r"training/(?:epoch|num_turns/" + _SPREAD + r"|rollout_probs_diff_\w+)",
        r"training/(?:rollout_actor_probs_pearson_corr|off_policy/.+|filter_groups/.+)",
        r"training/rollout_failure/.+|validation/.+|train/num_gen_batches",
        r"(?:rollout_corr|mismatch|rollout_is|fully_async|separate_async|dynamic_resource)/.+",
        r"(?:count|static|monitor|hybrid|trainer|rollouter|processing_time|partial)/.+",
        r"(?:variance_proxy|distillation|mtp_losses|checkpoint_engine|generation_timing)/.+",
        r"rollout/(?:moe|spec_accept_\w+|tool_\w+)(?:/.+)?",
        r"gdpo/.+/(?:max|min|std)",
        r"reward/\w+_ratio|reward/(?:score|rewards)/(?:mean|max|min)",
        r"batch/solve_(?:none|all|partial)",
        r"episode/.+",
        r"val(?:-core|-aux)?/.+",
    ),
    observed=OBSERVED,
    setting_marks=(
        "actor_rollout_ref.",
        "actor_rollout_ref.model.path",
        "actor_rollout_ref.rollout.n",
        "actor_rollout_ref.rollout.name",
        "actor_rollout_ref.actor.optim.lr",
        "actor_rollout_ref.actor.ppo_mini_batch_size",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
        "actor_rollout_ref.actor.use_kl_loss",
        "actor_rollout_ref.actor.kl_loss_coef",
        "algorithm.kl_ctrl.kl_coef",
        "algorithm.use_kl_in_reward",
        "trainer.critic_warmup",
        "data.rollout_batch_size",
        "worker.actor.global_batch_size",
        "worker.actor.model.model_path",
        "worker.rollout.n",
    ),
    derive=derive,
    observe=observe,
)
