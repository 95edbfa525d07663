"""How well forecasts would have done on runs that have ended."""

from advisor.backtesting.backtests import ADVISOR, backtest, check_shares, chosen_preset, transfer
from advisor.backtesting.cases import (
    Case,
    CohortCases,
    finished_runs,
    grouped,
    make_cases,
    nothing_to_ask,
)
from advisor.backtesting.scores import (
    QUANTILES,
    Backtest,
    Prediction,
    Question,
    draw_backtest,
    predict,
    score,
    show,
)

__all__ = [
    "ADVISOR",
    "QUANTILES",
    "Backtest",
    "Case",
    "CohortCases",
    "Prediction",
    "Question",
    "backtest",
    "check_shares",
    "chosen_preset",
    "draw_backtest",
    "finished_runs",
    "grouped",
    "make_cases",
    "nothing_to_ask",
    "predict",
    "score",
    "show",
    "transfer",
]
