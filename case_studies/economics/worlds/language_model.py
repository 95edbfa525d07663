"""Arithmetic in characters with short worked solutions, for models of three sizes.

Prompts are sums of two and three numbers, differences, products and comparisons; a solution shows
its intermediate results, a semicolon, and the result. The verifier reads only what follows the
last semicolon. Wrong demonstrations drop a carry, slip by one, or guess without working.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from problems import BOS, EOS, PAD, SEP, TABLE_SEED, UNEVENNESS, Problem
from torch import Tensor

NAME = "arithmetic"
SIGNS = {"+": 14, "-": 15, "*": 16, "?": 17, ",": 18, ";": 19, "=": SEP}
VOCABULARY = 20
WRONG_STYLES = 3
PROMPTS = 15_000


def encoded(text: str) -> list[int]:
    """Tokens of a text."""
    return [SIGNS[sign] if sign in SIGNS else int(sign) for sign in text]


def column_sums(first: int, second: int) -> tuple[list[int], int]:
    """Sums of the columns, lowest first, each with the carry of the one before; sum without."""
    columns, carry, careless, place = [], 0, 0, 1
    while first or second or not columns:
        plain = first % 10 + second % 10
        columns.append(plain + carry)
        careless += plain % 10 * place
        carry, place = columns[-1] // 10, place * 10
        first, second = first // 10, second // 10
    return columns, careless


def composed(chance: random.Random) -> tuple[str, str, int, int]:
    """Compose a problem.

    Returns
    -------
    tuple of str, str, int and int
        Prompt, working, result, and the result of a careless solver.
    """
    kind = chance.randrange(5)
    first, second = chance.randrange(100), chance.randrange(100)
    if kind == 0:
        columns, careless = column_sums(first, second)
        return f"{first}+{second}=", ",".join(map(str, columns)), first + second, careless
    if kind == 1:
        first, second = max(first, second), min(first, second)
        near = second // 10 * 10
        return f"{first}-{second}=", str(first - near), first - second, first - near + second % 10
    if kind == 2:
        first, second, third = first % 20, second % 20, chance.randrange(20)
        part = first + second
        careless = column_sums(part, third)[1]
        return f"{first}+{second}+{third}=", str(part), part + third, careless
    if kind == 3:
        first, second = first % 30, second % 10
        parts = first // 10 * second, first % 10 * second
        working = f"{parts[0]},{parts[1]}"
        return f"{first}*{second}=", working, first * second, parts[0] * 10 + parts[1] % 10
    careless = first if str(first) > str(second) else second
    return f"{first}?{second}=", str(abs(first - second)), max(first, second), careless


@dataclass(frozen=True)
class TextProblem(Problem):
    """A table of texts.

    Attributes
    ----------
    wrong : Tensor
        Wrong solutions, shape (m, styles, answer length).
    results : Tensor
        Result and EOS with the semicolon before, flush right, PAD before; (m, answer length).
    """

    wrong: Tensor
    results: Tensor

    @property
    def vocabulary(self) -> int:
        """Distinct tokens."""
        return VOCABULARY

    def exact(self, index: Tensor, completions: Tensor) -> Tensor:
        """Score 1 where what follows the last semicolon is the result, ended at once, else 0."""
        length = completions.shape[-1]
        ended = completions == EOS
        # Move each completion to the right until its EOS is the last token.
        end = ended.float().argmax(dim=-1, keepdim=True)
        places = torch.arange(length) - (length - 1 - end)
        moved = completions.gather(-1, places.clamp(min=0))
        wanted = self.results[index]
        same = (moved == wanted) & (places >= 0)
        return ((same | (wanted == PAD)).all(dim=-1) & ended.any(dim=-1)).float()

    def demonstrations(
        self, index: Tensor, offset: float, empty: float, generator: torch.Generator
    ) -> Tensor:
        """Draw supervised targets; see `Problem.demonstrations`."""
        count = len(index)
        style = torch.randint(WRONG_STYLES, (count,), generator=generator)
        # The last sign before "=" is a digit of the last number.
        log_odds = UNEVENNESS * self.prompts[index, -2].float() + offset
        draws = torch.rand(count, generator=generator)
        is_right = draws < torch.sigmoid(log_odds)
        return torch.where(is_right[:, None], self.answers[index], self.wrong[index, style])


def make_text_problem() -> TextProblem:
    """Build the table of texts: distinct problems, the first `HELD_OUT` for evaluation."""
    chance = random.Random(TABLE_SEED)
    found: dict[str, tuple[str, int, int]] = {}
    while len(found) < PROMPTS:
        prompt, working, result, careless = composed(chance)
        found.setdefault(prompt, (working, result, careless))
    prompts, answers, wrong, results = [], [], [], []
    for prompt, (working, result, careless) in found.items():
        slipped = result + chance.choice((-1, 1, 10)) if result else 1
        guess = chance.randrange(10 ** len(str(result)))
        prompts.append([BOS, *encoded(prompt)])
        answers.append([*encoded(f"{working};{result}"), EOS])
        wrong.append(
            [
                [*encoded(f"{working};{careless}"), EOS],
                [*encoded(f"{working};{abs(slipped)}"), EOS],
                [*encoded(f";{guess}"), EOS],
            ]
        )
        results.append([*encoded(f";{result}"), EOS])
    longest = max(len(row) for row in [*answers, *(row for three in wrong for row in three)])
    wide = max(len(row) for row in prompts)

    def right_filled(row: list[int]) -> list[int]:
        return row + [PAD] * (longest - len(row))

    def left_filled(row: list[int], length: int) -> list[int]:
        return [PAD] * (length - len(row)) + row

    return TextProblem(
        prompts=torch.tensor([left_filled(row, wide) for row in prompts]),
        answers=torch.tensor([right_filled(row) for row in answers]),
        lengths=torch.tensor([len(row) - 1 for row in answers]),
        solvable=torch.ones(len(prompts), dtype=torch.bool),
        wrong=torch.tensor([[right_filled(row) for row in three] for three in wrong]),
        results=torch.tensor([left_filled(row, longest) for row in results]),
    )
