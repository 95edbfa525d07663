"""Every real run that an index describes is read, and what the log holds is as the index says.

The index was written by hand from the logs; model, size and often the group size stand in no log
and come from a sidecar made from it.
"""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from advisor.runs import read_runs

RUNS = 192
TRACE = re.compile(r"(.+)\.(?:step_log|reward_trace)")


def _number(text):
    found = re.match(r"[\d.]+(?:e-?\d+)?$", text.strip())
    return float(found.group()) if found else None


def _ids(entry, real_logs):
    """What a run of a file with several may be called: its tag, with its place where shared."""
    found = TRACE.fullmatch(entry["filter"])
    if found is None:
        return ()
    node = json.loads((real_logs / entry["local_file"]).read_text(encoding="utf-8"))
    for part in found.group(1).split("."):
        node = node[int(part) if part.isdigit() else part]
    return (f"{node['tag']} ({found.group(1)})", node["tag"])


def _updates(text):
    """Epochs and mini-batches of ``... (epochs 2 x 256/128)``, or of a bare number."""
    found = re.search(r"\(epochs (\d+) x (\d+)/(\d+)\)", text)
    if found:
        epochs, rollouts, batch = (int(group) for group in found.groups())
        return epochs, rollouts // batch
    return (1, 1) if text.startswith("1") else None


@pytest.fixture(scope="session")
def entries(real_logs):
    with (real_logs / "INDEX.tsv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


@pytest.fixture(scope="session")
def sidecar(entries, real_logs, tmp_path_factory):
    """What no log of these holds."""
    lines = []
    files = {entry["local_file"] for entry in entries if TRACE.fullmatch(entry["filter"])}
    known = {run.id for file in files for run in read_runs(real_logs / file)}
    for entry in entries:
        size, group = _number(entry["params_B"]), _number(entry["group_size"])
        lines.append(f'[[run]]\npath = "{entry["local_file"]}"')
        label = next((name for name in _ids(entry, real_logs) if name in known), None)
        if label:
            lines.append(f'id = "{label}"')
        # A quarter of the models has no known size; any serves to read them.
        lines.append(f'model = "{entry["model"]}"\nparameters = {1e9 * (size or 1.0)}')
        lines.append(f'task = "{entry["task"]}"')
        if group:
            lines.append(f"group_size = {group:.0f}")
    path = tmp_path_factory.mktemp("sidecar") / "pilots.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def runs(real_logs, sidecar):
    return read_runs(real_logs, sidecar=sidecar)


@pytest.fixture(scope="session")
def pairs(entries, runs, real_logs):
    """Index entry and run, for every entry."""
    by_place = {}
    for run in runs:
        file = str(run.path).removeprefix(f"{real_logs}/")
        by_place.setdefault(file, []).append(run)
    found = []
    for entry in entries:
        here = by_place.get(entry["local_file"], [])
        named = {run.id: run for run in here}
        if len(here) > 1:
            here = [named[name] for name in _ids(entry, real_logs) if name in named][:1]
        found.append((entry, here[0] if len(here) == 1 else None))
    return found


@pytest.mark.evidence
def test_every_run_is_found(pairs):
    assert len(pairs) == RUNS
    assert [entry["id"] for entry, run in pairs if run is None] == []


@pytest.mark.evidence
def test_nothing_else_is_taken_for_a_run(runs, pairs):
    known = {id(run) for _, run in pairs}
    others = [run for run in runs if id(run) not in known]
    # One file lists its twelve runs a second time, by the order in which they ended.
    assert {run.id for run in others if run.copy_of is None} == set()
    assert all(re.fullmatch(r".* \(runs\.\d+\)", run.id) for run in others)
    assert not any(run.path.endswith("INDEX.tsv") for run in runs)


@pytest.mark.evidence
def test_rows_and_rewards(pairs):
    wrong = []
    for entry, run in pairs:
        curve = run.eval_reward[run.eval_step > 0] if run.is_eval_only else run.reward
        first, last = (
            float(part)
            for part in re.match(r"(\S+) -> (\S+) ", entry["reward_first_to_last"]).groups()
        )
        size = int(re.search(r"first/last (\d+) rows", entry["reward_first_to_last"]).group(1))
        shown = (curve[:size].mean(), curve[-size:].mean())
        rows_agree = curve.size == int(entry["n_steps_logged"])
        if not rows_agree or not np.allclose(shown, (first, last), rtol=6e-3, atol=6e-4):
            wrong.append((entry["id"], curve.size, entry["n_steps_logged"], shown, first, last))
    assert wrong == []


@pytest.mark.evidence
def test_the_key_of_the_reward(pairs):
    for entry, run in pairs:
        if run.is_eval_only:
            assert entry["reader"] == "json_cols", entry["id"]
            continue
        key = run.keys_read["reward"]
        assert key in (entry["reward_key"], "reward_trace"), entry["id"]


@pytest.mark.evidence
def test_learning_rates(pairs):
    """Where the log holds the rate, or settings beside it do, it is the index's."""
    known = 0
    for entry, run in pairs:
        rate = _number(entry["learning_rate"])
        found = run.hyperparameters.learning_rate
        if rate is None or found is None:
            continue
        known += 1
        # Logs that start or stop beside the peak come within a few per cent of it.
        assert found == pytest.approx(rate, rel=0.05), entry["id"]
    assert known >= 150


@pytest.mark.evidence
def test_refresh_intervals(pairs):
    told = 0
    for entry, run in pairs:
        expected = _updates(entry["steps_per_refresh_or_num_iterations"])
        settings = run.hyperparameters
        if expected is None or settings.refresh_interval is None:
            continue
        told += 1
        assert (settings.epochs_per_refresh, settings.minibatches_per_refresh) == expected, run.id
    assert told >= 14


@pytest.mark.evidence
def test_kl_coefficients(pairs):
    """The ratio of loss to KL, which the index took by hand, is recovered or left open."""
    recovered = 0
    for entry, run in pairs:
        found = re.match(r"([\d.]+) \(.*loss/kl ratio", entry["kl_beta"])
        value = run.hyperparameters.kl_coefficient
        if found is None or value is None or "never passed" in entry["kl_beta"]:
            continue
        recovered += 1
        # The index took plain means; two of its ratios lie 15 % above TRL's default of 0.04.
        assert value == pytest.approx(float(found.group(1)), rel=0.2), entry["id"]
    assert recovered >= 20
