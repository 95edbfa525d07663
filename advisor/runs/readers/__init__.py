"""One log format per file; `advisor.runs.read.READERS` lists them."""
