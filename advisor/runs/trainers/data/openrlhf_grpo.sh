#!/usr/bin/env bash
# GRPO with OpenRLHF. Set MODEL, PROMPT_DATA and REWARD, and add flags of your own:
#   bash openrlhf_grpo.sh --data.input_key KEY --data.label_key KEY --data.apply_chat_template
#
# Refresh interval K = {interval_counted} = {minibatches_counted} x {epochs_counted}:
#   mini-batches {minibatches_per_refresh} = rollout.batch_size {rollout_prompts} prompts x n_samples_per_prompt {group_size} / train.batch_size {completions}
#   epochs {epochs_per_refresh} = train.max_epochs
# One optimizer step: {prompts} prompts x {group_size} completions = train.batch_size {completions},
#   on actor.num_nodes x actor.num_gpus_per_node = {devices} in all
# {steps} optimizer steps = data.max_samples {samples} / rollout.batch_size {rollout_prompts} x K {interval}:
# OpenRLHF goes once through its prompts.
# The dataset needs those {samples} prompts. With fewer, lower data.max_samples to a
# multiple of {rollout_prompts} and raise train.num_episodes so that their product is {samples}.
# ckpt.save_steps counts batches of rollouts. The last checkpoint is that of the run's end.
# Micro-batches may be raised for speed as long as they divide the share of one device.
# The vLLM engines need {own_devices} devices of their own: rollouts run ahead of the trainer by {steps_ahead} steps
# = async_queue_size {queue} x K {interval}.
# Not among the settings that the advisor knows, so left at the trainer's defaults: weight
# decay, Adam's second moment, gradient clipping, temperature.
# Set them as your pilots had them.
set -euo pipefail
MODEL={model}
PROMPT_DATA="${{PROMPT_DATA:?set PROMPT_DATA to the name or file of a dataset of prompts}}"
REWARD="${{REWARD:?set REWARD to a Python file with reward_func or the URL of a server}}"
arguments=(
  --data.prompt_dataset "$PROMPT_DATA"
  --data.max_samples {samples}
  --train.num_episodes 1
  --rollout.batch_size {rollout_prompts}
  --rollout.n_samples_per_prompt {group_size}
  --train.batch_size {completions}
  --train.max_epochs {epochs_per_refresh}
  --rollout.micro_batch_size 1
  --train.micro_batch_size 1
  --rollout.max_new_tokens {max_completion_length}
  --data.max_len {both_lengths}
  --actor.optim adam
  --actor.adam.lr {learning_rate}
  --actor.adam.betas {momentum} 0.95
  --actor.lr_scheduler {schedule}
  --actor.lr_warmup_ratio {warmup_ratio}
  --actor.adam.weight_decay {weight_decay}
  --algo.advantage.estimator {advantage_scaling}
  --algo.kl.init_coef {kl_coefficient}
  --actor.eps_clip_low_high {clip_low} {clip_high}
  --actor.policy_loss_type ppo
  --actor.loss_agg_mode {loss_averaging}
  --algo.kl.{use_loss}
  --algo.kl.estimator {kl_estimator}
  --actor.model_name_or_path "$MODEL"
  --reward.remote_url "$REWARD"
  --ds.lora.rank {adapter_rank}
  --ds.lora.alpha {adapter_alpha}
  --ds.lora.target_modules {targets}
  --ds.param_dtype {precision}
  --actor.num_nodes {nodes} --actor.num_gpus_per_node {per_node}
  --ref.num_nodes {nodes} --ref.num_gpus_per_node {per_node}
  --vllm.num_engines {devices} --vllm.tensor_parallel_size 1
  --ckpt.save_steps {saved_every}
  --train.colocate_all --ds.enable_sleep
  --vllm.{engine_sleep}
  --vllm.gpu_memory_utilization {shared_memory}
  --train.{async_enable}
  --train.async_queue_size {queue}
  # {asked}
)
python3 -m openrlhf.cli.train_ppo_ray "${{arguments[@]}}" "$@"
