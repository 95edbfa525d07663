"""The main job on real GRPO runs, read from beside the checkout: they are not ours to ship."""

import ast
import json
import re

import pytest

from advisor.advice import advise
from advisor.forecast import Target, fit
from advisor.runs import read_runs

pytestmark = pytest.mark.evidence


@pytest.fixture
def near_ceiling_runs(real_logs, tmp_path):
    """27 LoRA runs at one setting that start near their ceiling; some collapse, none knows why."""
    entries = [
        '[defaults]\ntask = "gsm8k"\nmodel = "Qwen2.5-7B"\nadapter = "lora"\nlearning_rate = 1e-4\n'
        'group_size = 4\nprompts_per_step = 2\nschedule = "linear"\nlogging_steps = 5\n'
        "reward_floor = 0.0\nreward_ceiling = 1.0\n"
    ]
    for log in sorted((real_logs / "Sunshine535__nips-grpo-dynamics").glob("exp1a__*.log")):
        found = (ast.literal_eval(row) for row in re.findall(r"\{'.*?\}", log.read_text()))
        rows = [row for row in found if "reward" in row]
        lines = [json.dumps({"step": 5 * n, **row}) for n, row in enumerate(rows, 1)]
        (tmp_path / f"{log.stem}.jsonl").write_text("\n".join(lines))
        entries.append(f'[[run]]\npath = "{log.stem}.jsonl"\n')
    (tmp_path / "pilots.toml").write_text("\n".join(entries))
    return tmp_path


@pytest.mark.timeout(1200)  # 27 runs, and two presets until the chains agree
@pytest.mark.evidence
def test_runs_near_their_ceiling_with_sudden_collapses(near_ceiling_runs):
    posterior = fit(read_runs(near_ceiling_runs), priors="lora")
    runs = posterior.meta.runs
    assert len(runs) == 27
    collapsed = sum(run.collapse_step is not None for run in runs)
    # Labelled by eye: six sudden collapses, one of them after a rehearsal, and a gradual decline.
    assert 5 <= collapsed <= 8
    advice = advise(posterior, steps=200)
    # A quarter of the runs at this very setting died: it must never be called safe, and one setting
    # cannot carry a recommendation.
    assert advice.kind == "next_pilot"
    assert 0.5 < advice.stability.probability < 0.9
    assert advice.next_pilot is not None
    assert advice.next_pilot.settings.learning_rate < 1e-4


def test_tiny_transformers(tiny_grpo):
    """Sixteen full runs of one table: the advice is among the best of the table's other runs."""
    runs = [
        run for run in read_runs(tiny_grpo / "sort_s.jsonl") if run.hyperparameters.importance_ratio
    ]
    posterior = fit(runs[:16], priors="small_models")
    target = Target("sort", "tiny-s", 26894)
    advice = advise(posterior, task="sort", model="tiny-s", parameters=26894, steps=200)
    assert advice.kind == "recommendation"
    # The table's final rewards peak between 3e-4 and 1e-3 and fall to 0.6 at 3e-3, 0 at 1e-2.
    assert 2e-4 <= advice.settings.learning_rate <= 1.2e-3
    assert advice.settings.refresh_interval <= 4
    assert 0.82 < advice.reward.mean < 0.96
    fatal = advice.settings.model_copy(update={"learning_rate": 1e-2})
    from advisor.forecast import Forecaster, stability

    assert stability(Forecaster(posterior, target), fatal, 200).probability < 0.2
