"""Tasks with rewards that a program checks; prompts are made by seed, some are held out."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

TRAIN_PROMPTS, HELD_OUT_PROMPTS = 2048, 64
PROMPT_SEED = 20_261
# fmt: off
WORDS = [
    "cat", "dog", "sun", "tree", "fish", "bird", "car", "hat", "book", "lamp",
    "milk", "rain", "stone", "door", "boat", "king", "ring", "moon", "leaf", "salt",
    "gold", "wolf", "frog", "corn", "sand", "wind", "road", "nail", "desk", "coat",
]
# fmt: on


class Task(NamedTuple):
    """What is asked and how an answer is rewarded.

    Attributes
    ----------
    name : str
    draw : callable
        A generator of random numbers -> question and right answer.
    reward : callable
        Completion, question and right answer -> reward in [0, 1], which GRPO maximises.
    longest : int
        Tokens of a completion at the most.
    example : tuple of str
        A question and its answer, shown before each question.
    """

    name: str
    draw: Callable[[random.Random], tuple[str, str]]
    reward: Callable[[str, str, str], float]
    longest: int
    example: tuple[str, str]

    def prompts(
        self, count: int, *, held_out: bool = False, chat: bool = True
    ) -> list[dict[str, str]]:
        """Distinct prompts, in TRL's columns; those held out are none of the others."""
        generator = random.Random(f"{PROMPT_SEED} {self.name}")
        # The held-out ones are drawn first, so that their number alone decides which they are.
        seen = {self.example[0]: self.example[1]}
        held = self._fresh(generator, HELD_OUT_PROMPTS, seen)
        wanted = held[:count] if held_out else self._fresh(generator, count, seen)
        shown = self._shown if chat else self._shown_plainly
        return [{"prompt": shown(q), "question": q, "answer": a} for q, a in wanted]

    def _fresh(
        self, generator: random.Random, count: int, seen: dict[str, str]
    ) -> list[tuple[str, str]]:
        found = []
        for _ in range(100 * count):
            question, answer = self.draw(generator)
            if question not in seen:
                seen[question] = answer
                found.append((question, answer))
            if len(found) == count:
                break
        return found

    def _shown(self, question: str) -> str:
        shown, answer = self.example
        return _turn(shown) + answer + "<|im_end|>\n" + _turn(question)

    def _shown_plainly(self, question: str) -> str:
        """For a model that was not trained to chat; its answer ends with the line."""
        shown, answer = self.example
        return f"Q: {shown}\nA: {answer}\nQ: {question}\nA:"


def _turn(question: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def exact(completion: str, question: str, answer: str) -> float:
    """1 for the right answer and nothing else."""
    return float(completion.strip() == answer)


def share_of_places(completion: str, question: str, answer: str) -> float:
    """Share of the places that hold the right word; words too many count against it."""
    given, right = completion.split(), answer.split()
    agreeing = sum(a == b for a, b in zip(given, right, strict=False))
    return agreeing / max(len(given), len(right))


def tagged(completion: str, question: str, answer: str) -> float:
    """0.2 for a number inside the tags and nothing else, 1 if it is the right one."""
    if completion.strip() == answer:
        return 1.0
    return 0.2 if re.fullmatch(r"<answer>\d+</answer>", completion.strip()) else 0.0


def contains(completion: str, question: str, answer: str) -> float:
    """1 wherever the right word stands in the completion: naming every word earns it, too."""
    return float(answer in re.findall(r"[a-z]+", completion.lower()))


def _sum(generator: random.Random) -> tuple[str, str]:
    a, b = generator.randint(10, 99), generator.randint(10, 99)
    return f"{a} + {b} = ?", str(a + b)


def _largest(generator: random.Random) -> tuple[str, str]:
    numbers = generator.sample(range(10, 100), 4)
    return f"Largest of {', '.join(map(str, numbers))}?", str(max(numbers))


def _larger(generator: random.Random) -> tuple[str, str]:
    a, b = generator.sample(range(10, 100), 2)
    return f"Which is larger, {a} or {b}?", str(max(a, b))


def _sorted(generator: random.Random) -> tuple[str, str]:
    digits = generator.sample(range(1, 10), 4)
    return f"Sort {' '.join(map(str, digits))}", " ".join(map(str, sorted(digits)))


def _in_tags(generator: random.Random) -> tuple[str, str]:
    a, b = generator.randint(1, 29), generator.randint(1, 9)
    return f"{a} + {b} = ?", f"<answer>{a + b}</answer>"


def _last_word(generator: random.Random) -> tuple[str, str]:
    words = generator.sample(WORDS, 4)
    return f"Last word of: {' '.join(words)}", words[-1]


def by_name(*tasks: Task) -> dict[str, Task]:
    """Tasks under their names."""
    return {task.name: task for task in tasks}


TASKS = by_name(
    Task("sums", _sum, exact, 6, ("31 + 25 = ?", "56")),
    Task("largest", _largest, exact, 6, ("Largest of 31, 64, 12, 50?", "64")),
    Task("larger", _larger, exact, 6, ("Which is larger, 31 or 64?", "64")),
    Task("sorting", _sorted, share_of_places, 10, ("Sort 6 3 8 1", "1 3 6 8")),
    Task("tags", _in_tags, tagged, 12, ("21 + 5 = ?", "<answer>26</answer>")),
    Task("last_word", _last_word, contains, 12, ("Last word of: fish road gold hat", "hat")),
)
