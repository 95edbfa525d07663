"""Studies: the folder an answer leaves, and how two of them differ."""

from advisor.study.comparison import compare as compare
from advisor.study.outcomes import Comparison as Comparison
from advisor.study.study import Study as Study
from advisor.study.study import check_place as check_place
from advisor.study.study import is_study as is_study
