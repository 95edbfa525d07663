"""From an info object to a matplotlib Figure; matplotlib is imported when something is drawn."""
