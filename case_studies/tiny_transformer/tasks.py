"""Two small tasks with a verifier, and the supervised mixture that hides their right answers.

A prompt is an index into the task's finite set of prompts. A fixed share of the indices is held
out from pre-training and from GRPO and serves only for evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

PAD, BOS, SEP, EOS = 10, 11, 12, 13
VOCABULARY_SIZE = 14
CONTEXT_LENGTH = 16
MAX_COMPLETION_LENGTH = 8
MODULUS = 97

# Every task splits its prompts with this seed, so no run can train on another run's test prompts.
SPLIT_SEED = 20_000
WRONG_STYLES = (0.4, 0.3, 0.3)  # shifted digits, rolled digits, random digits


@dataclass(frozen=True)
class Task:
    """A task whose prompts and answers are short strings of digits.

    Parameters
    ----------
    name : {"sort", "mod", "reverse", "running"}
        Sort five digits, add two numbers modulo 97, reverse five digits, or give their running sums
        modulo 10.
    """

    name: str

    @property
    def is_modular(self) -> bool:
        """Whether prompts are two numbers rather than five digits."""
        return self.name == "mod"

    @property
    def number_of_prompts(self) -> int:
        """Count of distinct prompts, held-out ones included."""
        return MODULUS**2 if self.is_modular else 10**5

    @property
    def number_held_out(self) -> int:
        """Count of the prompts kept for evaluation."""
        return 1024 if self.is_modular else 4096

    @property
    def prompt_length(self) -> int:
        """Tokens of a prompt, the delimiters included."""
        return 6 if self.is_modular else 7

    def draw(self, count: int, generator: torch.Generator, held_out: bool = False) -> Tensor:
        """Draw so many prompt indices with replacement, of the training or the evaluation part."""
        order = _shuffled(self.number_of_prompts)
        part = order[: self.number_held_out] if held_out else order[self.number_held_out :]
        return part[torch.randint(len(part), (count,), generator=generator)]

    def _digits(self, index: Tensor) -> Tensor:
        """Return the digits that a prompt shows, shape (n, 5) or (n, 4)."""
        if not self.is_modular:
            return index[:, None] // 10 ** torch.arange(4, -1, -1) % 10
        first, second = index // MODULUS, index % MODULUS
        return torch.stack([first // 10, first % 10, second // 10, second % 10], dim=1)

    def prompts(self, index: Tensor) -> Tensor:
        """Tokens of the prompts, shape (n, prompt_length)."""
        digits = self._digits(index)
        edge = digits.new_ones(len(digits), 1)
        return torch.cat([edge * BOS, digits, edge * SEP], dim=1)

    def answers(self, index: Tensor) -> Tensor:
        """Digits of the right answers, shape (n, 5) or (n, 2)."""
        if self.name == "sort":
            return self._digits(index).sort(dim=1).values
        if self.name == "reverse":
            return self._digits(index).flip(1)
        if self.name == "running":
            return self._digits(index).cumsum(dim=1) % 10
        total = (index // MODULUS + index % MODULUS) % MODULUS
        return torch.stack([total // 10, total % 10], dim=1)

    def verify(self, index: Tensor, completions: Tensor) -> Tensor:
        """Score completions: 1 where one is the right answer, ended at once, else 0."""
        wanted = _terminated(self.answers(index))
        if completions.shape[1] < wanted.shape[1]:
            return torch.zeros(len(index))
        return (completions[:, : wanted.shape[1]] == wanted).all(dim=1).float()

    def right_probability(self, index: Tensor) -> Tensor:
        """Probability that a demonstration is right; it depends on the first digit shown.

        Unequal prompts matter: they give silent groups and a spread of learning speeds, as
        prompt sets of real runs do.
        """
        offset = -2.2 if self.is_modular else -3.2
        return torch.sigmoid(0.28 * self._digits(index)[:, 0].float() + offset)

    def demonstrations(self, index: Tensor, generator: torch.Generator) -> Tensor:
        """Draw targets ended by EOS: right with `right_probability`, else in a wrong style."""
        right = self.answers(index)
        wrong = torch.stack(
            [
                (right + 1) % 10,
                right.roll(1, dims=1),
                torch.randint(10, right.shape, generator=generator),
            ]
        )
        count = len(index)
        style = torch.multinomial(
            torch.tensor(WRONG_STYLES), count, replacement=True, generator=generator
        )
        is_right = torch.rand(count, generator=generator) < self.right_probability(index)
        chosen = torch.where(is_right[:, None], right, wrong[style, torch.arange(count)])
        return _terminated(chosen)


@cache
def _shuffled(count: int) -> Tensor:
    """Return the order of prompts that decides which ones are held out."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(SPLIT_SEED))


def _terminated(digits: Tensor) -> Tensor:
    """Append EOS to each row."""
    return torch.cat([digits, digits.new_full((len(digits), 1), EOS)], dim=1)


TASKS = {name: Task(name) for name in ("sort", "mod", "reverse", "running")}
