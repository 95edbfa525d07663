"""Two tasks that only the larger models can begin: more than one operation to an answer."""

from __future__ import annotations

import random

from later_tasks import ALL_TASKS
from prompt_tasks import Task, exact


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


HARDER_TASKS = {
    task.name: task
    for task in (
        Task("three_sum", "starts at 0", _three_sum, exact, 6, ("31 + 25 + 12 = ?", "68")),
        Task(
            "two_steps",
            "starts near 0",
            _two_steps,
            exact,
            6,
            ("Tom has 31 coins, finds 25 and gives away 6. How many are left?", "50"),
        ),
    )
}
EVERY_TASK = ALL_TASKS | HARDER_TASKS
