"""String problems with a verifier, as tables of prompts and answers, and the mixture of the base.

A prompt is an index into a table of distinct digit strings; the first `HELD_OUT` rows serve only
for evaluation. The base learns a mixture of right and wrong answers, so that it can solve the
problem but rarely does; the share of right answers rises with the first digit of the prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

PAD, BOS, SEP, EOS = 10, 11, 12, 13
VOCABULARY = 14
HELD_OUT = 2048
MOST_PROMPTS = 60_000
TABLE_SEED = 20_000
UNEVENNESS = 0.28  # how much the log-odds of a right demonstration rise with the first digit
WRONG_STYLES = (0.4, 0.3, 0.3)  # digits one higher, digits rolled by one place, random digits

Digits = np.ndarray
Rule = Callable[[Digits], "Digits | list[list[int]]"]


def number(digits: Digits) -> Digits:
    """Value of rows of decimal digits."""
    return digits @ 10 ** np.arange(digits.shape[1] - 1, -1, -1)


def written(values: Digits, length: int) -> Digits:
    """Decimal digits of `values`, with leading zeros."""
    return values[:, None] // 10 ** np.arange(length - 1, -1, -1) % 10


def modular(modulus: int) -> Rule:
    """Sum of two two-digit numbers modulo `modulus`."""

    def rule(digits: Digits) -> Digits:
        return written((number(digits[:, :2]) + number(digits[:, 2:])) % modulus, 2)

    return rule


def shifted(by: int) -> Rule:
    """Each digit plus `by`, modulo 10."""
    return lambda digits: (digits + by) % 10


def maximum(digits: Digits) -> Digits:
    """Largest digit and the place where it first stands."""
    return np.stack([digits.max(axis=1), digits.argmax(axis=1)], axis=1)


def carry(digits: Digits) -> Digits:
    """Sum of two equally long numbers, lowest digit first."""
    half = digits.shape[1] // 2
    total = number(digits[:, :half]) + number(digits[:, half:])
    return written(total, half + 1)[:, ::-1]


def product(digits: Digits) -> Digits:
    """Product of a two-digit and a one-digit number."""
    return written(number(digits[:, :2]) * digits[:, 2], 3)


def checksum(digits: Digits) -> Digits:
    """Sum of all digits."""
    return written(digits.sum(axis=1), 2)


def parity(digits: Digits) -> Digits:
    """Running parity of the digits."""
    return digits.cumsum(axis=1) % 2


def deduplicated(digits: Digits) -> list[list[int]]:
    """The digits in order of first appearance."""
    return [list(dict.fromkeys(row)) for row in digits.tolist()]


def rotated(digits: Digits) -> Digits:
    """All but the first digit, rolled left by as many places as the first says."""
    rest = digits[:, 1:]
    places = (np.arange(rest.shape[1]) + digits[:, :1]) % rest.shape[1]
    return np.take_along_axis(rest, places, axis=1)


def larger(digits: Digits) -> Digits:
    """The larger of two equally long numbers."""
    half = digits.shape[1] // 2
    first, second = digits[:, :half], digits[:, half:]
    return np.where((number(first) >= number(second))[:, None], first, second)


def palindrome(digits: Digits) -> Digits:
    """The digits and, after the last, their mirror image."""
    return np.concatenate([digits, digits[:, -2::-1]], axis=1)


def difference(digits: Digits) -> Digits:
    """Distance between two equally long numbers."""
    half = digits.shape[1] // 2
    return written(np.abs(number(digits[:, :half]) - number(digits[:, half:])), half)


def interleaved(digits: Digits) -> Digits:
    """Digits of the two halves in turn."""
    half = digits.shape[1] // 2
    return digits.reshape(-1, 2, half).transpose(0, 2, 1).reshape(len(digits), -1)


def swapped(digits: Digits) -> Digits:
    """Neighbours exchanged in pairs."""
    return digits.reshape(len(digits), -1, 2)[:, :, ::-1].reshape(len(digits), -1)


RULES: dict[str, tuple[int, Rule]] = {
    "sort4": (4, lambda digits: np.sort(digits, axis=1)),
    "modulo31": (4, modular(31)),
    "modulo53": (4, modular(53)),
    "reverse4": (4, lambda digits: digits[:, ::-1]),
    "sums4": (4, lambda digits: digits.cumsum(axis=1) % 10),
    "shift4": (4, shifted(3)),
    "shift8": (8, shifted(7)),
    "maximum5": (5, maximum),
    "carry2": (4, carry),
    "product": (3, product),
    "checksum5": (5, checksum),
    "parity6": (6, parity),
    "unique5": (5, deduplicated),
    "rotate5": (6, rotated),
    "larger2": (4, larger),
    "palindrome3": (3, palindrome),
    "difference2": (4, difference),
    "interleave6": (6, interleaved),
    "swap6": (6, swapped),
}
"""Name -> number of digits shown, and the rule for the answer."""

REWARDS = ("exact", "partial", "last", "empty", "noisy")
"""What a completion is paid for.

