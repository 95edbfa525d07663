"""How well forecasts would have done on runs that have ended."""

from advisor.backtesting.backtests import backtest as backtest
from advisor.backtesting.cases import finished_runs as finished_runs
from advisor.backtesting.cases import grouped as grouped
from advisor.backtesting.scores import Backtest as Backtest
from advisor.backtesting.scores import show as show
