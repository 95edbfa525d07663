"""What tests of trainers have in common."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="session")
def tiny_trainer():
    """TRL's trainer of a random model, small enough for a test. Needs the extra."""
    trl = pytest.importorskip("trl")
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {word: place for place, word in enumerate(["<pad>", "<eos>", *"abcdefgh"])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(tokenizer)}

    def made(reward, config, **more):
        return trl.GRPOTrainer(
            model=LlamaForCausalLM(LlamaConfig(**size, **heads)),
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list([{"prompt": letter} for letter in "abcdefgh"]),
            processing_class=tokenizer,
            **more,
        )

    return made
