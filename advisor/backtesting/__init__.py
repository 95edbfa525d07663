"""How well forecasts would have done on runs that have ended."""

from advisor.backtesting.backtests import backtest as backtest
from advisor.backtesting.backtests import check_shares as check_shares
from advisor.backtesting.backtests import chosen_preset as chosen_preset
from advisor.backtesting.backtests import transfer as transfer
from advisor.backtesting.cases import Case as Case
from advisor.backtesting.cases import CohortCases as CohortCases
from advisor.backtesting.cases import finished_runs as finished_runs
from advisor.backtesting.cases import grouped as grouped
from advisor.backtesting.cases import make_cases as make_cases
from advisor.backtesting.cases import nothing_to_ask as nothing_to_ask
from advisor.backtesting.scores import ADVISOR as ADVISOR
from advisor.backtesting.scores import QUANTILES as QUANTILES
from advisor.backtesting.scores import Backtest as Backtest
from advisor.backtesting.scores import Prediction as Prediction
from advisor.backtesting.scores import Question as Question
from advisor.backtesting.scores import draw_backtest as draw_backtest
from advisor.backtesting.scores import predict as predict
from advisor.backtesting.scores import score as score
from advisor.backtesting.scores import show as show
