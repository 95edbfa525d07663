"""Settings of a run: stated beside the log, in a sidecar, inferred, and merged."""
