"""Supervised training of the base policies, cached in an ignored folder."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from tasks import Task
from transformer import Transformer, completion_statistics

CACHE = Path(__file__).resolve().parent / ".cache"
BATCH = 256
WARMUP_STEPS = 100
SEED = 1
# Adding modulo 97 takes longer to learn than sorting does.
STEPS = {
    "sort": {"xs": 1500, "s": 1200, "m": 700, "ml": 600, "l": 500, "xl": 450},
    "mod": {"xs": 4000, "s": 3000, "m": 2000, "ml": 1600, "l": 1500, "xl": 1200},
    "reverse": {"xs": 1500, "s": 1200, "m": 700, "ml": 500, "l": 500, "xl": 400},
    "running": {"xs": 3000, "s": 3000, "m": 2000, "ml": 1000, "l": 1500, "xl": 600},
}
LEARNING_RATE = {"xs": 4e-3, "s": 3e-3, "m": 2e-3, "ml": 1e-3, "l": 1e-3, "xl": 1e-3}


def pretrain(task: Task, size: str, steps: int | None = None) -> Transformer:
    """Train a base on the supervised mixture, or load it from the cache.

    With a number of steps these are trained, and the cache is left alone.
    """
    path = CACHE / f"{task.name}_{size}.pt"
    model = Transformer(size)
    if steps is None and path.exists():
        model.load_state_dict(torch.load(path, weights_only=True))
        return model
    total, peak = steps or STEPS[task.name][size], LEARNING_RATE[size]
    generator = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.0)
    for step in range(total):
        decay = 0.5 + 0.5 * math.cos(math.pi * step / total)
        for group in optimizer.param_groups:
            group["lr"] = peak * min(1.0, (step + 1) / WARMUP_STEPS) * decay
        index = task.draw(BATCH, generator)
        targets = task.demonstrations(index, generator)
        log_probabilities, _ = completion_statistics(model, task.prompts(index), targets)
        optimizer.zero_grad()
        (-log_probabilities.mean()).backward()
        optimizer.step()
    if steps is None:
        CACHE.mkdir(exist_ok=True)
        torch.save(model.state_dict(), path)
    return model
