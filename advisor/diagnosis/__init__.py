"""What is wrong with a run; needs no sampler, optimiser or plotting."""

from advisor.diagnosis.card import MODES as MODES
from advisor.diagnosis.card import Card as Card
from advisor.diagnosis.collapse import Collapse as Collapse
from advisor.diagnosis.collapse import find_any_fall as find_any_fall
from advisor.diagnosis.collapse import find_collapse as find_collapse
from advisor.diagnosis.collapse import find_final_fall as find_final_fall
from advisor.diagnosis.collapse import has_collapsed as has_collapsed
from advisor.diagnosis.levels import Level as Level
from advisor.diagnosis.sampled import silent_share as silent_share
from advisor.diagnosis.verdict import JUDGES as JUDGES
from advisor.diagnosis.verdict import Diagnosis as Diagnosis
from advisor.diagnosis.verdict import diagnose as diagnose
