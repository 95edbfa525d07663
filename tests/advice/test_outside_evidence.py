"""Targets outside what shaped the priors: said, capped, and answered with a pilot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated_runs import PLANS, Plan, made_up_posterior, with_meta

from advisor.advice import advise, next_pilot
from advisor.forecast import Target
from advisor.model import load_priors, outside_evidence, preset_names

WORTH_A_PILOT = 0.005

FULL = Plan().completed
LORA = FULL.model_copy(update={"adapter": "lora", "adapter_rank": 16})
SGD = FULL.model_copy(update={"optimizer": "sgd"})


RESTING = ("full_finetuning", "lora", "small_models")


def preset_of(name):
    """A preset that comes with the package, or one that rests on no runs."""
    return load_priors(name if name in RESTING else "theory").model_copy(update={"name": name})


def test_every_preset_that_rests_on_runs_says_on_which():
    domains = {name: load_priors(name).domain for name in preset_names()}
    assert tuple(name for name in sorted(domains) if domains[name] is not None) == RESTING
    for name in RESTING:
        said = load_priors(name).evidence.replace("+", "").replace("e0", "e")
        most = f"{domains[name].most_parameters:.0e}".replace("+", "").replace("e0", "e")
        assert most in said


@pytest.mark.parametrize(
    ("preset", "settings", "parameters", "reason"),
    [
        ("small_models", FULL, 1e4, None),
        ("small_models", FULL, 1e7, None),
        ("small_models", FULL, 9e3, "rests on models of 1e+04 to 1e+07 parameters"),
        ("small_models", FULL, 1.1e7, "rests on models of 1e+04 to 1e+07 parameters"),
        ("small_models", LORA, 1e5, "rests on adapter 'full' alone"),
        ("lora", LORA, 5e8, None),
        ("lora", LORA, 7e9, None),
        ("lora", LORA, 2e10, None),
        ("lora", LORA, 9e7, "rests on models of 5e+08 to 2e+10 parameters"),
        ("lora", LORA, 2e11, "rests on models of 5e+08 to 2e+10 parameters"),
        ("lora", FULL, 7e9, "rests on adapter 'lora' alone"),
        ("full_finetuning", FULL, 7e9, None),
        ("full_finetuning", FULL, 9e6, "rests on models of 3e+07 to 2e+10 parameters"),
        ("full_finetuning", FULL, 2e11, "rests on models of 3e+07 to 2e+10 parameters"),
        ("full_finetuning", LORA, 7e9, None),
        ("a team's own", LORA, 1e5, None),
        ("a team's own", FULL, 1e12, None),
        *((preset, SGD, 1e5, "SGD") for preset in (*RESTING, "a team's own")),
    ],
)
def test_evidence_of_a_preset(preset, settings, parameters, reason):
    # Piloted at the very size, so that only the preset's evidence counts.
    found = outside_evidence(preset_of(preset), settings, parameters, [parameters])
    if reason is None:
        assert found is None
    else:
        assert reason in found
        assert preset in found or "SGD" in found


@pytest.mark.parametrize(
    ("preset", "factor", "is_far"),
    [
        *((preset, far, True) for preset in (*RESTING, "a team's own") for far in (0.09, 11.0)),
        # The evidence on language models itself spans less than a decade either way.
        *((preset, near, False) for preset in ("lora", "full_finetuning") for near in (0.2, 3.0)),
        *(
            (preset, near, False)
            for preset in ("small_models", "a team's own")
            for near in (0.11, 9.0)
        ),
    ],
)
def test_a_decade_beyond_the_pilots_is_far(preset, factor, is_far):
    settings = LORA if preset == "lora" else FULL
    middle = 3e5 if preset == "small_models" else 3e9
    piloted = [middle, middle * 2]
    beyond = middle * factor if factor < 1 else 2 * middle * factor
    found = outside_evidence(preset_of(preset), settings, beyond, piloted)
    assert (found is not None) == is_far
    if is_far:
        assert "ten times larger or smaller" in found or "rests on models" in found


# What follows for the advice -------------------------------------------------------------------


def of_preset(name, plans=PLANS, **updates):
    posterior = made_up_posterior([replace(plan, **updates) for plan in plans])
    return with_meta(posterior, priors=load_priors(name))


CASES = {
    "lora": (Target("sort", "tiny-m", 4e5), "preset 'lora' rests on adapter 'lora' alone"),
    "full_finetuning": (
        Target("sort", "tiny-m", 4e5),
        "preset 'full_finetuning' rests on models of 3e+07 to 2e+10 parameters",
    ),
    "small_models": (
        Target("sort", "large", 2e7),
        "preset 'small_models' rests on models of 1e+04 to 1e+07 parameters",
    ),
    "uninformative": (Target("sort", "large", 1e8), "ten times larger or smaller"),
}


@pytest.mark.parametrize("preset", CASES)
def test_advice_outside_the_evidence_is_capped_and_names_a_pilot_only_where_it_is_worth_it(preset):
    target, reason = CASES[preset]
    posterior = of_preset(preset)
    # So mild that the highest rate on offer would be advised.
    rates = (1e-4, 1e-3, 3e-3, 1e-2)
    asked = {"model": target.model, "parameters": target.parameters, "learning_rates": rates}
    found = advise(posterior, **asked, level=0.01, trials=40)
    assert reason in found.outside
    assert posterior.meta.largest_surviving_rate == 1e-3
    assert found.settings.learning_rate <= 3e-3
    for other in found.alternatives:
        assert other.settings.learning_rate <= 3e-3
    best = next_pilot(posterior, found)
    assert best.settings.learning_rate <= 3e-3
    is_named = best.gain >= WORTH_A_PILOT and best.is_worth_its_price
    is_headed = found.title.endswith("pilot first")
    assert (found.next_pilot is not None) == is_headed == is_named
    assert f"Outside the evidence: {found.outside}." in found.text
    (line,) = [x for x in found.assumptions if x.startswith("learning rates stop at three times")]
    assert reason in line
