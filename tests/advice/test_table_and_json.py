"""The answer as a table and as JSON, and that the same question has the same answer."""

from __future__ import annotations

import json

import pytest
from decisions import STEPS

from advisor.advice import Recommendation
from advisor.runs import Trainer

KINDS = ["advice", "infeasible", "first_contact"]


def others(said):
    return [
        other.name for other in (*said.alternatives, *said.equal_completions, said.best_piloted)
    ] + list(Trainer.all_recipes())


@pytest.mark.evidence
def test_table_shows_the_advice_beside_the_others(advice, infeasible, first_contact):
    table = advice.table
    assert table.index.tolist() == ["advised", *others(advice)]
    assert table["learning rate"].tolist()[0] == advice.settings.learning_rate
    assert table["steps"].tolist()[0] == STEPS
    assert table["reward at the last step"].tolist()[0] == advice.reward.mean
    assert table["P(stable)"].tolist()[0] == advice.stability.probability
    assert table["completions"].tolist()[0] == advice.cost.completions
    for recipe in advice.recipes:
        row = table.loc[recipe.name]
        assert row["reward at the last step"] == recipe.reward
        assert row["group size"] == recipe.settings.group_size
    assert infeasible.table.index[0] == "nearest"
    assert first_contact.table.index[0] == "piloted"


@pytest.mark.evidence
@pytest.mark.parametrize("kind", KINDS)
def test_json_holds_everything(kind, request):
    said = request.getfixturevalue(kind)
    for again in (
        Recommendation.model_validate_json(said.to_json()),
        Recommendation.model_validate(json.loads(said.to_json())),
    ):
        assert again == said
        assert again.text == said.text
        assert again.table.equals(said.table)
        assert again.to_json() == said.to_json()


@pytest.mark.evidence
def test_remarks_and_the_limit_of_an_answer_are_values_in_json(advice):
    told = json.loads(advice.to_json())
    assert told["limit"]["kind"] == advice.limit.kind
    assert told["binding"] == str(advice.limit)
    assert {one["text"] for one in told["notes"]} == {*told["cautions"], *told["assumptions"]}
    assert all(one["kind"] for one in told["notes"])
    assert Recommendation.model_validate_json(advice.to_json()) == advice
    # Control: of an answer that was saved as sentences the kinds are lost, the sentences not.
    old = {name: value for name, value in told.items() if name not in ("limit", "notes")}
    read = Recommendation.model_validate(old)
    assert (read.binding, set(read.cautions)) == (advice.binding, set(advice.cautions))
    assert read.limit.kind != advice.limit.kind
