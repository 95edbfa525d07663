#!/usr/bin/env bash
# GRPO with ms-swift. Set MODEL, DATASET and REWARD, and add arguments of your own:
#   bash ms_swift_grpo.sh --external_plugins reward.py --use_vllm true --vllm_mode colocate
#
# Refresh interval K = {interval_counted} = {minibatches_counted} x {epochs_counted}:
#   mini-batches {minibatches_per_refresh} = steps_per_generation {rounds} / gradient_accumulation_steps {accumulation}
#   epochs {epochs_per_refresh} = num_iterations
# One optimizer step: {prompts} prompts x {group_size} completions = {completions}
#   = per_device_train_batch_size {batch} x gradient_accumulation_steps {accumulation} x NPROC_PER_NODE {devices}
# save_steps: the last checkpoint is that of the run's end; raise it to save disk space.
# For less memory divide per_device_train_batch_size and multiply
# gradient_accumulation_steps and steps_per_generation by one number.
# The dataset needs at least {prompts_counted}, those of one batch of rollouts.
# Not among the settings that the advisor knows, so left at the trainer's defaults: weight
# decay (0.1 here), Adam's second moment (0.95 here), gradient clipping, temperature (0.9 here).
# Set them as your pilots had them.
set -euo pipefail
MODEL={model}
DATASET="${{DATASET:?set DATASET to the name or file of a dataset of prompts}}"
REWARD="${{REWARD:?set REWARD to the name of a reward function, such as accuracy}}"
arguments=(
  --rlhf_type grpo
  --model "$MODEL"
  --dataset "$DATASET"
  --reward_funcs "$REWARD"
  --num_generations {group_size}
  --num_iterations {epochs_per_refresh}
  --steps_per_generation {rounds}
  --gradient_accumulation_steps {accumulation}
  --per_device_train_batch_size {batch}
  --max_steps {steps}
  --learning_rate {learning_rate}
  --lr_scheduler_type {schedule}
  --warmup_steps {warmup_steps}
  --beta {kl_coefficient}
  --epsilon {clip_low}
  --epsilon_high {clip_high}
  --scale_rewards {advantage_scaling}
  --loss_type {loss_averaging}
  --optim {optimizer}
  --optim_args momentum={sgd_momentum}
  --adam_beta1 {beta1}
  --weight_decay {weight_decay}
  --tuner_type {adapter}
  --lora_rank {adapter_rank}
  --lora_alpha {adapter_alpha}
  --target_modules {targets}
  --torch_dtype {precision}
  --max_length {max_prompt_length}
  --max_completion_length {max_completion_length}
  --logging_steps 1
  --save_steps {saved_steps}
  # {asked}
)
NPROC_PER_NODE={devices} swift rlhf "${{arguments[@]}}" "$@"
