#!/usr/bin/env bash
# GRPO with verl. Set MODEL, TRAIN_FILES and VAL_FILES, and add overrides of your own:
#   bash verl_grpo.sh reward.custom_reward_function.path=REWARD.py
# A reward function is needed for data sources that verl has none for.
#
# Refresh interval K = {interval_counted} = {minibatches_counted} x {epochs_counted}:
#   mini-batches {minibatches_per_refresh} = data.train_batch_size {rollout_prompts} / ppo_mini_batch_size {prompts}, both in prompts
#   epochs {epochs_per_refresh} = ppo_epochs
# One optimizer step: {prompts} prompts x {group_size} completions (rollout.n) = {completions},
#   on trainer.nnodes x trainer.n_gpus_per_node = {devices} in all
# {steps} optimizer steps = total_training_steps {refreshes} x K {interval}: verl counts batches of rollouts,
# and moves its learning rate once per batch, so warm-up and decay go in stairs of K steps.
# trainer.save_freq counts those batches, too. The last checkpoint is that of the run's end.
# Micro-batches (..._per_gpu) may be raised for speed; they change no update.
# The dataset needs at least {prompts_counted}, those of one batch of rollouts.
# Not among the settings that the advisor knows, so left at the trainer's defaults: weight
# decay, Adam's second moment, gradient clipping, temperature.
# Set them as your pilots had them.
set -euo pipefail
MODEL={model}
TRAIN_FILES="${{TRAIN_FILES:?set TRAIN_FILES to a parquet file of prompts}}"
VAL_FILES="${{VAL_FILES:?set VAL_FILES to a parquet file of held-out prompts}}"
arguments=(
  data.train_files="$TRAIN_FILES"
  data.val_files="$VAL_FILES"
  data.train_batch_size={rollout_prompts}
  actor_rollout_ref.rollout.n={group_size}
  actor_rollout_ref.actor.ppo_mini_batch_size={prompts}
  actor_rollout_ref.actor.ppo_epochs={epochs_per_refresh}
  trainer.total_training_steps={refreshes}
  trainer.total_epochs={refreshes}
  data.max_prompt_length={max_prompt_length}
  data.max_response_length={max_completion_length}
  actor_rollout_ref.actor.optim.optimizer={optimizer}
  actor_rollout_ref.actor.optim.lr={learning_rate}
  {moments}
  actor_rollout_ref.actor.optim.lr_scheduler_type={schedule}
  actor_rollout_ref.actor.optim.lr_warmup_steps={warmup}
  actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.0
  actor_rollout_ref.actor.optim.min_lr_ratio=0.0
  algorithm.adv_estimator={advantage_scaling}
  algorithm.norm_adv_by_std_in_grpo={by_spread}
  algorithm.use_kl_in_reward=False
  actor_rollout_ref.actor.use_kl_loss={has_kl}
  actor_rollout_ref.actor.kl_loss_coef={kl_of_loss}
  actor_rollout_ref.actor.clip_ratio_low={clip_low}
  actor_rollout_ref.actor.clip_ratio_high={clip_high}
  actor_rollout_ref.actor.policy_loss.loss_mode={loss_mode}
  actor_rollout_ref.actor.loss_agg_mode={loss_averaging}
  actor_rollout_ref.model.path="$MODEL"
  actor_rollout_ref.model.lora_rank={adapter_rank}
  actor_rollout_ref.model.lora_alpha={adapter_alpha}
  {targets}
  actor_rollout_ref.rollout.load_format={load_format}
  actor_rollout_ref.actor.fsdp_config.dtype={precision}
  actor_rollout_ref.rollout.dtype={precision}
  actor_rollout_ref.rollout.name=vllm
  actor_rollout_ref.rollout.tensor_model_parallel_size=1
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1
  actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1
  trainer.nnodes={nodes}
  trainer.n_gpus_per_node={per_node}
  trainer.val_before_train=False
  trainer.save_freq={saved_every}
  'trainer.logger=[console]'
  # {asked}
)
python3 -m verl.trainer.main_ppo "${{arguments[@]}}" "$@"
