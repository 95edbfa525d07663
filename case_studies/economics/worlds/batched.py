"""GRPO of many runs at once: every parameter and every sample has a leading axis of runs.

The model, the loss and the optimizer are those of `../../tiny_transformer/`; runs that differ in
learning rate, refresh interval, momentum, schedule or divergence weight advance together, and
those of another group size form another batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from problems import EOS, PAD, VOCABULARY, Problem
from torch import Tensor
from torch.nn import functional

SECOND_MOMENT_DECAY = 0.999
ADAM_FLOOR = 1e-8
SPREAD_FLOOR = 1e-4
CLIP = 0.2


@dataclass(frozen=True)
class Architecture:
    """Shape of a decoder-only transformer.

    Attributes
    ----------
    width, layers, head_width : int
        Of the residual stream; number of blocks; of one attention head.
    context : int
        Most tokens.
    vocabulary : int
        Distinct tokens.
    scale : float
        Weights are stored divided by this, so the best rates are those of 1 divided by it.
    """

    width: int
    layers: int
    head_width: int
    context: int
    vocabulary: int = VOCABULARY
    scale: float = 1.0

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of each parameter, in the order of the flat vector."""
        width, block = self.width, {}
        for depth in range(self.layers):
            block |= {
                f"{depth}.attention_norm.weight": (width,),
                f"{depth}.attention_norm.bias": (width,),
                f"{depth}.attention_in.weight": (width, 3 * width),
                f"{depth}.attention_in.bias": (3 * width,),
                f"{depth}.attention_out.weight": (width, width),
                f"{depth}.attention_out.bias": (width,),
                f"{depth}.feed_norm.weight": (width,),
                f"{depth}.feed_norm.bias": (width,),
                f"{depth}.feed_in.weight": (width, 4 * width),
                f"{depth}.feed_in.bias": (4 * width,),
                f"{depth}.feed_out.weight": (4 * width, width),
                f"{depth}.feed_out.bias": (width,),
            }
        return {
            "token": (self.vocabulary, width),
            "position": (self.context, width),
            **block,
            "norm.weight": (width,),
            "norm.bias": (width,),
            "head.weight": (width, self.vocabulary),
            "head.bias": (self.vocabulary,),
        }

    @property
    def sizes(self) -> list[int]:
        """Number of entries of each parameter."""
        return [torch.Size(shape).numel() for shape in self.shapes.values()]

    def initial(self, seed: int) -> Tensor:
        """Flat vector of fresh weights of one model, shape (1, parameters)."""
        generator = torch.Generator().manual_seed(seed)
        parts = []
        for name, shape in self.shapes.items():
            if len(shape) == 2:
                # Embeddings of unit size make the policy tolerate higher learning rates.
                spread = 1.0 if name in ("token", "position") else shape[0] ** -0.5
                part = torch.randn(shape, generator=generator) * spread
            else:
                part = torch.full(shape, float(name.endswith("norm.weight")))
            parts.append(part.flatten())
        return torch.cat(parts)[None] / self.scale

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Parameters by name, shape (runs, ...), of flat vectors (runs, parameters)."""
        # One split: its gradient is one concatenation, that of many slices would be many sums.
        parts = (flat * self.scale if self.scale != 1 else flat).split(self.sizes, dim=1)
        named = zip(self.shapes.items(), parts, strict=True)
        return {name: part.view(len(flat), *shape) for (name, shape), part in named}


Memory = list[tuple[Tensor, Tensor]]


def forward(
    shape: Architecture, weights: dict[str, Tensor], tokens: Tensor, past: Memory | None = None
) -> tuple[Tensor, Memory]:
    """Next-token logits of every run, shape (runs, rows, length, vocabulary).

    Weights are from `Architecture.views`, tokens of shape (runs, rows, length); the keys and values
    of the ``past`` tokens come back extended.
    """
    runs, rows, length = tokens.shape
    heads, flat = shape.width // shape.head_width, (runs, rows * length, -1)

    def linear(x: Tensor, name: str) -> Tensor:
        return torch.baddbmm(weights[f"{name}.bias"][:, None], x, weights[f"{name}.weight"])

    def norm(x: Tensor, name: str) -> Tensor:
        normal = functional.layer_norm(x, (shape.width,))
        return torch.addcmul(
            weights[f"{name}.bias"][:, None], normal, weights[f"{name}.weight"][:, None]
        )

    start = 0 if past is None else past[0][0].shape[2]
    mask = None
    if past is not None and length > 1:
        mask = torch.ones(length, start + length, dtype=torch.bool)
        mask = mask.tril(diagonal=start)
    owner = torch.arange(runs)[:, None, None] * shape.vocabulary
    table = weights["token"].reshape(-1, shape.width)
    x = functional.embedding(tokens + owner, table)
    x = (x + weights["position"][:, None, start : start + length]).view(flat)
    present = []
    for depth in range(shape.layers):
        mixed = linear(norm(x, f"{depth}.attention_norm"), f"{depth}.attention_in")
        query, key, value = mixed.view(runs * rows, length, 3, heads, shape.head_width).permute(
            2, 0, 3, 1, 4
        )
        if past is not None:
            key = torch.cat([past[depth][0], key], dim=2)
            value = torch.cat([past[depth][1], value], dim=2)
        present.append((key, value))
        seen = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=past is None
        )
        x = x + linear(seen.transpose(1, 2).reshape(flat), f"{depth}.attention_out")
        inner = functional.gelu(linear(norm(x, f"{depth}.feed_norm"), f"{depth}.feed_in"))
        x = x + linear(inner, f"{depth}.feed_out")
    return linear(norm(x, "norm"), "head").view(runs, rows, length, -1), present


def repeated(past: Memory, members: int) -> Memory:
    """Give each of a group's members the keys and values of its prompt."""
    return [
        (key.repeat_interleave(members, dim=0), value.repeat_interleave(members, dim=0))
        for key, value in past
    ]


