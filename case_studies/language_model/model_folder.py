"""The weights of a model as a folder TRL opens: de-quantised, with the tokens the tasks use."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import vocabulary
from model_weights import CACHE, SMOLLM2, LanguageModel, weights_file

LINE_END = "\n"
"""Ends an answer of a model that was not trained to chat."""


def model_folder(model: LanguageModel = SMOLLM2, cache: Path = CACHE) -> Path:
    """Folder with ``config.json``, ``model.safetensors`` (float32) and the tokenizer; made once.

    The packages hold 4-bit weights: they are de-quantised as they are, so this is the public model
    up to that rounding.

    Raises
    ------
    SystemExit
        If the weights are missing or are others, or if `torch` is not installed.
    """
    folder = cache / model.name
    if folder.is_dir():
        return folder
    small, tokenizer = cut(*whole(model, cache), vocabulary.kept_tokens(model.key))
    made = Path(tempfile.mkdtemp(dir=cache))
    small.save_pretrained(made)
    tokenizer.save_pretrained(made)
    try:
        os.replace(made, folder)
    except OSError:
        # Another process was first; its folder is the same.
        shutil.rmtree(made)
    return folder


def whole(model: LanguageModel, cache: Path = CACHE) -> tuple[Any, Any]:
    """The model with all of its tokens, and its tokenizer."""
    file = weights_file(model, cache)
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        line = "pip install torch && pip install -e '.[language-model]'"
        raise SystemExit(f"{error.name} is not installed: {line}") from None
    source = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    if not model.chat:
        tokenizer.eos_token = LINE_END
    quantised = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    quantised.config.eos_token_id = tokenizer.eos_token_id
    # Qwen's file has the embedding a second time, quantised otherwise, as its output matrix.
    quantised.config.tie_word_embeddings = True
    quantised.lm_head.weight = quantised.model.embed_tokens.weight
    return quantised, tokenizer


def cut(quantised: Any, tokenizer: Any, tokens: list[int] | None) -> tuple[Any, Any]:
    """A plain model of the tensors, one that came from GGUF refuses to be saved; tokens cut."""
    small = vocabulary.cut_model(quantised, tokens or range(quantised.config.vocab_size))
    if tokens is None:
        return small, tokenizer
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    description = json.loads(tokenizer.backend_tokenizer.to_str())
    own = Tokenizer.from_str(json.dumps(vocabulary.cut_tokenizer(description, tokens)))
    special = {name: text for name, text in tokenizer.special_tokens_map.items() if text}
    texts = own.get_vocab()
    special = {n: text for n, text in special.items() if isinstance(text, str) and text in texts}
    return small, PreTrainedTokenizerFast(tokenizer_object=own, **special)
