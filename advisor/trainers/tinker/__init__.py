"""tinker."""
