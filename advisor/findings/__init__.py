"""What may be said of a posterior: identifiability, design, sensitivity, learned priors."""

from advisor.findings.gates import at_pilot as at_pilot
from advisor.findings.gates import middle_pilot as middle_pilot
from advisor.findings.gates import prior_groups as prior_groups
from advisor.findings.history import read_history as read_history
from advisor.findings.history import read_posteriors as read_posteriors
from advisor.findings.learned_priors import PastStudy as PastStudy
from advisor.findings.learned_priors import check_name as check_name
from advisor.findings.learned_priors import check_studies as check_studies
from advisor.findings.learned_priors import learn_from_studies as learn_from_studies
from advisor.findings.learned_priors import refuse_different_presets as refuse_different_presets
from advisor.findings.text import describe as describe