@dataclass(frozen=True)
class Samples:
    """Completions of every run.

    Attributes
    ----------
    tokens : Tensor
        Shape (runs, rows, length); PAD after EOS.
    mask : Tensor
        1.0 up to and including EOS, 0.0 after it.
    log_probabilities, entropy : Tensor
        Of each token under the policy that sampled it, and of that policy there; 0 where masked.
    """

    tokens: Tensor
    mask: Tensor
    log_probabilities: Tensor
    entropy: Tensor


@torch.no_grad()
def sample(
    shape: Architecture,
    flat: Tensor,
    prompts: Tensor,
    members: int,
    longest: int,
    generator: torch.Generator,
) -> Samples:
    """Sample `members` neighbouring completions per prompt at temperature 1, EOS included.

    Policies have shape (runs, parameters), prompts (runs, groups, prompt length).
    """
    weights = shape.views(flat)
    rows = (len(flat), prompts.shape[1] * members)
    running = torch.ones(rows, dtype=torch.bool)
    columns: list[tuple[Tensor, ...]] = []
    logits, past = forward(shape, weights, prompts)
    logits, past = logits[:, :, -1:].repeat_interleave(members, dim=1), repeated(past, members)
    for position in range(longest):
        if position:
            logits, past = forward(shape, weights, columns[-1][0][..., None], past)
        log_probabilities = logits[:, :, -1].log_softmax(dim=-1)
        noise = torch.rand(log_probabilities.shape, generator=generator).clamp_(min=1e-20)
        token = (log_probabilities - noise.log_().neg_().log_()).argmax(dim=-1)
        chosen = log_probabilities.gather(2, token[..., None])[..., 0]
        entropy = -(log_probabilities.exp() * log_probabilities).sum(dim=-1)
        columns.append(
            (token.where(running, PAD), running.float(), chosen * running, entropy * running)
        )
        running = running & (token != EOS)
        if not running.any():
            break
    parts = [torch.stack(column, dim=2) for column in zip(*columns, strict=True)]
    return Samples(*parts)