exact: 1 for the right answer, ended at once.
partial: half for that, half for the share of right tokens.
last: 1 if length and last digit are right (a proxy with a short cut).
empty: 1 for the right answer or for none at all (a verifier with a hole).
noisy: the exact reward, turned around in one of ten completions.
"""

FLIPPED = 0.1


@dataclass(frozen=True)
class Problem:
    """Prompts and answers of one problem.

    Attributes
    ----------
    prompts : Tensor
        Tokens, shape (m, prompt length).
    answers : Tensor
        Tokens up to EOS, then PAD, shape (m, answer length).
    lengths : Tensor
        Digits of each answer, shape (m,).
    solvable : Tensor
        Whether the verifier ever pays for a prompt, shape (m,).
    """

    prompts: Tensor
    answers: Tensor
    lengths: Tensor
    solvable: Tensor

    @property
    def vocabulary(self) -> int:
        """Distinct tokens."""
        return VOCABULARY

    @property
    def longest(self) -> int:
        """Most tokens of a completion."""
        return self.answers.shape[1]

    @property
    def context(self) -> int:
        """Most tokens of prompt and completion."""
        return self.prompts.shape[1] + self.longest

    @property
    def held_out(self) -> int:
        """Prompts kept for evaluation: `HELD_OUT`, or a fifth where that is fewer."""
        return min(HELD_OUT, len(self.prompts) // 5)

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Draw training prompts with replacement, as indices of that shape."""
        low, high = self.held_out, len(self.prompts)
        return torch.randint(low, high, shape, generator=generator)

    def exact(self, index: Tensor, completions: Tensor) -> Tensor:
        """Score 1 where a completion is the right answer, ended at once, else 0."""
        wanted = self.answers[index]
        same = (completions[..., : wanted.shape[-1]] == wanted).all(dim=-1)
        return (same & self.solvable[index]).float()

    def reward(
        self, kind: str, index: Tensor, completions: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Score completions by one of `REWARDS`; shape of `index`."""
        right = self.exact(index, completions)
        if kind == "exact":
            return right
        if kind == "noisy":
            draws = torch.rand(right.shape, generator=generator)
            return torch.where(draws < FLIPPED, 1 - right, right)
        if kind == "empty":
            return torch.maximum(right, (completions[..., 0] == EOS).float())
        wanted = self.answers[index]
        found = completions[..., : wanted.shape[-1]]
        if kind == "partial":
            within = wanted != PAD
            share = ((found == wanted) & within).sum(dim=-1) / within.sum(dim=-1)
            return 0.5 * right + 0.5 * share
        last = self.lengths[index][..., None]
        ends = found.gather(-1, last) == wanted.gather(-1, last)
        agrees = found.gather(-1, last - 1) == wanted.gather(-1, last - 1)
        return (ends & agrees)[..., 0].float()

    def demonstrations(
        self, index: Tensor, offset: float, empty: float, generator: torch.Generator
    ) -> Tensor:
        """Draw supervised targets: tokens up to EOS, then PAD, shape (n, answer length).

        ``offset`` are the log-odds of a right one where the first digit is 0, ``empty`` is the
        share without any answer.
        """

        def uniform(*shape: int) -> Tensor:
            return torch.rand(shape, generator=generator)

        right, lengths = self.answers[index], self.lengths[index][:, None]
        places = torch.arange(right.shape[1])
        is_digit = places < lengths
        rolled = right.gather(1, torch.where(is_digit, (places - 1) % lengths, places))
        wrong = torch.stack(
            [(right + 1) % 10, rolled, (uniform(*right.shape) * 10).long().clamp(max=9)]
        )
        bounds = torch.tensor(WRONG_STYLES).cumsum(0)[:-1]
        style = torch.bucketize(uniform(len(index)), bounds)
        chosen = wrong[style, torch.arange(len(index))]
        log_odds = UNEVENNESS * self.prompts[index, 1].float() + offset
        is_right = uniform(len(index)) < torch.sigmoid(log_odds)
        mixed = torch.where(is_digit & ~is_right[:, None], chosen, right)
        nothing = torch.where(places == 0, EOS, PAD)
        return torch.where(uniform(len(index), 1) < empty, nothing, mixed)


def make_problem(name: str, solvable: float = 1.0) -> Problem:
    """Build the table of a problem, whose verifier accepts answers to so many of its prompts."""
    width, rule = RULES[name]
    generator = np.random.default_rng(TABLE_SEED)
    values = generator.permutation(10**width)[:MOST_PROMPTS]
    digits = written(values, width)
    answers = rule(digits)
    rows = [list(row) for row in answers]
    longest = max(len(row) for row in rows) + 1
    padded = np.array([[*row, EOS, *[PAD] * (longest - len(row) - 1)] for row in rows])
    edge = np.ones((len(digits), 1), dtype=int)
    prompts = np.concatenate([BOS * edge, digits, SEP * edge], axis=1)
    accepted = generator.random(len(digits)) < solvable

    lengths = [len(row) for row in rows]
    return Problem(*map(torch.as_tensor, (prompts, padded, lengths, accepted)))
