"""The command line as a user meets it."""

import json
import re

import pytest
from processes import python
from simulated_runs import made_up_posterior

import advisor.forecast.fitting
import advisor.reporting
from advisor import demo_folder

SIDECAR = """
[defaults]
task = "sort"
prompts_per_step = 16
reward_floor = 0.0
reward_ceiling = 1.0
[[run]]
path = "run/trainer_state.json"
model = "tiny-s"
parameters = 26894
learning_rate = 3e-4
group_size = 8
minibatches_per_refresh = 2
epochs_per_refresh = 1
"""


@pytest.fixture
def pilot(tmp_path):
    """One real pilot in a folder of its own, with its sidecar."""
    folder = tmp_path / "pilots"
    (folder / "run").mkdir(parents=True)
    source = demo_folder() / "s_lr3e-4_g8_k2" / "trainer_state.json"
    (folder / "run" / "trainer_state.json").write_text(source.read_text())
    (folder / "pilots.toml").write_text(SIDECAR)
    return folder


def rewrite(pilot, change):
    path = pilot / "run" / "trainer_state.json"
    state = json.loads(path.read_text())
    rows = [row for row in state["log_history"] if "reward" in row]
    state["log_history"] = change(rows)
    path.write_text(json.dumps(state))


def refused(arguments, run, code=2):
    *printed, err = run(*arguments)
    assert printed == [code, ""]
    return err


def constant(rows):
    return [{**row, "reward": 0.25} for row in rows]


def not_a_number(rows):
    return [{**row, "reward": float("nan")} for row in rows]


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (constant, 3, ["trainer_state.json", "'reward'", "the same in every row", "Next pilot"]),
        (not_a_number, 2, ["trainer_state.json", "row", "60 of 60 rewards"]),
    ],
)
def test_a_log_that_teaches_nothing_is_refused_in_one_sentence(
    pilot, tmp_path, run, change, code, words
):
    rewrite(pilot, change)
    out = tmp_path / "study"
    message = refused(["advise", pilot, "--out", out, "--quiet"], run, code=code)
    assert all(word in message for word in words), message
    assert message.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("parameters = 26894\n", "", ["size of model 'tiny-s'", "parameters = 7e9"]),
        ("learning_rate = 3e-4", "learning_rate = 1e-3", ["0.001", "0.0003"]),
        ("group_size = 8\n", "", ["group size", "group_size"]),
        ("prompts_per_step = 16\n", "", ["prompts per optimizer step", "prompts_per_step"]),
        ("group_size = 8", "group_sise = 8", ["group_sise", "'group_size'"]),
    ],
)
def test_a_sidecar_that_lacks_or_contradicts_is_refused(pilot, tmp_path, run, old, new, words):
    # Rewards that are no shares of whole completions give no setting away.
    rewrite(
        pilot,
        lambda rows: [
            {**row, "reward": 0.9731 * row["reward"], "frac_reward_zero_std": None} for row in rows
        ],
    )
    (pilot / "pilots.toml").write_text(SIDECAR.replace(old, new))
    message = refused(["advise", pilot, "--out", tmp_path / "study", "--quiet"], run)
    assert all(word in message for word in words), message


# Requests of advise ------------------------------------------------------------------------------


