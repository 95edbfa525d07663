"""What may be said of a posterior: identifiability, design, sensitivity, learned priors."""
