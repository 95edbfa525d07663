"""Keys of prime-rl."""

from __future__ import annotations

import pytest

from advisor.runs import Trainer


@pytest.mark.parametrize(
    "keys",
    [
        "step time reward/mean batch/solve_none batch/solve_all batch/effective_batch_size "
        "seq_len/mean seq_len/max prompt_len/mean completion_len/mean is_truncated/mean "
        "perf/throughput progress/ckpt_step progress/total_tokens batch/async_level "
        "batch/off_policy_level/mean time/step val_reward/mean metrics/exact",
        "step optim/lr optim/grad_norm entropy/mean loss/mean mismatch_kl/mean is_masked/mean "
        "is_masked_low/mean masked_mismatch_kl/mean unmasked_mismatch_kl/max kl_ent_ratio/mean",
        "step reward/all/mean reward/all/max solve_none/all solve_all/gsm8k decode_len/all/mean "
        "effective_batch_size/all stop_condition/all/length entropy/all/mean eval/aime/avg@8",
        "step train/agg/effective/agent/reward/mean train/agg/all/agent/solved_none "
        "train/wordle/all/player/num_turns/p90 train/agg/effective/num_total_tokens/mean "
        "off_policy/in_queue/mean eval/aime24/effective/agent/avg@4 event_loop_lag/mean",
    ],
)
def test_keys_of_four_ages_are_understood(keys: str) -> None:
    trainer = Trainer.named("prime-rl")
    bare = [key.removeprefix("train/") for key in keys.split()]
    assert [key for key in bare if not trainer.keys[0].understands(key)] == []
    assert trainer.keys[0].score(bare) >= 1
