"""For tests of one's own: simulated runs and made-up posteriors."""

from advisor.testing.simulate import PLANS as PLANS
from advisor.testing.simulate import Plan as Plan
from advisor.testing.simulate import Truth as Truth
from advisor.testing.simulate import cohort_of_plans as cohort_of_plans
from advisor.testing.simulate import made_up_posterior as made_up_posterior
from advisor.testing.simulate import prior_means as prior_means
from advisor.testing.simulate import rising as rising
from advisor.testing.simulate import simulate_run as simulate_run
from advisor.testing.simulate import simulate_runs as simulate_runs
