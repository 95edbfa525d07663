"""How well forecasts would have done on runs that have ended."""

from advisor.backtesting.backtests import ADVISOR, backtest, check_shares, chosen_preset
from advisor.backtesting.cases import (
    Case,
    CohortCases,
    finished_runs,
    grouped,
    make_cases,
    nothing_to_ask,
)
from advisor.backtesting.figure import draw_backtest
from advisor.backtesting.result import Backtest
from advisor.backtesting.scores import QUANTILES, Prediction, Question, predict, score
from advisor.backtesting.size_transfer import transfer
from advisor.backtesting.text import show

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
