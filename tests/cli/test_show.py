"""``advisor show`` and the forms of an answer: a study's words again, without a fit."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from rich.console import Console
from simulated_runs import Plan
from typer.testing import CliRunner

from advisor.cli import app, flags
from advisor.cli.answer import markdown
from advisor.cli.terminal import table
from advisor.study import Study

STUDY = Path(__file__).parents[1] / "data/study"


def shown(*arguments):
    done = CliRunner().invoke(app, ["show", str(STUDY), *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def study():
    with pytest.warns(UserWarning, match="was fitted by version"):
        return Study.load(STUDY)


@pytest.fixture
def unfitted(monkeypatch):
    """No fit may be made."""
    monkeypatch.setattr("advisor.forecast.fit", lambda *given, **more: pytest.fail("fitted"))


def test_text_is_the_stored_answer(study, unfitted):
    text = shown()
    assert study.recommendation.summary in text
    assert "--details" in text
    assert study.recommendation.text not in text
    detailed = shown("--details")
    assert study.recommendation.text in detailed
    assert "What the pilots say" in detailed
    assert "--details" not in detailed


def test_json_is_the_stored_answer_by_either_flag(study, unfitted):
    assert json.loads(shown("--json")) == json.loads(study.recommendation.to_json())
    assert shown("--format", "json") == shown("--json")


def test_markdown_holds_the_answer_a_line_to_paste_and_a_table_of_all_candidates(study):
    text = shown("--format", "markdown")
    assert text.startswith("### Recommended configuration\n")
    (pasted,) = re.findall(r"^```text\n(.*)\n```$", text, re.MULTILINE)
    assert f"learning_rate={study.recommendation.settings.learning_rate:g}," in pasted
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(study.recommendation.table)
    assert len({row.count("|") for row in rows}) == 1
    assert "Evidence" not in text
    assert "Evidence" in shown("--format", "markdown", "--details")


def test_names_out_of_logs_make_neither_html_nor_cells(study):
    hostile = "<b>|`[x](y)"
    advice = study.recommendation
    named = advice.best_piloted.model_copy(update={"name": hostile})
    asked = Study(study.posterior, advice.model_copy(update={"best_piloted": named}))
    text = markdown(asked, details=False)
    assert "<b>" not in text
    assert r"&lt;b>\|\`\[x\](y)" in text


def marked_down(lines, row, title="Title", **more):
    """Markdown of an answer that has nothing but these lines and a row of its table."""
    names = ("learning rate", "group size", "steps", "reward at the last step", "P(stable)")
    answer = SimpleNamespace(
        summary="\n".join(lines),
        title=title,
        table=pd.DataFrame([row], columns=names),
        assumptions=(),
        provenance=SimpleNamespace(package="1", data_sha256="0" * 64),
        terms=SimpleNamespace(seed=1),
        **more,
    )
    return markdown(SimpleNamespace(recommendation=answer), details=False)


def test_points_of_a_list_stay_together():
    lines = ["Expect: 0.9.", "Before you launch:", "- one", "- two"]
    launched = {"kind": "recommendation", "settings": Plan().completed, "trainer": "TRL"}
    text = marked_down(lines, [1.0] * 5, **launched)
    assert "\n\nBefore you launch:\n\n- one\n- two\n" in text


def test_settings_of_a_pilot_and_long_runs_are_shown_to_be_copied():
    lines = ["learning_rate=7.1e-06, num_generations=8", "250 steps, P(stable)=0.9 there."]
    text = marked_down(lines, [1e-5, 8, 12_500, -0.643, 0.9], title="Run this pilot first")
    assert f"```text\n{lines[0]}\n```" in text
    assert f"```text\n{lines[1]}" not in text
    assert "| 1e-05 | 8 | 12,500 | -0.643 | 90 % |" in text


def test_another_form_is_refused(capsys):
    done = CliRunner().invoke(app, ["show", str(STUDY), "--format", "xml"])
    assert done.exit_code == 2


def test_verdicts_have_colours_on_a_terminal_and_none_in_a_pipe():
    rows = [("a", "PASS"), ("b", "WARNING"), ("c", "FAIL"), ("FAILED", "to pass")]
    terminal = {"force_terminal": True, "color_system": "standard"}
    for kind, wanted in ((terminal, ["32", "33", "31"]), ({}, [])):
        console = Console(file=io.StringIO(), width=60, **kind)
        console.print(table(("run", "verdict"), rows))
        assert re.findall(r"\x1b\[(3\d)m", console.file.getvalue()) == wanted


def test_words_of_other_tools_are_known_by_one_command_each():
    words = flags.words()["synonyms"]
    commands = {
        name or one.callback.__name__ for one in app.registered_commands for name in [one.name]
    }
    known = {name.replace("_", "-") for name in commands} | {"priors"}
    assert words.keys() <= known
    every = [word for others in words.values() for word in others]
    assert len(every) == len(set(every))
    assert not known & set(every)
    assert flags.meant("Recommend", known) == "advise"
    assert flags.meant("nonsense", known) is None
