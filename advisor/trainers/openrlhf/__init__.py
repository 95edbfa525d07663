"""openrlhf."""
