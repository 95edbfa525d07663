"""One training run: its settings and what was logged, in one set of names, units and steps."""
