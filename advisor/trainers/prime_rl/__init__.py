"""prime_rl."""
