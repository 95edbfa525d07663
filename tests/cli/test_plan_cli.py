"""``advisor plan``: scripts that read back as planned, and sentences where it cannot plan."""

from __future__ import annotations

import json

import pytest
from made_plan import made_plan

from advisor.advice import PilotPlan
from advisor.errors import InputError

RUN = (
    *("plan", "--model", "Qwen2.5-7B", "--steps", "500", "--set", "learning_rate=1e-6"),
    *("--set", "group_size=8", "--set", "prompts_per_step=16"),
)


def test_json_is_the_plan(run):
    code, out, _ = run(*RUN, "--json")
    plan = json.loads(out)
    assert code == 0
    assert plan["kind"] == "pilots"
    assert {"pilots", "designs", "settings", "steps"} <= plan.keys()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--out", "there"), "--to"),
        (("--set", "group_size=none"), "group_size"),
        (("--set", "group_size=1"), "--set group_size=...: a group of 1 completion is compared"),
        (("--pilot-parameters", "5e8"), "--pilot-model"),
        (("--to", "other"), "none of the trainers"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_sentence(arguments, said, run):
    code, _, err = run(*RUN, *arguments)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "change",
    [{"steps": 0}, {"reach": 0.0}, {"projects": 0}, {"designs": []}],
    ids=["no steps", "no reach", "no project", "no design"],
)
def test_a_damaged_plan_is_refused(tmp_path, change):
    plan = json.loads(made_plan((1e-6, 3e-6), 40).model_dump_json())
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert "Run 2 pilots" in PilotPlan.load(tmp_path).text
    (tmp_path / "plan.json").write_text(json.dumps(plan | change))
    with pytest.raises(InputError, match="the plan cannot be read"):
        PilotPlan.load(tmp_path)
