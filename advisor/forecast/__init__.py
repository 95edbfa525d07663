"""The only place that predicts: rewards, logged rewards, stability."""

from advisor.forecast.analogues import Corpus
from advisor.forecast.begun import curve_of_begun_run, end_of_begun_run
from advisor.forecast.corpus_file import corpus_beside
from advisor.forecast.fitting import fit, fitted_or_none
from advisor.forecast.forecaster import SUPPORT, Forecaster, Target
from advisor.forecast.interval import Band, Interval, band_of, central, ends_of, interval_of
from advisor.forecast.margin import refresh_margin
from advisor.forecast.observed_run import ObservedRun, observe, peak_rate
from advisor.forecast.predictive import (
    FINAL_POINTS,
    FINAL_SHARE,
    LEAST_CHANCE,
    MOST_CHANCE,
    RestOfRun,
    begun_run_reward,
    final_of_rest,
    final_reward,
    final_rows,
    final_steps,
    fitted_curve,
    level_of_fallen_run,
    new_run_reward,
    outcome_paths,
    peak,
    probability_as_low,
    rest_of_run,
)
from advisor.forecast.reweighting import ReweightedDraws, reweighted
from advisor.forecast.run_effect import RunEffect
from advisor.forecast.single_run import DRAWS, EXPONENTIAL, TIME, Curve, curve_fit
from advisor.forecast.survival import (
    LOGITS,
    SPREADS,
    Stability,
    averaged,
    collapse_rate,
    line_for,
    log_update_norm,
    recalibrated,
    rest_stable,
    stability,
    stability_and_draws,
    stability_draws,
)
from advisor.forecast.target import MOST_PARAMETERS, named_target, pilots_of

__all__ = [
    "DRAWS",
    "EXPONENTIAL",
    "FINAL_POINTS",
    "FINAL_SHARE",
    "LEAST_CHANCE",
    "LOGITS",
    "MOST_CHANCE",
    "MOST_PARAMETERS",
    "SPREADS",
    "SUPPORT",
    "TIME",
    "Band",
    "Corpus",
    "Curve",
    "Forecaster",
    "Interval",
    "ObservedRun",
    "RestOfRun",
    "ReweightedDraws",
    "RunEffect",
    "Stability",
    "Target",
    "averaged",
    "band_of",
    "begun_run_reward",
    "central",
    "collapse_rate",
    "corpus_beside",
    "curve_fit",
    "curve_of_begun_run",
    "end_of_begun_run",
    "ends_of",
    "final_of_rest",
    "final_reward",
    "final_rows",
    "final_steps",
    "fit",
    "fitted_curve",
    "fitted_or_none",
    "interval_of",
    "level_of_fallen_run",
    "line_for",
    "log_update_norm",
    "named_target",
    "new_run_reward",
    "observe",
    "outcome_paths",
    "peak",
    "peak_rate",
    "pilots_of",
    "probability_as_low",
    "recalibrated",
    "refresh_margin",
    "rest_of_run",
    "rest_stable",
    "reweighted",
    "stability",
    "stability_and_draws",
    "stability_draws",
]