def completion_log_probabilities(
    shape: Architecture, flat: Tensor, prompts: Tensor, completions: Tensor
) -> Tensor:
    """Log-probability of each completion token; differentiable.

    Prompts have shape (runs, groups, prompt length), completions (runs, rows, length): each prompt
    is computed once for all completions of its group.
    """
    members, weights = completions.shape[1] // prompts.shape[1], shape.views(flat)
    first, past = forward(shape, weights, prompts)
    first = first[:, :, -1:].repeat_interleave(members, dim=1)
    if completions.shape[2] > 1:
        later, _ = forward(shape, weights, completions[..., :-1], repeated(past, members))
        first = torch.cat([first, later], dim=2)
    log_probabilities = first.log_softmax(dim=-1)
    return log_probabilities.gather(3, completions[..., None])[..., 0]


def advantages(rewards: Tensor, scaling: str) -> Tensor:
    """Centre rewards (runs, groups, members) within groups and scale them, each run by itself."""
    centred = rewards - rewards.mean(dim=2, keepdim=True)
    if scaling == "group":
        return centred / (rewards.std(dim=2, keepdim=True) + SPREAD_FLOOR)
    if scaling == "batch":
        return centred / (rewards.std(dim=(1, 2), keepdim=True) + SPREAD_FLOOR)
    return centred


@dataclass(frozen=True)
class Rollouts:
    """One minibatch of every run; a group's members are neighbours.

    Attributes
    ----------
    prompts : Tensor
        Shape (runs, groups, prompt length).
    samples : Samples
        The completions.
    rewards, advantages : Tensor
        Shape (runs, groups, members).
    """

    prompts: Tensor
    samples: Samples
    rewards: Tensor
    advantages: Tensor


