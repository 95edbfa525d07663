"""How well forecasts would have done on runs that have ended."""

from advisor.backtest.backtest import backtest
from advisor.backtest.result import Backtest
from advisor.backtest.transfer import transfer

__all__ = ["Backtest", "backtest", "transfer"]
