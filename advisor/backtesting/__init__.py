"""How well forecasts would have done on runs that have ended."""

from advisor.backtesting.backtest import backtest
from advisor.backtesting.result import Backtest
from advisor.backtesting.transfer import transfer

__all__ = ["Backtest", "backtest", "transfer"]