def surrogate(
    shape: Architecture,
    flat: Tensor,
    base: Tensor,
    batch: Rollouts,
    kl_coefficient: float,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Clipped surrogate loss of every run, over the tokens of its minibatch, and what is logged."""
    tokens, mask = batch.samples.tokens, batch.samples.mask
    log_probabilities = completion_log_probabilities(shape, flat, batch.prompts, tokens)
    ratio = (log_probabilities - batch.samples.log_probabilities).exp()
    advantage = batch.advantages.flatten(1)[..., None]
    token_loss = -torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    outside = ((ratio < 1 - CLIP) & (advantage < 0)) | ((ratio > 1 + CLIP) & (advantage > 0))
    total = mask.sum(dim=(1, 2))
    row = {"clip_ratio": (outside * mask).sum(dim=(1, 2)) / total}
    if kl_coefficient > 0:
        with torch.no_grad():
            start = completion_log_probabilities(
                shape, base, batch.prompts.flatten(0, 1)[None], tokens.flatten(0, 1)[None]
            ).view_as(log_probabilities)
        gap = start - log_probabilities
        divergence = gap.exp() - gap - 1
        token_loss = token_loss + kl_coefficient * divergence
        row["kl"] = (divergence.detach() * mask).sum(dim=(1, 2)) / total
    return (token_loss * mask).sum(dim=(1, 2)) / total, row


class Optimizer:
    """AdamW without weight decay, or SGD with heavy-ball momentum; one rate per run and step.

    Parameters
    ----------
    kind : {"adamw", "sgd"}
        Rule of the update.
    momentum : float
        First-moment decay, or heavy-ball momentum.
    flat : Tensor
        What is trained, shape (runs, parameters); changed in place.
    """

    def __init__(self, kind: str, momentum: float, flat: Tensor) -> None:
        self.kind, self.momentum, self.flat, self.steps = kind, momentum, flat, 0
        self.first, self.second = torch.zeros_like(flat), torch.zeros_like(flat)

    @torch.no_grad()
    def step(self, gradient: Tensor, rates: Tensor) -> None:
        """Move by one gradient, with rates of shape (runs,)."""
        self.steps += 1
        if self.kind == "sgd":
            self.first.mul_(self.momentum).add_(gradient)
            self.flat.addcmul_(self.first, rates[:, None], value=-1)
            return
        self.first.lerp_(gradient, 1 - self.momentum)
        self.second.mul_(SECOND_MOMENT_DECAY).addcmul_(
            gradient, gradient, value=1 - SECOND_MOMENT_DECAY
        )
        unbiased = (1 - SECOND_MOMENT_DECAY**self.steps) ** 0.5
        spread = (self.second.sqrt() / unbiased).add_(ADAM_FLOOR)
        scaled = rates[:, None] / (1 - self.momentum**self.steps)
        self.flat.addcmul_(self.first / spread, scaled, value=-1)


Series = dict[str, list[list[float]]]


@dataclass(frozen=True)
class Batch:
    """Runs of one world that have a group size and a number of prompts in common.

    Attributes
    ----------
    rates : Tensor
        Learning rates, shape (runs, steps).
    refresh : Tensor
        Minibatches per refresh, shape (runs,).
    prompts, group : int
        Prompts per step and completions per prompt.
    optimizer : str
    momentum, kl_coefficient : float
    scaling : str
        Of the advantages.
    """

    rates: Tensor
    refresh: Tensor
    prompts: int
    group: int
    optimizer: str
    momentum: float
    kl_coefficient: float
    scaling: str


Score = Callable[[Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]


def train(
    shape: Architecture,
    base: Tensor,
    problem: Problem,
    score: Score,
    batch: Batch,
    generator: torch.Generator,
) -> tuple[Tensor, Series]:
    """Run GRPO of every run of a batch from a common base.

    At a refresh a run freezes its policy and draws its next minibatches from the frozen one, one
    before each step: the same distribution as all of them at once.

    Parameters
    ----------
    shape, batch
        Of all runs.
    base : Tensor
        Start of every policy, shape (1, parameters).
    problem : Problem
    score : callable
        Gives rewards, and right answers, of indices and completions.
    generator : torch.Generator
        Shared by the runs of the batch.

    Returns
    -------
    tuple of Tensor and dict
        Last policies, shape (runs, parameters), and per logged quantity a list per step with one
        number per run. The entropy is that of each minibatch when it was sampled.
    """
    longest = problem.longest
    runs, steps = batch.rates.shape
    policy = base.repeat(runs, 1).requires_grad_()
    frozen = policy.detach().clone()
    optimizer = Optimizer(batch.optimizer, batch.momentum, policy)
    series: Series = {}
    for step in range(steps):
        due = step % batch.refresh == 0
        frozen[due] = policy.detach()[due]
        index = problem.draw((runs, batch.prompts), generator)
        prompts = problem.prompts[index]
        index = index.repeat_interleave(batch.group, dim=1)
        samples = sample(shape, frozen, prompts, batch.group, longest, generator)
        completions = functional.pad(
            samples.tokens, (0, longest - samples.tokens.shape[2]), value=PAD
        )
        rewards, right = score(index, completions, generator)
        rewards = rewards.view(runs, batch.prompts, batch.group)
        rollouts = Rollouts(prompts, samples, rewards, advantages(rewards, batch.scaling))
        losses, row = surrogate(shape, policy, base, rollouts, batch.kl_coefficient)
        (gradient,) = torch.autograd.grad(losses.sum(), policy)
        spread = rewards.std(dim=2)
        row |= {
            "reward": rewards.mean(dim=(1, 2)),
            "reward_true": right.mean(dim=1),
            "reward_std": spread.mean(dim=1),
            "frac_reward_zero_std": (spread == 0).float().mean(dim=1),
            "entropy": samples.entropy.sum(dim=(1, 2)) / samples.mask.sum(dim=(1, 2)),
            "grad_norm": gradient.norm(dim=1),
        }
        for name, values in row.items():
            series.setdefault(name, []).append(values.tolist())
        optimizer.step(gradient, batch.rates[:, step])
    return policy.detach(), series


@torch.no_grad()
def evaluate(
    shape: Architecture,
    policy: Tensor,
    problem: Problem,
    score: Score,
    generator: torch.Generator,
) -> tuple[list[float], list[float]]:
    """Mean reward and share of right answers of every run on the held-out prompts."""
    results: tuple[list[float], list[float]] = ([], [])
    index = torch.arange(problem.held_out)[None]
    for flat in policy:
        samples = sample(shape, flat[None], problem.prompts[index], 1, problem.longest, generator)
        tokens = functional.pad(
            samples.tokens, (0, problem.longest - samples.tokens.shape[2]), value=PAD
        )
        for result, values in zip(results, score(index, tokens, generator), strict=True):
            result.append(float(values.mean()))
    return results