@pytest.fixture
def ask(tmp_path, run, monkeypatch):
    """``advisor advise`` on the demo's pilots, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def once(*flags, code=2):
        flags = ["advise", demo_folder(), "--out", "study", "--quiet", *flags]
        message = refused(flags, run, code)
        assert list(tmp_path.iterdir()) == []
        return message

    return once


@pytest.fixture
def unfitted(monkeypatch):
    def fit(*arguments, **options):
        raise AssertionError("the pilots were fitted before the request was read")

    monkeypatch.setattr(advisor.forecast, "fit", fit)


@pytest.fixture
def fitted(monkeypatch):
    """A posterior of smooth made-up pilots, of the demo's task and models, without step times."""
    monkeypatch.setattr(advisor.forecast, "fit", lambda *arguments, **options: made_up_posterior())


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--steps", "100", "--completions", "5000"], ["one budget", "completions and steps"]),
        (["--steps", "100", "--gpu-hours", "3"], ["one budget"]),
        (["--completions", "5e6", "--gpu-hours", "3"], ["one budget"]),
        *((["--steps", steps], ["--steps", steps, "greater than 0"]) for steps in ("0", "-3")),
        (["--steps", "2000000"], ["--steps", "2000000", "or equal to 1000000"]),
        *((["--completions", amount], ["--completions", amount]) for amount in ("0", "-1", "nan")),
        (["--completions", "inf"], ["--completions", "inf"]),
        *((["--gpu-hours", amount], ["--gpu-hours", amount]) for amount in ("0", "-1", "nan")),
        (["--gpu-hours", "inf"], ["--gpu-hours", "inf"]),
        (["--to-reward", "0.8", "--to-share", "0.9"], ["--to-reward, --to-share", "one goal"]),
        *((["--to-share", share], ["--to-share", share]) for share in ("0", "1", "1.5", "nan")),
        *((["--risk", risk], ["--risk", risk, "It should be"]) for risk in ("0", "0.7", "nan")),
        *((["--level", level], ["--level", level]) for level in ("0", "1", "1.2", "nan")),
        (["--group-sizes", ","], ["--group-sizes", "at least 1 item"]),
        (["--group-sizes", "1,8"], ["--group-sizes", "1 cannot be", "greater than or equal to 2"]),
        (["--group-sizes", "8.5"], ["--group-sizes", "8.5"]),
        (["--learning-rates", ","], ["--learning-rates", "at least 1 item"]),
        *(
            (["--learning-rates", rates], ["--learning-rates", "cannot be"])
            for rates in ("0", "-1e-4", "inf", "1e-4,nan")
        ),
        *(
            (["--seconds-per-step", time], ["--seconds-per-step", time])
            for time in ("0", "-1", "nan", "inf")
        ),
        (["--gpus", "0"], ["Invalid value for '--gpus'"]),
        (["--devices", "0"], ["Invalid value for '--devices'"]),
        (["--seed", "-1"], ["Invalid value for '--seed'"]),
        (["--storage", "."], ["--storage", "cannot be kept there"]),
        (["--storage", "/proc/nothing/studies.log"], ["--storage", "cannot be kept there"]),
        (["--storage", "nonsense://somewhere"], ["--storage", "cannot be kept there", "driver"]),
        (["--storage", "postgresql:/somewhere"], ["--storage", "cannot be kept there"]),
        (["--storage", "sqlite:///missing/studies.db"], ["--storage", "cannot be kept there"]),
    ],
)
def test_an_impossible_request_is_refused_before_the_fit(ask, unfitted, flags, words):
    message = ask(*flags)
    assert all(word in message for word in words), message
    if not message.startswith("Usage"):
        assert message.startswith("Error: ")
        assert message.count("\n") == 1


def test_a_password_is_not_repeated(ask, unfitted):
    message = ask("--storage", "nonsense://team:hunter2@somewhere/studies")
    assert "hunter2" not in message
    assert "nonsense://team:***@somewhere/studies" in message


def test_a_folder_that_is_no_study_is_not_overwritten(pilot, tmp_path, run):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "notes.txt").write_text("keep me")
    message = refused(["advise", pilot, "--out", precious, "--quiet"], run)
    assert "nothing was overwritten" in message
    assert (precious / "notes.txt").read_text() == "keep me"


def test_help_and_import_load_nothing_heavy():
    heavy = "['pymc', 'arviz', 'optuna', 'matplotlib', 'pandas', 'nutpie', 'scipy']"
    code = (
        "import sys, advisor\n"
        "from advisor.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert python("-c", code, check=True).stdout.strip().endswith("[]")


COMMANDS = (
    [],
    ["demo"],
    ["plan"],
    ["pilots"],
    ["inspect"],
    ["fit"],
    ["advise"],
    ["what-if"],
    ["next-pilot"],
    ["export"],
    ["backtest"],
    ["priors"],
    ["priors", "show"],
)


@pytest.mark.evidence
def test_every_command_has_help_that_loads_nothing_heavy():
    code = (
        "import sys\nfrom advisor.cli import main\n"
        f"for command in {COMMANDS!r}:\n"
        "    print('---')\n"
        "    try:\n        main([*command, '--help'])\n"
        "    except SystemExit as stop:\n        assert not stop.code, command\n"
        "heavy = ('pymc', 'arviz', 'optuna', 'matplotlib', 'pandas', 'nutpie', 'scipy', 'numpy')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = python("-c", code, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
    pages = done.stdout.split("---\n")[1:]
    assert len(pages) == len(COMMANDS)
    for command, page in zip(COMMANDS, pages, strict=True):
        assert f"Usage: {' '.join(['-c', *command])} " in page
    top = pages[0]
    for command in COMMANDS[1:]:
        assert re.search(rf"^\W*{command[0]}\s", top, re.MULTILINE), command


def test_lengths_in_batches_of_rollouts_are_those_of_each_row(tmp_path, run):
    both = ["what-if", tmp_path, "--steps", "5", "--batches", "5"]
    assert "--batches, --steps: two lengths" in refused(both, run)
