#!/usr/bin/env bash
# Checked against OpenRLHF 0.11.2.
# Advised by grpo-advisor 0.1.0 for tiny-m on sort, from pilots 88d49628 under priors 'small_models', seed 1.
# GRPO with OpenRLHF. Set MODEL, PROMPT_DATA and REWARD, and add flags of your own:
#   bash openrlhf_grpo.sh --data.input_key KEY --data.label_key KEY --data.apply_chat_template
#
# Refresh interval K = 2 optimizer steps = 1 mini-batches x 2 epochs:
#   mini-batches 1 = rollout.batch_size 16 prompts x n_samples_per_prompt 16 / train.batch_size 256
#   epochs 2 = train.max_epochs
# One optimizer step: 16 prompts x 16 completions = train.batch_size 256,
#   on actor.num_nodes x actor.num_gpus_per_node = 1 in all
# 120 optimizer steps = data.max_samples 960 / rollout.batch_size 16 x K 2:
# OpenRLHF goes once through its prompts.
# The dataset needs those 960 prompts. With fewer, lower data.max_samples to a
# multiple of 16 and raise train.num_episodes so that their product is 960.
# Micro-batches may be raised for speed as long as they divide the share of one device.
# Not among the settings that the advisor knows, so left at the trainer's defaults: weight
# decay, Adam's second moment, gradient clipping, temperature.
# Set them as your pilots had them.
set -euo pipefail
MODEL=${MODEL:-tiny-m}
PROMPT_DATA="${PROMPT_DATA:?set PROMPT_DATA to the name or file of a dataset of prompts}"
REWARD="${REWARD:?set REWARD to a Python file with reward_func or the URL of a server}"
arguments=(
  --data.prompt_dataset "$PROMPT_DATA"
  --data.max_samples 960
  --train.num_episodes 1
  --rollout.batch_size 16
  --rollout.n_samples_per_prompt 16
  --train.batch_size 256
  --train.max_epochs 2
  --rollout.micro_batch_size 1
  --train.micro_batch_size 1
  --rollout.max_new_tokens 8
  --actor.optim adam
  --actor.adam.lr 0.00021
  --actor.adam.betas 0.9 0.95
  --actor.lr_scheduler constant_with_warmup
  --actor.lr_warmup_ratio 0.0
  --algo.advantage.estimator group_norm
  --algo.kl.init_coef 0.0
  --actor.eps_clip_low_high 0.2 0.2
  --actor.policy_loss_type ppo
  --actor.model_name_or_path "$MODEL"
  --reward.remote_url "$REWARD"
  --ds.lora.rank 0
  --actor.num_nodes 1 --actor.num_gpus_per_node 1
  --ref.num_nodes 1 --ref.num_gpus_per_node 1
  --vllm.num_engines 1 --vllm.tensor_parallel_size 1
  --train.colocate_all --ds.enable_sleep
  --vllm.enable_sleep
  --vllm.gpu_memory_utilization 0.6
  # Not told by the pilots in words that OpenRLHF has: set it as they had it
  # --actor.loss_agg_mode MODE   (default: token-mean)
  # --ds.param_dtype TYPE   (default: bf16)
  # --data.max_len TOKENS, prompt and completion   (default: 2048)
)
python3 -m openrlhf.cli.train_ppo_ray "${arguments[@]}" "$@"
