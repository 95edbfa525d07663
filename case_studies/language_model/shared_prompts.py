"""TRL's trainer, with each prompt computed once: most of the time on a CPU goes into repeats.

Loss, advantages, optimizer, schedule and logs are TRL's own. What differs is how log-probabilities
and samples are computed: TRL repeats a prompt for each of its completions, and samples from float32
weights; here the tokens that all prompts begin with are computed once, each prompt once, and
samples are drawn from a bfloat16 copy. A test holds loss and gradient to TRL's on the same batch.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import trl
from transformers import DynamicCache

Ids = list[list[int]]


class DivergedError(RuntimeError):
    """The weights are no longer finite, so that nothing can be sampled."""


class SharedPromptTrainer(trl.GRPOTrainer):
    """`trl.GRPOTrainer` with the same loss and gradient, computed without repeating prompts."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, rollout_func=_sample, **named)
        self.sampler = _Sampler(self)

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        **_: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, None]:
        """Log-probabilities of the completions' tokens, by TRL's own signature."""
        size = batch_size or len(input_ids)
        parts = [
            self._scored(model, ids, mask, logits_to_keep, compute_entropy)
            for ids, mask in zip(input_ids.split(size), attention_mask.split(size), strict=True)
        ]
        scores = torch.cat([score for score, _ in parts])
        entropies = torch.cat([entropy for _, entropy in parts]) if compute_entropy else None
        return scores, entropies, None

    def _scored(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, kept: int, with_entropy: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probability and entropy per completion token, each shape (completions, tokens)."""
        # Lists first: an accelerator is waited for once, and not for each row.
        prompts = [
            list(itertools.compress(row, here))
            for row, here in zip(ids[:, :-kept].tolist(), mask[:, :-kept].tolist(), strict=True)
        ]
        completions = ids[:, -kept:]
        with self.accelerator.autocast():
            read = _Prompts(model, prompts)
            hidden = [read.last[:, None]]
            if kept > 1:
                hidden.append(read.states(completions[:, :-1], mask[:, -kept:-1]))
            logits = model.get_output_embeddings()(torch.cat(hidden, 1))
        scores = torch.log_softmax(logits.float() / self.temperature, -1)
        chosen = scores.gather(-1, completions[..., None])[..., 0]
        if not with_entropy:
            return chosen, chosen
        with torch.no_grad():
            return chosen, -(scores.exp() * scores).sum(-1)


class _Prompts:
    """Keys and values of prompts: what they share is computed once, then each distinct prompt."""

    def __init__(self, model: Any, prompts: Ids) -> None:
        self.body = (model.get_base_model() if hasattr(model, "get_base_model") else model).model
        device = next(model.parameters()).device
        distinct = list(dict.fromkeys(map(tuple, prompts)))
        place = {prompt: number for number, prompt in enumerate(distinct)}
        rows = torch.tensor([place[tuple(prompt)] for prompt in prompts], device=device)
        shared = _shared_tokens(distinct)
        self.cache, self.seen = DynamicCache(), 0
        self.mask = torch.ones((1, 0), dtype=torch.long, device=device)
        if shared:
            beginning = torch.tensor([distinct[0][:shared]], device=device)
            self.states(beginning, torch.ones_like(beginning))
        self._repeat(torch.zeros(len(distinct), dtype=torch.long, device=device))
        rest = [prompt[shared:] for prompt in distinct]
        width = max(map(len, rest))
        ids = torch.tensor([[0] * (width - len(one)) + list(one) for one in rest], device=device)
        here = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in rest])
        last = self.states(ids, here.to(device))[:, -1]
        self._repeat(rows)
        self.last = last[rows]

    def states(self, ids: torch.Tensor, here: torch.Tensor) -> torch.Tensor:
        """Hidden states of further tokens, shape (rows, tokens, width); the cache takes them in."""
        places = (self.mask.sum(1, keepdim=True) + here.cumsum(1) - 1).clamp(min=0)
        self.mask = torch.cat([self.mask, here], 1)
        read = self.body(
            ids,
            attention_mask=self.mask,
            position_ids=places,
            past_key_values=self.cache,
            use_cache=True,
        )
        return read.last_hidden_state

    def _repeat(self, rows: torch.Tensor) -> None:
        for layer in self.cache.layers:
            layer.keys, layer.values = layer.keys[rows], layer.values[rows]
        self.mask = self.mask[rows] if len(self.mask) > 1 else self.mask.expand(len(rows), -1)


def _shared_tokens(prompts: list[tuple[int, ...]]) -> int:
    """How many tokens all prompts begin with; each keeps one of its own."""
    most = min(map(len, prompts)) - 1
    columns = zip(*(prompt[:most] for prompt in prompts), strict=True)
    shared = 0
    for column in columns:
        if len(set(column)) > 1:
            break
        shared += 1
    return shared


def _sample(prompts: list[str], trainer: SharedPromptTrainer) -> dict[str, Any]:
    """TRL's hook for completions of one's own making."""
    ids = trainer.processing_class(prompts)["input_ids"]
    return {
        "prompt_ids": ids,
        "completion_ids": trainer.sampler(ids, trainer.max_completion_length),
        "logprobs": None,
    }


class _Sampler:
    """Completions at temperature 1, from weights in bfloat16."""

    def __init__(self, trainer: SharedPromptTrainer) -> None:
        self.trainer = trainer
        self.end = trainer.processing_class.eos_token_id
        self.copy: Any = None

    @torch.no_grad()
    def __call__(self, prompts: Ids, longest: int) -> Ids:
        model = self._in_bfloat16()
        with self.trainer.accelerator.autocast():
            read = _Prompts(model, prompts)
            head = model.get_output_embeddings()
            hidden, tokens = read.last, []
            ended = torch.zeros(len(prompts), dtype=torch.bool, device=hidden.device)
            for step in range(longest):
                token = _drawn(head(hidden).float() / self.trainer.temperature)
                token = torch.where(ended, self.end, token)
                tokens.append(token)
                ended = ended | (token == self.end)
                if bool(ended.all()) or step == longest - 1:
                    break
                hidden = read.states(token[:, None], torch.ones_like(token[:, None]))[:, 0]
        rows: Ids = torch.stack(tokens, 1).tolist()
        return [row[: row.index(self.end) + 1] if self.end in row else row for row in rows]

    def _in_bfloat16(self) -> Any:
        """The model itself where its weights are bfloat16 (LoRA), else a copy that is kept."""
        trained = self.trainer.accelerator.unwrap_model(self.trainer.model)
        if hasattr(trained, "get_base_model"):
            return trained
        if self.copy is None:
            with trained.device:
                self.copy = type(trained)(trained.config).to(torch.bfloat16).eval()
        for own, now in zip(self.copy.parameters(), trained.parameters(), strict=True):
            own.copy_(now)
        return self.copy


def _drawn(logits: torch.Tensor) -> torch.Tensor:
    """One token a row, by the cumulative distribution: ten times as fast as ``multinomial``."""
    sums = torch.softmax(logits, -1).cumsum(-1)
    if not bool(torch.isfinite(sums[:, -1]).all()):
        raise DivergedError("the policy's probabilities are not finite")
    uniform = torch.rand(len(logits), 1, device=logits.device) * sums[:, -1:]
    return torch.searchsorted(sums, uniform, right=True)[:, 0].clamp(max=logits.shape[1] - 1)
