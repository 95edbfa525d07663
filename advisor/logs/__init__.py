"""Log files to pilot runs: `read_runs` and `inspect`."""
