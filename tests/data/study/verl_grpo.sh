#!/usr/bin/env bash
# Checked against verl 0.9.1.
# Advised by grpo-advisor 0.1.0 for tiny-m on sort, from pilots 88d49628 under priors 'small_models', seed 1.
# GRPO with verl. Set MODEL, TRAIN_FILES and VAL_FILES, and add overrides of your own:
#   bash verl_grpo.sh reward.custom_reward_function.path=REWARD.py
# A reward function is needed for data sources that verl has none for.
#
# Refresh interval K = 2 optimizer steps = 1 mini-batches x 2 epochs:
#   mini-batches 1 = data.train_batch_size 16 / ppo_mini_batch_size 16, both in prompts
#   epochs 2 = ppo_epochs
# One optimizer step: 16 prompts x 16 completions (rollout.n) = 256,
#   on trainer.nnodes x trainer.n_gpus_per_node = 1 in all
# 120 optimizer steps = total_training_steps 60 x K 2: verl counts batches of rollouts,
# and moves its learning rate once per batch, so warm-up and decay go in stairs of K steps.
# Micro-batches (..._per_gpu) may be raised for speed; they change no update.
# The dataset needs at least 16 prompts, those of one batch of rollouts.
# Not among the settings that the advisor knows, so left at the trainer's defaults: weight
# decay, Adam's second moment, gradient clipping, temperature.
# Set them as your pilots had them.
set -euo pipefail
MODEL=${MODEL:-tiny-m}
TRAIN_FILES="${TRAIN_FILES:?set TRAIN_FILES to a parquet file of prompts}"
VAL_FILES="${VAL_FILES:?set VAL_FILES to a parquet file of held-out prompts}"
arguments=(
  data.train_files="$TRAIN_FILES"
  data.val_files="$VAL_FILES"
  data.train_batch_size=16
  actor_rollout_ref.rollout.n=16
  actor_rollout_ref.actor.ppo_mini_batch_size=16
  actor_rollout_ref.actor.ppo_epochs=2
  trainer.total_training_steps=60
  trainer.total_epochs=60
  data.max_response_length=8
  actor_rollout_ref.actor.optim.optimizer=AdamW
  actor_rollout_ref.actor.optim.lr=0.00021
  'actor_rollout_ref.actor.optim.betas=[0.9,0.999]'
  actor_rollout_ref.actor.optim.lr_scheduler_type=constant
  actor_rollout_ref.actor.optim.lr_warmup_steps=0
  actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.0
  actor_rollout_ref.actor.optim.min_lr_ratio=0.0
  algorithm.adv_estimator=grpo
  algorithm.norm_adv_by_std_in_grpo=True
  algorithm.use_kl_in_reward=False
  actor_rollout_ref.actor.use_kl_loss=False
  actor_rollout_ref.actor.clip_ratio_low=0.2
  actor_rollout_ref.actor.clip_ratio_high=0.2
  actor_rollout_ref.actor.policy_loss.loss_mode=vanilla
  actor_rollout_ref.model.path="$MODEL"
  actor_rollout_ref.model.lora_rank=0
  actor_rollout_ref.rollout.name=vllm
  actor_rollout_ref.rollout.tensor_model_parallel_size=1
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1
  actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1
  trainer.nnodes=1
  trainer.n_gpus_per_node=1
  trainer.val_before_train=False
  'trainer.logger=[console]'
  # Not told by the pilots in words that verl has: set it as they had it
  # actor_rollout_ref.actor.loss_agg_mode=MODE   (default: token-mean)
  # actor_rollout_ref.actor.fsdp_config.dtype=TYPE   (default: bfloat16)
  # data.max_prompt_length=TOKENS   (default: 512)
)
python3 -m verl.trainer.main_ppo "${arguments[@]}" "$@"
