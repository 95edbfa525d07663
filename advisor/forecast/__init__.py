"""The only place that predicts: rewards, logged rewards, stability."""
