"""Forecasts from runs that were like a run, and what is learned of likeness."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from simulated_runs import Plan
from studies import modules_of

from advisor.errors import InputError
from advisor.forecast import Corpus, analogues, corpus_for
from advisor.forecast.fitting import is_falling
from advisor.model import load_priors

with modules_of("real_runs", ("analogue_learning",)) as found:
    learned_corpus = found["analogue_learning"].learned_corpus
    corpus_json = found["analogue_learning"].corpus_json
    tabulated = found["analogue_learning"].tabulated

ROWS = 120
PRIORS = load_priors("theory")
RULES = PRIORS.discrepancy


def run_of(gain, name, *, seed=0, noise=0.05, start=0.2, rows=ROWS):
    """Run that keeps what its first rows promise: a straight rise by ``gain`` in all."""
    rng = np.random.default_rng(seed)
    reward = start + gain * np.arange(rows) / rows + noise * rng.standard_normal(rows)
    return Plan(1e-6, steps=rows, parameters=1.5e9, model="m", task="t").run(reward, name)


def corpus_of(gains, *, repositories=6, promise=True):
    """Runs of several repositories; without ``promise`` their second halves are dealt anew."""
    rng = np.random.default_rng(5)
    runs = {f"r{k}": [] for k in range(repositories)}
    for number, gain in enumerate(gains):
        run = run_of(gain, f"run{number}", seed=number)
        if not promise:
            other = run_of(float(rng.choice(gains)), "x", seed=1000 + number).reward
            reward = np.concatenate([run.reward[: ROWS // 2], other[ROWS // 2 :]])
            run = run.with_updates(series={"reward": reward})
        runs[f"r{number % repositories}"].append(run)
    return runs


GAINS = np.tile([-0.1, 0.0, 0.2, 0.5], 9)


@pytest.fixture(scope="module")
def corpus():
    return learned_corpus(corpus_of(GAINS))


def test_a_long_run_of_which_one_in_three_rows_is_kept_is_described_as_if_all_were():
    run = run_of(0.4, "a", rows=1200)
    kind = analogues.RunKind(is_share=True)
    whole = analogues.describe(run.step, run.reward, 1200, kind)
    kept = analogues.describe(run.step[::3], run.reward[::3], 1200, kind, thinned=3)
    assert kept.error == pytest.approx(whole.error, rel=0.1)
    rows = analogues.FEATURES.index("half_log_rows")
    assert kept.features[rows] == whole.features[rows]


def test_a_description_does_not_turn_on_the_scale_of_a_reward():
    run = run_of(0.4, "a")
    seen = run.step <= 40
    one = analogues.describe(
        run.step[seen], run.reward[seen], ROWS, analogues.RunKind(is_share=False)
    )
    two = analogues.describe(
        run.step[seen], 50 * run.reward[seen] - 7, ROWS, analogues.RunKind(is_share=False)
    )
    assert two.features == pytest.approx(one.features, abs=1e-6)
    assert two.level == pytest.approx(50 * one.level - 7)
    assert two.unit == pytest.approx(50 * one.unit)
    # What is a share by definition is told apart by its level.
    share = analogues.describe(
        run.step[seen], run.reward[seen], ROWS, analogues.RunKind(is_share=True)
    )
    assert share.features[analogues.FEATURES.index("level")] == pytest.approx(2 * share.level)
    assert len(share.features) == len(analogues.FEATURES)


def test_trend_and_bend_are_those_of_a_curve():
    step = np.arange(1.0, 31.0)
    straight = analogues.describe(step, 0.1 * step, 60, analogues.RunKind(is_share=False))
    assert straight.features[analogues.FEATURES.index("trend")] == pytest.approx(2 / 2.9, rel=0.02)
    assert straight.features[analogues.FEATURES.index("bend")] == pytest.approx(0.0, abs=1e-9)
    assert straight.features[analogues.FEATURES.index("log_share")] == pytest.approx(np.log(0.5))
    saturating = analogues.describe(
        step, 1 - np.exp(-step / 5), 60, analogues.RunKind(is_share=False)
    )
    assert saturating.features[analogues.FEATURES.index("bend")] < -0.2


def test_forecast_follows_the_runs_that_were_alike(corpus):
    """A rising run is said to rise on, a flat one to stay: both by what others of its kind did."""
    for gain, seed in ((0.5, 77), (0.0, 78)):
        run = run_of(gain, "new", seed=seed)
        seen = run.step <= 0.25 * ROWS
        found = analogues.describe(
            run.step[seen], run.reward[seen], ROWS, analogues.kind_of(run.first_part(0.25))
        )
        draws = analogues.end_of_run(corpus, found, odds_share=RULES.odds_share)
        true = run.reward[run.step > 0.9 * ROWS].mean()
        low, high = np.quantile(draws, [0.05, 0.95])
        assert low < true < high
        assert np.median(draws) - found.level == pytest.approx(0.8 * gain, abs=0.12)


def test_learned_reach_beats_no_likeness_and_cannot_where_nothing_is_promised(corpus):
    """Control: where second halves are dealt anew, what was learned must not seem to help."""

    def error(learned, runs):
        rows = tabulated(runs, [0.5], learned)
        found = []
        for k in range(rows.gain.size):
            others = replace(
                learned,
                **{
                    name: getattr(learned, name)[learned.repository != rows.repository[k]]
                    for name in analogues.COLUMNS
                },
            )
            level = rows.features[k, analogues.FEATURES.index("level")] / 2
            unit = float(np.exp(rows.features[k, analogues.FEATURES.index("log_unit")]))
            seen = analogues.Description(rows.features[k], level, unit, 0.0, 0.0)
            gain = (
                np.median(analogues.end_of_run(others, seen, odds_share=RULES.odds_share)) - level
            ) / unit
            found.append(abs(gain - rows.gain[k]) / rows.span[k])
        return float(np.mean(found))

    blind = replace(corpus, reach=np.full(len(analogues.FEATURES), 1e6))
    promised = corpus_of(GAINS)
    assert error(corpus, promised) < 0.5 * error(blind, promised)
    dealt = corpus_of(GAINS, promise=False)
    learned = learned_corpus(dealt)
    assert error(learned, dealt) > 0.8 * error(replace(learned, reach=blind.reach), dealt)


def test_little_that_rises_along_an_s_is_forecast_in_log_odds():
    """From 0.02 the range of the first rows, mostly noise, measures nothing of what comes."""
    rng = np.random.default_rng(1)
    step = np.arange(1.0, ROWS + 1)

    def rising(name, start, gained):
        share = 1 / (1 + np.exp(-(start + gained * step / ROWS)))
        reward = rng.binomial(32, share) / 32
        plan = Plan(1e-5, steps=ROWS, parameters=1.35e8, model="m", task="t")
        return plan.run(reward, name)

    runs = {
        f"r{k}": [
            rising(f"run{k}-{j}", start, 5.0)
            for j, start in enumerate(np.linspace(-3.5, 0.5, 5) + 0.1 * k)
        ]
        for k in range(6)
    }
    reach = np.where(np.array(analogues.FEATURES) == "log_share", 0.2, 1e6)
    blind = replace(learned_corpus(runs), reach=reach)
    corpora = [replace(blind, by_odds=sign * np.ones_like(blind.by_odds)) for sign in (1, -1)]
    errors = []
    for number in range(10):
        new = rising(f"new{number}", -4.0, 5.0)
        part = new.first_part(0.2)
        seen = analogues.describe(part.step, part.reward, ROWS, analogues.kind_of(part))
        came = new.reward[new.step > 0.9 * ROWS].mean()
        errors.append(
            [
                np.median(analogues.end_of_run(one, seen, odds_share=RULES.odds_share)) - came
                for one in corpora
            ]
        )
    by_odds, by_ranges = np.abs(errors).mean(axis=0)
    assert by_odds < 0.7 * by_ranges


def test_weighted_quantiles_are_those_of_repeated_values():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    at = analogues.weighted_quantiles(values, weights, np.array([0.25, 0.625, 0.875]))
    assert at == pytest.approx([1.0, 2.0, 3.0])


def test_a_run_that_is_known_takes_its_repository_out(corpus):
    run = corpus_of(GAINS)["r1"][0]
    left = corpus.without([analogues.mark_of(run)])
    assert "r1" in corpus.names
    assert "r1" not in left.names
    assert len(left.names) == len(corpus.names) - 1
    assert corpus.without([analogues.mark_of(run_of(0.3, "stranger", seed=4242))]) is corpus
    assert analogues.mark_of(run) == analogues.mark_of(run.first_part(0.5))


def test_few_repositories_teach_nothing():
    with pytest.raises(InputError, match="of 2 repositories"):
        learned_corpus(corpus_of(GAINS[:8], repositories=2))


def test_a_corpus_comes_back_from_its_file(corpus, tmp_path):
    path = tmp_path / "corpus.json"
    path.write_text(corpus_json(corpus, "made up"), encoding="utf-8")
    found = analogues.load_corpus(path)
    for name in (*analogues.COLUMNS[:5], "reach"):
        assert getattr(found, name) == pytest.approx(getattr(corpus, name), rel=1e-3, abs=1e-9)
    assert found.run.tolist() == corpus.run.tolist()
    told = json.loads(path.read_text(encoding="utf-8"))
    del told["reach"]["trend"]
    path.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(InputError, match="no corpus of finished runs"):
        analogues.load_corpus(path)


def test_small_models_have_no_analogues():
    run = run_of(0.2, "a")
    assert corpus_for([run.with_updates(parameters=1e5)]) is None
    assert isinstance(corpus_for([run]), Corpus)
    assert len(analogues.shipped_corpus().names) > 20


def test_falling_is_more_than_noise():
    """Of flat runs few are said to fall, of runs that lose a third all; a rise never."""
    noisy = [run_of(0.0, "a", seed=k, noise=0.1, rows=30) for k in range(200)]
    assert np.mean([is_falling(run) for run in noisy]) < 0.02
    falls = [run_of(-0.9, "a", seed=k, noise=0.1, start=0.9, rows=30) for k in range(50)]
    assert all(is_falling(run) for run in falls)
    assert not any(is_falling(run_of(0.5, "a", seed=k)) for k in range(50))
