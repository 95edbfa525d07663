"""What may be said of a posterior: identifiability, design."""

from advisor.findings.gates import at_pilot as at_pilot
from advisor.findings.gates import gate as gate
from advisor.findings.gates import middle_pilot as middle_pilot
from advisor.findings.gates import prior_groups as prior_groups
from advisor.findings.text import describe as describe
