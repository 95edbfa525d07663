"""Eight tasks made when presets and analogues had been learned from the first six, and two harder.

Only the larger models can begin the harder ones: an answer takes more than one operation.
"""

from __future__ import annotations

import random
import re

from prompt_tasks import TASKS, WORDS, Task, by_name, exact, share_of_places


def in_json(completion: str, question: str, answer: str) -> float:
    """0.2 for an object with a sum and nothing else, 1 if the sum is right."""
    if completion.strip() == answer:
        return 1.0
    return 0.2 if re.fullmatch(r'\{"sum": \d+\}', completion.strip()) else 0.0


def nearness(completion: str, question: str, answer: str) -> float:
    """1 for the right number, one half for one that is 20 off, 0 for anything but a number."""
    if not re.fullmatch(r"\d{1,9}", completion.strip()):
        return 0.0
    return 1 / (1 + abs(int(completion) - int(answer)) / 20)


def _smallest(generator: random.Random) -> tuple[str, str]:
    numbers = generator.sample(range(10, 100), 5)
    return f"Smallest of {', '.join(map(str, numbers))}?", str(min(numbers))


def _reversed(generator: random.Random) -> tuple[str, str]:
    digits = [str(digit) for digit in generator.sample(range(1, 10), 4)]
    return f"Reverse {' '.join(digits)}", " ".join(reversed(digits))


def _count(generator: random.Random) -> tuple[str, str]:
    number = generator.randint(2, 7)
    return f"How many words: {' '.join(generator.sample(WORDS, number))}", str(number)


def _sum_as_json(generator: random.Random) -> tuple[str, str]:
    a, b = generator.randint(1, 29), generator.randint(1, 9)
    return f"{a} + {b} = ?", f'{{"sum": {a + b}}}'


def _next(generator: random.Random) -> tuple[str, str]:
    first, gap = generator.randint(1, 40), generator.randint(2, 9)
    shown = ", ".join(str(first + gap * place) for place in range(3))
    return f"Next number: {shown}", str(first + 3 * gap)


def _parity(generator: random.Random) -> tuple[str, str]:
    number = generator.randint(100, 9999)
    return f"Is {number} odd or even?", "odd" if number % 2 else "even"


def _second(generator: random.Random) -> tuple[str, str]:
    words = generator.sample(WORDS, 5)
    return f"Second word of: {' '.join(words)}", words[1]


def _large_sum(generator: random.Random) -> tuple[str, str]:
    a, b = generator.randint(100, 499), generator.randint(100, 499)
    return f"{a} + {b} = ?", str(a + b)


def _three_sum(generator: random.Random) -> tuple[str, str]:
    numbers = [generator.randint(10, 99) for _ in range(3)]
    return f"{' + '.join(map(str, numbers))} = ?", str(sum(numbers))


def _two_steps(generator: random.Random) -> tuple[str, str]:
    had, bought, gave = (
        generator.randint(11, 60),
        generator.randint(11, 39),
        generator.randint(2, 10),
    )
    asked = f"Tom has {had} coins, finds {bought} and gives away {gave}. How many are left?"
    return asked, str(had + bought - gave)


LATER_TASKS = by_name(
    Task("smallest", _smallest, exact, 6, ("Smallest of 31, 64, 12, 50, 88?", "12")),
    Task("reversed", _reversed, share_of_places, 10, ("Reverse 6 3 8 1", "1 8 3 6")),
    Task("count", _count, exact, 6, ("How many words: fish road gold hat", "4")),
    Task("json", _sum_as_json, in_json, 12, ("21 + 5 = ?", '{"sum": 26}')),
    Task("next", _next, exact, 6, ("Next number: 4, 7, 10", "13")),
    Task("parity", _parity, exact, 4, ("Is 312 odd or even?", "even")),
    Task("second", _second, exact, 6, ("Second word of: fish road gold", "road")),
    Task("near", _large_sum, nearness, 6, ("211 + 305 = ?", "516")),
)
ALL_TASKS = TASKS | LATER_TASKS
HARDER_TASKS = by_name(
    Task("three_sum", _three_sum, exact, 6, ("31 + 25 + 12 = ?", "68")),
    Task(
        "two_steps",
        _two_steps,
        exact,
        6,
        ("Tom has 31 coins, finds 25 and gives away 6. How many are left?", "50"),
    ),
)
EVERY_TASK = ALL_TASKS | HARDER_TASKS
