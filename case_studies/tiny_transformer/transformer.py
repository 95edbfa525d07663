"""A decoder-only transformer small enough to train on one CPU core, with cached sampling."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tasks import CONTEXT_LENGTH, EOS, PAD, VOCABULARY_SIZE
from torch import Tensor, nn
from torch.nn import functional

SIZES = {
    "xs": (16, 2),
    "s": (32, 2),
    "m": (64, 2),
    "ml": (112, 2),
    "l": (128, 3),
    "xl": (128, 4),
}  # width, layers
HEAD_WIDTH = 16

Cache = tuple[Tensor, Tensor]


class Block(nn.Module):
    """Pre-norm attention and feed-forward block.

    Parameters
    ----------
    width : int
        Width of the residual stream.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // HEAD_WIDTH
        self.attention_norm = nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.feed_norm = nn.LayerNorm(width)
        self.feed_in = nn.Linear(width, 4 * width)
        self.feed_out = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, past: Cache | None = None) -> tuple[Tensor, Cache]:
        """Apply the block to `x`, which follows the tokens of `past` where that is given."""
        batch, length, width = x.shape
        projected = self.attention_in(self.attention_norm(x))
        query, key, value = projected.view(batch, length, 3, self.heads, HEAD_WIDTH).permute(
            2, 0, 3, 1, 4
        )
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        # A single new token may look at everything; only longer inputs need the causal mask.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        x = x + self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + self.feed_out(functional.gelu(self.feed_in(self.feed_norm(x))))
        return x, (key, value)


class Transformer(nn.Module):
    """Tiny language model over the tokens of `tasks`.

    Parameters
    ----------
    size : str
        Key of `SIZES`.
    seed : int
        Seed of the initial weights.
    """

    def __init__(self, size: str, seed: int = 0) -> None:
        super().__init__()
        width, layers = SIZES[size]
        self.token = nn.Embedding(VOCABULARY_SIZE, width)
        self.position = nn.Embedding(CONTEXT_LENGTH, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY_SIZE)
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                # Embeddings of unit size make the policy tolerate higher learning rates.
                is_embedding = name.startswith(("token", "position"))
                scale = 1.0 if is_embedding else parameter.shape[1] ** -0.5
                nn.init.normal_(parameter, std=scale, generator=generator)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(
        self, tokens: Tensor, past: list[Cache] | None = None
    ) -> tuple[Tensor, list[Cache]]:
        """Next-token logits, shape (batch, length, vocabulary), and the extended cache.

        Tokens have shape (batch, length), of length 1 where the cache of those before is given.
        """
        start = 0 if past is None else past[0][0].shape[2]
        x = self.token(tokens) + self.position.weight[start : start + tokens.shape[1]]
        present = []
        for depth, block in enumerate(self.blocks):
            x, cache = block(x, None if past is None else past[depth])
            present.append(cache)
        return self.head(self.norm(x)), present


@dataclass(frozen=True)
class Samples:
    """Completions of a batch of prompts.

    Attributes
    ----------
    tokens : Tensor
        Shape (n, length); PAD after EOS.
    mask : Tensor
        1.0 up to and including EOS, 0.0 after it.
    log_probabilities : Tensor
        Of each token under the policy that sampled it; 0 where masked.
    ended : Tensor
        Whether EOS came before the length limit, shape (n,).
    """

    tokens: Tensor
    mask: Tensor
    log_probabilities: Tensor
    ended: Tensor


@torch.no_grad()
def sample(
    model: Transformer, prompts: Tensor, max_length: int, generator: torch.Generator
) -> Samples:
    """Sample one completion per prompt of shape (n, prompt_length), at temperature 1.

    The longest may have ``max_length`` tokens, EOS included.
    """
    running = torch.ones(len(prompts), dtype=torch.bool)
    columns: list[tuple[Tensor, Tensor, Tensor]] = []
    logits, past = model(prompts)
    for position in range(max_length):
        if position:
            logits, past = model(columns[-1][0][:, None], past)
        log_probabilities = logits[:, -1].log_softmax(dim=-1)
        # The Gumbel trick: one argmax, several times faster than torch.multinomial here.
        noise = torch.rand(log_probabilities.shape, generator=generator).clamp_(min=1e-20)
        token = (log_probabilities - noise.log_().neg_().log_()).argmax(dim=-1)
        chosen = log_probabilities.gather(1, token[:, None])[:, 0]
        columns.append((token.where(running, PAD), running.float(), chosen * running))
        running = running & (token != EOS)
        if not running.any():
            break
    tokens, mask, chosen = (torch.stack(column, dim=1) for column in zip(*columns, strict=True))
    return Samples(tokens, mask, chosen, ~running)


def completion_statistics(
    model: Transformer, prompts: Tensor, completions: Tensor
) -> tuple[Tensor, Tensor]:
    """Log-probability of each completion token, and the entropy where it was chosen.

    Prompts and completions have shapes (n, prompt_length) and (n, length). Both results
    have the shape of the completions; log-probabilities are differentiable.
    """
    logits, _ = model(torch.cat([prompts, completions[:, :-1]], dim=1))
    log_probabilities = logits[:, prompts.shape[1] - 1 :].log_softmax(dim=-1)
    detached = log_probabilities.detach()
    entropy = -(detached.exp() * detached).sum(dim=-1)
    return log_probabilities.gather(2, completions[:, :, None])[:, :, 0], entropy
