"""What a posterior says in words: what was piloted, what may be published, and on what it rests."""

from __future__ import annotations

from itertools import islice

import numpy as np
from simulated_runs import Plan, made_up_posterior, with_meta

from advisor.findings import describe
from advisor.findings.text import EXPONENTS
from advisor.model import informed_share


def told(posterior, **updates):
    """Text of a posterior whose meta is another's."""
    return describe(with_meta(posterior, **updates))


def test_text_opens_with_what_was_piloted(posterior):
    first = describe(posterior).splitlines()[0]
    reference = posterior.meta.reference
    assert first == (
        "5 pilots of 2 model-task pairs, 1 of which collapsed. At learning rate "
        f"{reference.learning_rate:.2g}, group size {reference.group_size:.3g}:"
    )
    one = describe(made_up_posterior([Plan()])).splitlines()[0]
    assert one.startswith("1 pilot of 1 model-task pair, none of which collapsed.")


def exponents_of(posterior):
    """Lines of the exponents by what they begin with."""
    lines = iter(describe(posterior).splitlines())
    assert any(line.startswith("Exponents (80 % intervals)") for line in lines)
    found = dict(line.strip().split(": ", 1) for line in islice(lines, len(EXPONENTS)))
    assert list(found) == [label for label, _ in EXPONENTS.values()]
    return found


def test_exponents_are_said_with_their_intervals_and_what_the_pilots_added(posterior):
    lines, learned = exponents_of(posterior), informed_share(posterior)
    for label, key in EXPONENTS.values():
        low, middle, high = np.quantile(posterior.flat(key), [0.1, 0.5, 0.9])
        assert lines[label].startswith(f"{middle:.2g} [{low:.2g}, {high:.2g}]; ")
    rates = sorted({run.settings.learning_rate for run in posterior.meta.runs})
    assert lines["learning rate"].endswith(
        f"{len(rates)} values from 1e-4 to 3e-3 removed "
        f"{100 * learned['rate.learning_rate']:.0f} % of the prior's variance."
    )
    # Less than nothing is removed where the draws are wider than the prior.
    wide = exponents_of(made_up_posterior(width=1.5))
    assert "removed 0 %" in wide["learning rate"]


def test_what_never_changed_is_the_priors(posterior):
    assert exponents_of(posterior)["prompts per step"].endswith(
        "never varied (16), from the prior."
    )
    varied = made_up_posterior([Plan(prompts=16.0), Plan(prompts=32.0)])
    assert "2 values from 16 to 32" in exponents_of(varied)["prompts per step"]


def test_held_out_rewards_are_said_of_the_group_that_logged_them(posterior):
    assert "held-out" not in describe(posterior)
    lines = told(posterior, evaluated=(False, True)).splitlines()
    (line,) = [line for line in lines if "odds of the headroom gained" in line]
    task, model = posterior.meta.groups[1]
    gain = np.exp(np.quantile(posterior.flat("log_eval_gain")[:, 1], [0.1, 0.5, 0.9]))
    assert line.startswith(
        f"  {model} on {task}: the odds of the headroom gained are {gain[1]:.2g} [{gain[0]:.2g}"
    )
