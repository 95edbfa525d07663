"""How far the priors decide an answer: draws weighted, the same configurations judged again."""

from __future__ import annotations

import numpy as np
import pytest

from advisor import advise
from advisor.advice import say_of_answer, trade_offs

POWERS = (0.8, 1.25)


def checks(posterior, **asked):
    advice = advise(posterior, weigh_pilots=False, trials=40, **asked)
    return advice, {check.power: check for check in advice.prior_checks}


def test_priors_that_are_the_same_at_every_draw_decide_nothing(posterior, monkeypatch):
    monkeypatch.setattr(trade_offs, "log_prior", lambda p: np.zeros(p.convergence.draws))
    advice, found = checks(posterior)
    assert tuple(found) == POWERS
    for check in found.values():
        assert check.reward == pytest.approx(advice.reward.mean)
        assert check.stability == pytest.approx(advice.stability.probability)
        assert check.best == advice.settings
        assert check.pareto_k == 0.0
    assert say_of_answer("shares", advice).count("the choice stays.") == 2


@pytest.mark.evidence
def test_priors_that_like_collapse_move_p_stable_and_may_turn_the_choice(posterior, monkeypatch):
    """Surer of many collapses: P(stable) falls; less sure: it rises. Control: turned round."""
    base, _ = checks(posterior)
    hazard = posterior.flat("hazard.level")
    scaled = 6 * (hazard - hazard.mean()) / hazard.std()
    for sign in (1, -1):
        monkeypatch.setattr(trade_offs, "log_prior", lambda _, s=sign: s * scaled)
        _, found = checks(posterior)
        less, more = (found[power].stability for power in POWERS)
        assert sign * (less - base.stability.probability) >= 0
        assert sign * (base.stability.probability - more) >= 0
        assert less != more
