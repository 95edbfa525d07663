#!/usr/bin/env bash
# GRPO with NeMo-RL, from the folder of its repository. Set MODEL, and add overrides of your own:
#   bash nemo_rl_grpo.sh data.train.dataset_name=gsm8k env.math.num_workers=8
#
# Refresh interval K = {interval_counted} = {minibatches_counted} x {epochs_counted}:
#   mini-batches {minibatches_per_refresh} = num_prompts_per_step {rollout_prompts} x num_generations_per_prompt {group_size} / train_global_batch_size {completions}
# One optimizer step: {prompts} prompts x {group_size} completions = train_global_batch_size {completions},
#   on cluster.num_nodes x cluster.gpus_per_node = {devices} in all
# {steps} optimizer steps = max_num_steps {refreshes} x K {interval}: NeMo-RL counts batches of rollouts,
# and moves its learning rate once per batch, so warm-up and decay go in stairs of K steps.
# checkpointing.save_period counts those batches, too. The last checkpoint is that of the run's end.
# The baseline of an advantage is the mean of the whole group, as in TRL and verl.
# The dataset needs at least {prompts_counted}, those of one batch of rollouts.
# Not among the settings that the advisor knows, so left at the trainer's defaults: weight
# decay, Adam's second moment, gradient clipping, temperature.
# Set them as your pilots had them.
set -euo pipefail
MODEL={model}
arguments=(
  policy.model_name="$MODEL"
  grpo.num_prompts_per_step={rollout_prompts}
  grpo.num_generations_per_prompt={group_size}
  policy.train_global_batch_size={completions}
  policy.train_micro_batch_size=1
  grpo.max_num_steps={refreshes}
  grpo.max_num_epochs={refreshes}
  grpo.normalize_rewards={advantage_scaling}
  grpo.use_leave_one_out_baseline=false
  grpo.async_grpo.enabled=false
  policy.optimizer.name=torch.optim.AdamW
  policy.optimizer.kwargs.lr={learning_rate}
  {moments}
  policy.optimizer.kwargs.weight_decay={weight_decay}
  {scheduler}
  loss_fn.reference_policy_kl_penalty={kl_coefficient}
  loss_fn.ratio_clip_min={clip_low}
  loss_fn.ratio_clip_max={clip_high}
  loss_fn.disable_ppo_ratio={without_ratio}
  loss_fn.token_level_loss={loss_averaging}
  policy.precision={precision}
  policy.max_total_sequence_length={both_lengths}
  data.max_input_seq_length={max_prompt_length}
  policy.generation.max_new_tokens={max_completion_length}
  policy.dtensor_cfg.lora_cfg.enabled={is_lora}
  policy.dtensor_cfg.lora_cfg.dim={adapter_rank}
  policy.dtensor_cfg.lora_cfg.alpha={adapter_alpha}
  {targets}
  policy.dtensor_cfg.lora_cfg.match_all_linear={all_linear}
  cluster.num_nodes={nodes}
  cluster.gpus_per_node={per_node}
  checkpointing.save_period={saved_every}
  # {asked}
)
uv run examples/run_grpo.py --config examples/configs/grpo_math_1B.yaml "${{arguments[@]}}" "$@"
