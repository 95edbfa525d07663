"""Values of an MLflow run as rows, without any client."""

from __future__ import annotations

from pathlib import Path

from advisor.runs import Table
from advisor.runs.logs.sources import table_of

START = 1_795_271_248_000


def rows(metrics: dict[str, str]) -> tuple[Table, tuple[str, ...]]:
    """Rows of a run; lines of metrics are ``value step``, a second apart."""
    values = [
        (key, START + 1000.0 * n, *map(float, line.split()))
        for key in sorted(metrics)
        for n, line in enumerate(metrics[key].split("\n"))
    ]
    return table_of(values, sorted(metrics), Path("run"))


def test_metrics_meet_in_one_row_per_step() -> None:
    table, _ = rows(
        {
            "reward": "0.1 10\n0.2 20\n0.3 30",
            "rewards/exact/mean": "0.5 10\n0.6 20\nnan 30",
            "eval_reward": "0.7 20",
        },
    )
    assert table.column("step").tolist() == [10, 20, 30]
    assert table.column("reward").tolist() == [0.1, 0.2, 0.3]
    assert table.column("rewards/exact/mean")[:2].tolist() == [0.5, 0.6]
    assert table.has("rewards/exact/mean").all()
    assert table.has("eval_reward").tolist() == [False, True, False]


def test_steps_logged_again_are_rows_of_their_own() -> None:
    lines = "0.1 1\n0.2 2\n0.3 3\n0.8 2\n0.9 3\n1.0 4"
    table, _ = rows({"reward": lines, "loss": lines})
    assert table.column("step").tolist() == [1, 2, 3, 2, 3, 4]
    assert table.column("reward").tolist() == table.column("loss").tolist()
    assert table.column("loss").tolist() == [0.1, 0.2, 0.3, 0.8, 0.9, 1.0]


def test_values_without_a_step_are_rows_by_order() -> None:
    table, assumptions = rows({"reward": "0.1 0\n0.2 0\n0.3 0", "loss": "1 0\n2 0\n3 0"})
    assert "step" not in table.keys
    assert table.column("reward").tolist() == [0.1, 0.2, 0.3]
    assert table.column("loss").tolist() == [1, 2, 3]
    assert assumptions == ("loss, reward: logged without a step, so rows follow their order",)
