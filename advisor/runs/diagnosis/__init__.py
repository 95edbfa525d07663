"""What is wrong with a run; needs no sampler, optimiser or plotting."""

from advisor.runs.diagnosis.card import MODES as MODES
from advisor.runs.diagnosis.card import Card as Card
from advisor.runs.diagnosis.collapse import Collapse as Collapse
from advisor.runs.diagnosis.collapse import find_collapse as find_collapse
from advisor.runs.diagnosis.diagnose import Diagnosis as Diagnosis
from advisor.runs.diagnosis.diagnose import diagnose as diagnose
