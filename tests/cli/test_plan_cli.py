"""``advisor plan``: scripts that read back as planned, and sentences where it cannot plan."""

from __future__ import annotations

import json

import pytest
import yaml
from made_plan import made_plan

from advisor.advice import PilotPlan
from advisor.cli import main
from advisor.errors import InputError

RUN = (
    *("plan", "--model", "Qwen2.5-7B", "--steps", "500", "--set", "learning_rate=1e-6"),
    *("--set", "group_size=8", "--set", "prompts_per_step=16"),
)


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([*RUN, *arguments])
    said = capsys.readouterr()
    return stop.value.code or 0, said.out, said.err


@pytest.mark.evidence
def test_scripts_hold_what_was_planned(tmp_path, capsys):
    code, out, _ = call(capsys, "--to", "trl", "--out", str(tmp_path / "pilots"))
    assert code == 0
    plan = json.loads((tmp_path / "pilots/plan.json").read_text())
    assert len(plan["pilots"]) >= 2
    for pilot in plan["pilots"]:
        text = (tmp_path / "pilots" / pilot["name"] / "trl_config.yaml").read_text()
        config = yaml.safe_load(text)
        assert float(config["learning_rate"]) == pilot["settings"]["learning_rate"]
        assert config["max_steps"] == pilot["steps"]
        assert config["num_generations"] == pilot["settings"]["group_size"]
        assert f"{pilot['settings']['learning_rate']:.2g}" in out
    assert "Assumed:" in out
    assert "minibatches_per_refresh = 1 assumed" in out
    assert f"advisor pilots {tmp_path / 'pilots'}" in out
    assert (plan["trainer"], plan["devices"], plan["parameters"]) == ("trl", 1, 7e9)
    code, _, err = call(capsys, "--to", "trl", "--out", str(tmp_path / "pilots"))
    assert code == 2
    assert "exists" in err


def test_json_is_the_plan(capsys):
    code, out, _ = call(capsys, "--json")
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
def test_what_cannot_be_planned_is_said_in_one_sentence(arguments, said, capsys):
    code, _, err = call(capsys, *arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
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
