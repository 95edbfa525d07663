"""The answer as a table and as JSON, and that the same question has the same answer."""

from __future__ import annotations

import json

import pytest

from advisor.advice import Recommendation

KINDS = ["advice", "infeasible", "first_contact"]


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
