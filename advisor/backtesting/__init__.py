"""How well forecasts would have done on runs that have ended."""

from advisor.backtesting.backtests import CURVES as CURVES
from advisor.backtesting.backtests import ENSEMBLE as ENSEMBLE
from advisor.backtesting.backtests import backtest as backtest
from advisor.backtesting.cases import Case as Case
from advisor.backtesting.cases import finished_runs as finished_runs
from advisor.backtesting.cases import grouped as grouped
from advisor.backtesting.cases import make_cases as make_cases
from advisor.backtesting.scores import QUANTILES as QUANTILES
from advisor.backtesting.scores import Backtest as Backtest
from advisor.backtesting.scores import Prediction as Prediction
from advisor.backtesting.scores import show as show
